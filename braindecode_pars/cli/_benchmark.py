"""``braindecode-pars benchmark``: measure speed and memory on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from braindecode_pars.cli._failures import report_failures
from braindecode_pars.cli._names import BENCHMARKS

__all__ = ["benchmark"]


def benchmark(
    only: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Benchmark to run: {', '.join(BENCHMARKS)}. May be repeated. Default: all.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File for the table of results, in reStructuredText.")
    ] = None,
) -> None:
    """Measure the speed of training steps, reading and predictions on this machine.

    All benchmarks take some minutes. The machine should be idle.
    """
    unknown = [name for name in only or () if name not in BENCHMARKS]
    if unknown:
        raise typer.BadParameter(
            f"Unknown benchmark {', '.join(unknown)}; known are {', '.join(BENCHMARKS)}."
        )
    with report_failures():
        from braindecode_pars.cli._measuring import measure

        measure(only, out)
