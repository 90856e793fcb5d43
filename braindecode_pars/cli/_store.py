"""``braindecode-pars store``: a tree of recordings becomes a SignalStore."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from braindecode_pars.cli._failures import failures_told

__all__ = ["store"]


def store(
    source: Annotated[
        Path, typer.Argument(help="Folder with EDF, BDF, FIF or WFDB recordings at any depth.")
    ],
    path: Annotated[Path, typer.Argument(help="Folder of the store.", metavar="STORE")],
    sfreq: Annotated[
        float | None, typer.Option(help="Sampling rate to bring recordings to, in Hz.")
    ] = None,
    low: Annotated[float | None, typer.Option(help="Lower edge of a band-pass in Hz.")] = None,
    high: Annotated[float | None, typer.Option(help="Upper edge of a band-pass in Hz.")] = None,
    mains: Annotated[float | None, typer.Option(help="Frequency of a notch in Hz.")] = None,
    channel: Annotated[
        list[str] | None,
        typer.Option(
            help="EEG channel to keep where it is there; may be repeated.", metavar="NAME"
        ),
    ] = None,
    subject: Annotated[
        str | None,
        typer.Option(
            help="Regular expression whose group is the person in a file's path below SOURCE, such "
            "as 'S(\\d+)R'. Without it: BIDS' sub- label, else the first folder, else the name of "
            "the file.",
            metavar="PATTERN",
        ),
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(help="int16, float16 or float32; int16 if not given.", metavar="NAME"),
    ] = None,
    add: Annotated[
        bool,
        typer.Option(
            "--append", help="Add to a finished store, with the filters that it was made with."
        ),
    ] = False,
    jobs: Annotated[int, typer.Option(help="Recordings that are read at a time.")] = 1,
    on_error: Annotated[
        str,
        typer.Option(
            help="raise or warn: end at a recording that cannot be read, or leave it out.",
            metavar="NAME",
        ),
    ] = "raise",
) -> None:
    """Store recordings for pretraining; the same command goes on after an interruption."""
    making = dict(low=low, high=high, mains=mains, channels=channel, dtype=dtype)
    making = {name: value for name, value in making.items() if value is not None}
    if add and making:
        option = "channel" if "channels" in making else next(iter(making))
        raise typer.BadParameter(
            f"--append keeps to what the store was made with; leave --{option} out."
        )
    with failures_told(f"{path} keeps what it holds; the same command resumes it."):
        from braindecode_pars.cli._storing import make_store

        make_store(
            source,
            path,
            making,
            add=add,
            sfreq=sfreq,
            subject=subject,
            n_jobs=jobs,
            on_error=on_error,
        )
