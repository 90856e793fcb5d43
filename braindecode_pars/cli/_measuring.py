"""Run benchmarks and print their results."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from braindecode_pars import benchmarks
from braindecode_pars.benchmarks._table import as_rst, circumstances
from braindecode_pars.cli._console import make_console

__all__ = ["measure"]


def measure(names: Iterable[str] | None, out: Path | None) -> None:
    """Run some or all benchmarks, print each result at once, and write all to a file."""
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
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(as_rst(rows, where), encoding="utf-8")
    console.print(where)
    if out is not None:
        console.print(f"Written to {out}.")
