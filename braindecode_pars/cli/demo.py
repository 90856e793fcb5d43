"""``braindecode-pars demo``: from data to scores in minutes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from braindecode_pars.cli.failures import told
from braindecode_pars.demo import run_demo
from braindecode_pars.pretext import PRETEXT_TASKS

__all__ = ["demo"]

#: The paper's comparison; its fifth, training from scratch, is in every demo.
RIVALS = ("pars", "mae", "mp3", "droppos")


def demo(
    data: Annotated[
        Path | None,
        typer.Option(help="Folder in MNE's eegbci layout; without it, sleep is simulated."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Where to write.")] = Path("braindecode-pars-demo"),
    pretext: Annotated[
        str | None,
        typer.Option(
            help=f"Pretext task: {', '.join(PRETEXT_TASKS)}; pars if not given.", metavar="NAME"
        ),
    ] = None,
    all_tasks: Annotated[
        bool,
        typer.Option("--all", help="PARS, MAE, MP3, DropPos and no pretraining, side by side."),
    ] = False,
    seed: Annotated[int, typer.Option(help="Of the simulation and all training.")] = 0,
) -> None:
    """Pretrain without labels, fine-tune with few, score on people left out."""
    if all_tasks and pretext is not None:
        raise typer.BadParameter("--all takes every task; leave --pretext out.")
    pretext = pretext or "pars"
    if pretext not in PRETEXT_TASKS:
        known = ", ".join(sorted(PRETEXT_TASKS))
        raise typer.BadParameter(f"{pretext!r} is no pretext task; known are {known}.")
    with told():
        run_demo(data, out, pretext=RIVALS if all_tasks else pretext, seed=seed)
