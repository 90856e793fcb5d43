"""Annotations of a recording: its own, or those of the table that BIDS has beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import mne
import numpy as np
import pandas as pd

from braindecode_pars.recordings._gaps import is_gap
from braindecode_pars.recordings._search import table_beside
from braindecode_pars.recordings.cutting import holds_a_window

__all__ = ["annotations_of", "labels_in_annotations"]


def annotations_of(file: Path, raw: mne.io.BaseRaw) -> mne.Annotations:
    """Return the annotations of a recording, in seconds from its first sample.

    Parameters
    ----------
    file : Path
        The recording.
    raw : Raw
        What its reader returned. With gaps, only this has the annotations at their samples.
    """
    table = table_beside(file, "events")
    if table is not None:
        return _of_table(table)
    notes = raw.annotations
    return mne.Annotations(notes.onset - raw.first_time, notes.duration, notes.description)


def _in_file(file: Path) -> mne.Annotations:
    """Return the annotations of a file without reading its samples; their onsets may be others."""
    none = mne.Annotations([], [], [])
    if file.suffix.lower() == ".hea":  # WFDB annotations have no duration and mean heart beats
        return none
    try:
        if file.suffix.lower() == ".vhdr":  # MNE reads them only together with the header
            return mne.io.read_raw(file, verbose="error").annotations
        return mne.read_annotations(file)
    except (ValueError, OSError, RuntimeError):  # reading the recording raises the full message
        return none


def _of_table(table: Path) -> mne.Annotations:
    # "None" and "NA", which pandas takes for missing values, may be names of classes.
    missing = dict(keep_default_na=False, na_values=["", "n/a"])
    events = pd.read_csv(table, sep="\t", dtype=str, **missing)
    absent = [name for name in ("onset", "trial_type") if name not in events]
    if absent:
        raise ValueError(f"{table} has no column {absent[0]!r}.")
    events = events.dropna(subset=["trial_type"])
    onsets = pd.to_numeric(events["onset"], errors="coerce")
    if onsets.isna().any():
        wrong = events[onsets.isna()].iloc[0]
        raise ValueError(
            f"{table} has the onset {wrong['onset']!r} of {wrong['trial_type']!r}; write seconds "
            "from the start of the recording, such as 90.5."
        )
    durations = events["duration"] if "duration" in events else np.zeros(len(events))
    durations = pd.to_numeric(durations, errors="coerce").fillna(0)  # "n/a"
    return mne.Annotations(onsets, durations, events["trial_type"])


def labels_in_annotations(files: Sequence[Path], seconds: float) -> list[str]:
    """Return the annotations that may be labels, in alphabetical order.

    They are those as long as a window; if there are none, those without a duration. Annotations of
    gaps, and those that begin with "BAD" or "EDGE", are none.

    Parameters
    ----------
    files : list of Path
        Recordings.
    seconds : float
        Length of a window.

    Raises
    ------
    ValueError
        When no annotation is a label.
    """
    long, instant = set(), set()
    for file in files:
        table = table_beside(file, "events")
        for one in _in_file(file) if table is None else _of_table(table):
            name = str(one["description"])
            if is_gap(name) or name.upper().startswith(("BAD", "EDGE")):
                continue
            if one["duration"] == 0:
                instant.add(name)
            elif holds_a_window(one["duration"], seconds):
                long.add(name)
    if not long and not instant:
        raise ValueError(
            f"No annotation of {len(files)} recordings is as long as a window of {seconds:g} s, "
            "or without a duration; pass a shorter window_seconds, annotate the recordings, or "
            "add tables _events.tsv as in BIDS."
        )
    return sorted(long or instant)
