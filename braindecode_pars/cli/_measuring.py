"""Run benchmarks and print their results."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console

from braindecode_pars import benchmarks
from braindecode_pars.benchmarks._table import as_rst, circumstances

__all__ = ["measure"]


def measure(names: Iterable[str] | None, out: Path | None) -> None:
    """Run some or all benchmarks, print each result at once, and write all to a file."""
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
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(as_rst(rows, where))
        console.print(f"Written to [bold]{out}[/].")
