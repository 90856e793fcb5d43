"""Run benchmarks and print their results."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console

from braindecode_pars import benchmarks
from braindecode_pars.benchmarks._table import as_rst, circumstances
from braindecode_pars.storage._atomic import replace_file

__all__ = ["measure"]


def measure(names: Iterable[str] | None, out: Path | None) -> None:
    """Run some or all benchmarks, print each result at once, and write all to a file."""
    if out is not None:
        _check_out(out)
    console = Console()
    rows: list[benchmarks.Row] = []
    for name in names or benchmarks.BENCHMARKS:
        new_rows = []
        for row in benchmarks.BENCHMARKS[name]():
            console.print(str(row), style="red" if row.failed else None, highlight=False)
            new_rows.append(row)
        if not new_rows:
            console.print(f"{name}: skipped, this machine lacks the device.", highlight=False)
        rows += new_rows
    where = circumstances()
    console.print(where, highlight=False)
    if out is not None:
        replace_file(out, as_rst(rows, where))
        console.print(f"Written to [bold]{out}[/].")


def _check_out(file: Path) -> None:
    """Check that a file is new or an earlier table, before minutes are spent on measuring."""
    if file.is_dir() or (file.exists() and b"list-table" not in file.read_bytes()):
        raise ValueError(f"{file} exists and is not a table of benchmarks; pass a new file.")
