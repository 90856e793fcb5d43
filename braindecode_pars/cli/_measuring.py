"""Run benchmarks and show them, row by row."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console

from braindecode_pars import benchmarks
from braindecode_pars.benchmarks._table import as_rst, circumstances

__all__ = ["measure"]


def measure(names: Iterable[str] | None, out: Path | None) -> None:
    """Run some benchmarks, or all; print each row when it is measured, write all into a file."""
    console = Console()
    rows: list[benchmarks.Row] = []
    for name in names or benchmarks.BENCHMARKS:
        found = []
        for row in benchmarks.BENCHMARKS[name]():
            console.print(str(row), style="red" if row.failed else None, highlight=False)
            found.append(row)
        if not found:
            console.print(f"{name}: this machine has no such device.", highlight=False)
        rows += found
    where = circumstances()
    console.print(where, highlight=False)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(as_rst(rows, where))
        console.print(f"Written to [bold]{out}[/].")
