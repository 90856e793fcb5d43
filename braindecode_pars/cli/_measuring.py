"""Run benchmarks and print their results."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from braindecode_pars import benchmarks
from braindecode_pars.benchmarks._table import as_rst, circumstances
from braindecode_pars.cli._console import make_console
from braindecode_pars.storage._atomic import replace_file

__all__ = ["measure"]

#: First line of a table, a comment by which it is recognised.
MARK = ".. Written by braindecode-pars benchmark"


def measure(names: Iterable[str] | None, out: Path | None) -> None:
    """Run some or all benchmarks, print each result at once, and write all to a file."""
    if out is not None:
        _check_out(out)
    console = make_console()
    where = circumstances()
    rows: list[benchmarks.Row] = []
    for name in names or benchmarks.BENCHMARKS:
        new_rows = []
        for row in benchmarks.BENCHMARKS[name]():
            console.print(str(row), style="red" if row.failed else None)
            new_rows.append(row)
        if not new_rows:
            console.print(f"{name}: skipped, this machine lacks the device.")
        rows += new_rows
        if out is not None:  # written after every benchmark, so that Ctrl-C loses only one
            replace_file(out, f"{MARK}\n\n{as_rst(rows, where)}")
    console.print(where)
    if out is not None:
        console.print(f"Written to {out}.")


def _check_out(file: Path) -> None:
    """Check that a file is new or an earlier table, before minutes are spent on measuring."""
    if file.is_dir() or (file.exists() and MARK.encode() not in file.read_bytes()):
        raise ValueError(f"{file} exists and is not a table of benchmarks; pass a new file.")
