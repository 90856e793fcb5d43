"""``braindecode-pars benchmark``: what things cost on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from braindecode_pars.benchmarks import BENCHMARKS, Row, as_rst, circumstances
from braindecode_pars.cli.failures import told

__all__ = ["benchmark"]


def benchmark(
    only: Annotated[
        list[str] | None,
        typer.Option(help=f"Of {', '.join(BENCHMARKS)}; may be repeated.", metavar="NAME"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the table there, as reStructuredText.")
    ] = None,
) -> None:
    """Measure what steps, reading and predictions cost here; some minutes on an idle machine."""
    unknown = sorted(set(only or ()) - BENCHMARKS.keys())
    if unknown:
        raise typer.BadParameter(
            f"{', '.join(unknown)} is not measured; known are {', '.join(BENCHMARKS)}."
        )
    console = Console()
    with told():
        rows: list[Row] = []
        for name in only or BENCHMARKS:
            found = []
            for row in BENCHMARKS[name]():
                console.print(str(row), style="red" if row.failed else None, highlight=False)
                found.append(row)
            if not found:
                console.print(f"{name}: there is no such device here.", highlight=False)
            rows += found
        where = circumstances()
        console.print(where, highlight=False)
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(as_rst(rows, where))
            console.print(f"Written to [bold]{out}[/].")
