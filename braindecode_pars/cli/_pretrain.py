"""``braindecode-pars pretrain``: pretrain an encoder on a SignalStore."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from braindecode_pars.cli._failures import report_failures
from braindecode_pars.cli._run_options import run_config, with_run_options

__all__ = ["pretrain"]


@with_run_options
def pretrain(
    store: Annotated[Path, typer.Argument(help="Folder of a SignalStore.")],
    out: Annotated[Path, typer.Option(help="Folder for the run and its encoder.")],
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume the run in --out from its last checkpoint.")
    ] = False,
    *,
    given: dict[str, Any],
) -> None:
    """Pretrain an encoder on a store of recordings. The defaults are the paper's settings.

    On the CPU they are small enough for a laptop; --paper asks for the paper's there too, and the
    command plan tells what a run takes.

    For several GPUs or processes on one machine: torchrun --nproc-per-node N -m braindecode_pars
    pretrain ...
    """
    with report_failures(f"The last checkpoint is in {out}; use --resume to continue."):
        from braindecode_pars import runs

        config = run_config(given, resumed=out if resume else None)
        runs.pretrain(store, out, config, resume=resume)
