"""``braindecode-pars store``: make a SignalStore from a folder of recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from braindecode_pars.cli._failures import report_failures

__all__ = ["store"]


def store(
    source: Annotated[
        Path, typer.Argument(help="Folder with EDF, BDF, FIF or WFDB recordings at any depth.")
    ],
    path: Annotated[Path, typer.Argument(help="Folder of the store.", metavar="STORE")],
    sfreq: Annotated[
        float | None,
        typer.Option(
            help="Sampling rate of the store in Hz; recordings are resampled. Default: the "
            "recordings' own rate, which must be the same in all."
        ),
    ] = None,
    low: Annotated[float | None, typer.Option(help="Lower edge of the band-pass in Hz.")] = None,
    high: Annotated[float | None, typer.Option(help="Upper edge of the band-pass in Hz.")] = None,
    mains: Annotated[float | None, typer.Option(help="Frequency of the notch in Hz.")] = None,
    channel: Annotated[
        list[str] | None,
        typer.Option(
            help="EEG channel to keep, in the recordings that have it. May be repeated. Default: "
            "all EEG channels.",
            metavar="NAME",
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            help="New reference: average, of the channels that are stored. Default: the "
            "recordings' own reference.",
            metavar="NAME",
        ),
    ] = None,
    subject: Annotated[
        str | None,
        typer.Option(
            help="Regular expression that finds the subject in the path of a file below SOURCE, "
            "such as 'S(\\d+)R'. Its group is the subject. Default: the BIDS label sub-, else the "
            "first folder, else the name of the file.",
            metavar="PATTERN",
        ),
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(
            help="Type of the stored samples: int16, float16 or float32. Default: int16.",
            metavar="NAME",
        ),
    ] = None,
    add: Annotated[
        bool,
        typer.Option(
            "--append",
            help="Add recordings to a finished store, with the store's filters, channels and type.",
        ),
    ] = False,
    jobs: Annotated[int, typer.Option(help="Number of recordings to read in parallel.")] = 1,
    on_error: Annotated[
        str,
        typer.Option(
            help="Action for a recording that cannot be read: raise ends the command, warn skips "
            "the recording.",
            metavar="NAME",
        ),
    ] = "raise",
) -> None:
    """Store recordings for pretraining. After an interruption, the same command resumes."""
    settings = dict(
        low=low, high=high, mains=mains, channels=channel, reference=reference, dtype=dtype
    )
    settings = {name: value for name, value in settings.items() if value is not None}
    if add and settings:
        option = "channel" if "channels" in settings else next(iter(settings))
        raise typer.BadParameter(f"--append uses the store's own settings; omit --{option}.")
    with report_failures(
        f"Finished recordings are kept in {path}; run the same command to resume."
    ):
        from braindecode_pars.cli._storing import make_store

        make_store(
            source,
            path,
            settings,
            add=add,
            sfreq=sfreq,
            subject=subject,
            n_jobs=jobs,
            on_error=on_error,
        )
