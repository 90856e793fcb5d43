"""``braindecode-pars demo``: pretraining, fine-tuning and scores in minutes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from braindecode_pars.cli._failures import report_failures
from braindecode_pars.cli._names import TASKS

__all__ = ["demo"]

#: The tasks that the paper compares, and the spectral one. Training from scratch is in every demo.
COMPARED = ("pars", "mae", "spectral", "mp3", "droppos")


def demo(
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with recordings of PhysioNet's motor imagery dataset, in the layout of "
            "MNE's eegbci. Default: the recordings in the package, rest and mental arithmetic."
        ),
    ] = None,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Simulated nights of sleep instead of recordings.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path(
        "braindecode-pars-demo"
    ),
    pretext: Annotated[
        str | None,
        typer.Option(
            help=f"Pretrain a new encoder with this task: {', '.join(TASKS)}. Default: pars; with "
            "the recordings in the package, the encoder in the package continues with its own "
            "task.",
            metavar="NAME",
        ),
    ] = None,
    all_tasks: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Pretrain five new encoders on the same windows, each with another task, and "
            "compare them with no pretraining. Takes several times as long.",
        ),
    ] = False,
    seed: Annotated[
        int,
        typer.Option(help="Seed of the simulation, of the labelled subjects and of all training."),
    ] = 0,
) -> None:
    """Pretrain without labels, fine-tune with few labels, and score on held-out subjects."""
    if all_tasks and pretext is not None:
        raise typer.BadParameter("--all compares all tasks; omit --pretext.")
    if simulated and data is not None:
        raise typer.BadParameter("--simulated simulates recordings; omit --data.")
    if pretext is not None and pretext not in TASKS:
        raise typer.BadParameter(
            f"Unknown pretext task {pretext!r}; known are {', '.join(sorted(TASKS))}."
        )
    with report_failures():
        from braindecode_pars.cli._demonstration import run_demo

        tasks = COMPARED if all_tasks else pretext
        run_demo(data, out, simulated=simulated, pretext=tasks, seed=seed)
