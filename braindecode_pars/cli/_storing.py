"""Make or extend a SignalStore, and print its content."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from braindecode_pars.cli._console import make_console
from braindecode_pars.signal_store import SignalStore

__all__ = ["make_store"]


def make_store(
    source: Path,
    path: Path,
    settings: Mapping[str, Any],
    *,
    add: bool,
    subject: str | None,
    **reading: Any,
) -> None:
    """Store the recordings below a folder.

    Parameters
    ----------
    source, path : Path
        Folder of recordings, and folder of the store.
    settings : mapping
        Arguments that only ``SignalStore.create`` has.
    add : bool
        Whether to add to a finished store.
    subject : str | None
        Regular expression that finds the subject in the path of a file.
    **reading
        Arguments of both ``create`` and ``append``.
    """
    find_subject = None if subject is None else _subject_finder(subject)
    with warnings.catch_warnings():
        # The command lists skipped recordings itself, below.
        warnings.filterwarnings("ignore", r".* recordings were skipped", UserWarning)
        if add:
            finished = SignalStore.open(path).append(source, subject=find_subject, **reading)
        else:
            finished = SignalStore.create(path, source, subject=find_subject, **reading, **settings)
    _show(make_console(), finished)


def _subject_finder(pattern: str) -> Callable[[Path], str]:
    """Return a function that finds the subject in the path of a file."""
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"--subject {pattern!r} is not a regular expression: {error}.") from error
    if expression.groups != 1:
        raise ValueError(
            f"--subject {pattern!r} has {expression.groups} groups; put parentheses around the "
            "subject only."
        )

    def find(file: Path) -> str:
        found = expression.search(file.as_posix())
        if found is None or not found[1]:
            raise ValueError(f"--subject {pattern!r} finds no subject in {file}.")
        return found[1]

    return find


def _show(console: Console, finished: SignalStore) -> None:
    """Print a summary of a store, its subjects, and the skipped recordings."""
    # Summary.
    table = finished.recordings
    hours = table["n_times"].sum() / finished.sfreq / 3600
    channels = sorted(table["ch_names"].map(len).unique())
    console.print(
        f"{finished.path}: {len(table)} recordings of {len(finished.subjects)} subjects, "
        f"{hours:.1f} hours, {'-'.join(map(str, dict.fromkeys((channels[0], channels[-1]))))} "
        f"channels at {finished.sfreq:g} Hz as {finished.dtype}, "
        f"{finished.n_bytes / 1e9:.2f} GB."
    )

    # Subjects, so that the user can see whether they were recognised.
    subjects = list(map(str, finished.subjects))
    more = f" and {len(subjects) - 12} more" if len(subjects) > 12 else ""
    console.print(f"Subjects: {', '.join(subjects[:12])}{more}.")

    # Skipped recordings, with the reason.
    if finished.skipped:
        console.print(f"{len(finished.skipped)} recordings were skipped:")
    for name, reason in finished.skipped.items():
        console.print(f"  {name}: {reason}")
