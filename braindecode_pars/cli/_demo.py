"""``braindecode-pars demo``: from data to scores in minutes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from braindecode_pars.cli._failures import failures_told
from braindecode_pars.cli._names import TASKS

__all__ = ["demo"]

#: The paper's comparison; its fifth, training from scratch, is in every demo.
COMPARED = ("pars", "mae", "mp3", "droppos")


def demo(
    data: Annotated[
        Path | None,
        typer.Option(help="Folder in MNE's eegbci layout; without it, sleep is simulated."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("braindecode-pars-demo"),
    pretext: Annotated[
        str | None,
        typer.Option(help=f"Pretext task: {', '.join(TASKS)}; pars if not given.", metavar="NAME"),
    ] = None,
    all_tasks: Annotated[
        bool,
        typer.Option("--all", help="PARS, MAE, MP3, DropPos and no pretraining, side by side."),
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the simulation and all training.")] = 0,
) -> None:
    """Pretrain without labels, fine-tune with few, score on held-out subjects."""
    if all_tasks and pretext is not None:
        raise typer.BadParameter("--all takes every task; leave --pretext out.")
    pretext = pretext or "pars"
    if pretext not in TASKS:
        raise typer.BadParameter(
            f"Unknown pretext task {pretext!r}; known are {', '.join(sorted(TASKS))}."
        )
    with failures_told():
        from braindecode_pars.cli._demonstration import run_demo

        run_demo(data, out, pretext=COMPARED if all_tasks else pretext, seed=seed)
