"""Make or extend a SignalStore, and show what is in it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from braindecode_pars.signal_store import SignalStore

__all__ = ["make_store"]


def make_store(
    source: Path,
    path: Path,
    making: Mapping[str, Any],
    *,
    add: bool,
    subject: str | None,
    **reading: Any,
) -> None:
    """Store the recordings below a folder.

    Parameters
    ----------
    source, path : Path
        Folder of recordings, and of the store.
    making : mapping
        Arguments of ``SignalStore.create`` only.
    add : bool
        Add to a finished store.
    subject : str | None
        Regular expression that finds the subject in the path of a file.
    **reading
        Arguments of both ``create`` and ``append``.
    """
    named = None if subject is None else _named_by(subject)
    with warnings.catch_warnings():  # they are listed below
        warnings.filterwarnings("ignore", r".* recordings were left out", UserWarning)
        if add:
            finished = SignalStore.open(path).append(source, subject=named, **reading)
        else:
            finished = SignalStore.create(path, source, subject=named, **reading, **making)
    _show(Console(), finished)


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
