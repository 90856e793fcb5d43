"""``braindecode-pars benchmark``: what things cost on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from braindecode_pars.cli._failures import failures_told
from braindecode_pars.cli._names import BENCHMARKS

__all__ = ["benchmark"]


def benchmark(
    only: Annotated[
        list[str] | None,
        typer.Option(help=f"One of {', '.join(BENCHMARKS)}; may be repeated.", metavar="NAME"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the table to this file, as reStructuredText.")
    ] = None,
) -> None:
    """Measure what steps, reading and predictions cost here; some minutes on an idle machine."""
    unknown = [name for name in only or () if name not in BENCHMARKS]
    if unknown:
        raise typer.BadParameter(
            f"Unknown benchmark {', '.join(unknown)}; known are {', '.join(BENCHMARKS)}."
        )
    with failures_told():
        from braindecode_pars.cli._measuring import measure

        measure(only, out)
