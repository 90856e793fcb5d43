"""``braindecode-pars store``: a tree of recordings becomes a SignalStore."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from braindecode_pars.cli.failures import told
from braindecode_pars.signal_store import SignalStore

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
    console = Console()
    with told(f"{path} keeps what it holds; the same command goes on from there."):
        named = None if subject is None else _named_by(subject)
        reading = dict(sfreq=sfreq, subject=named, n_jobs=jobs, on_error=on_error)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r".* recordings were left out", UserWarning)
            if add:
                finished = SignalStore.open(path).append(source, **reading)
            else:
                finished = SignalStore.create(path, source, **reading, **making)
        _show(console, finished)


def _named_by(pattern: str) -> Callable[[Path], str]:
    """From a file to the person whom a pattern finds in its path."""
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"--subject {pattern!r} is no regular expression: {error}.") from error
    if expression.groups != 1:
        raise ValueError(
            f"--subject {pattern!r} has {expression.groups} groups; put parentheses around what is "
            "the person, and nowhere else."
        )

    def subject(file: Path) -> str:
        found = expression.search(file.as_posix())
        if found is None or not found[1]:
            raise ValueError(f"--subject {pattern!r} finds nobody in {file}.")
        return found[1]

    return subject


def _show(console: Console, finished: SignalStore) -> None:
    """What is in a store, and what was left out of it."""
    table = finished.recordings
    hours = table["n_times"].sum() / finished.sfreq / 3600
    channels = sorted(table["ch_names"].map(len).unique())
    console.print(
        f"{finished.path}: {len(table)} recordings of {len(finished.subjects)} people, "
        f"{hours:.1f} hours, {'-'.join(map(str, dict.fromkeys((channels[0], channels[-1]))))} "
        f"channels at {finished.sfreq:g} Hz as {finished.dtype}, "
        f"{finished.n_bytes / 1e9:.2f} GB.",
        soft_wrap=True,
        highlight=False,
    )
    people = list(map(str, finished.subjects))
    more = f" and {len(people) - 12} more" if len(people) > 12 else ""
    console.print(f"People: {', '.join(people[:12])}{more}.", soft_wrap=True, highlight=False)
    if finished.skipped:
        console.print(f"{len(finished.skipped)} recordings were left out:")
    for name, why in finished.skipped.items():
        console.print(f"  {name}: {why}", soft_wrap=True, highlight=False, markup=False)
