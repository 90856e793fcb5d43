"""``braindecode-pars plan``: what a pretraining run takes, before it is started."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from braindecode_pars.cli._failures import report_failures
from braindecode_pars.cli._run_options import run_config, with_run_options

__all__ = ["plan"]


@with_run_options
def plan(
    corpus: Annotated[
        Path | None,
        typer.Argument(help="Folder of a SignalStore or of recordings.", show_default=False),
    ] = None,
    n_windows: Annotated[
        int | None,
        typer.Option(
            help="Number of windows in a pass, for a corpus that is not here.", metavar="N", min=1
        ),
    ] = None,
    sfreq: Annotated[
        float | None,
        typer.Option(help="Sampling rate of the store in Hz. Default: that of the recordings."),
    ] = None,
    n_chans: Annotated[
        int,
        typer.Option(help="Number of channels, for a corpus that is not here.", metavar="N", min=1),
    ] = 1,
    *,
    given: dict[str, Any],
) -> None:
    """Print disk, memory, steps and hours of a pretraining run. Nothing is started.

    Takes the options of pretrain, and measures a step on this machine for some seconds.
    """
    if (corpus is None) == (n_windows is None):
        raise typer.BadParameter("Pass the folder of a corpus, or --n-windows and --sfreq.")
    if corpus is None and sfreq is None:
        raise typer.BadParameter("--n-windows needs --sfreq, the sampling rate of the store.")
    with report_failures():
        from braindecode_pars.cli._planning import show_plan
        from braindecode_pars.runs import CorpusSize

        config = run_config(given)
        seconds = config.window_seconds
        if corpus is None:
            size = CorpusSize.of_numbers(
                n_windows, sfreq=sfreq, window_seconds=seconds, n_chans=n_chans
            )
        else:
            size = CorpusSize.of_path(corpus, seconds, sfreq, config.exclude_subjects)
        show_plan(size, config)
