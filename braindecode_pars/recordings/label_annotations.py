"""Labels in annotations: those of a recording, and of the BIDS table ``_events.tsv`` beside it.

Labels become annotations with the names of their classes, of which
:func:`~braindecode_pars.recordings.cutting.event_windows` cuts windows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import mne
import numpy as np
import pandas as pd

from braindecode_pars._common.checks import listed
from braindecode_pars._common.subjects import normalized
from braindecode_pars.recordings.cutting import holds_a_window, is_bad, is_gap, omit
from braindecode_pars.recordings.search import table_beside

#: Start and duration of a labelled stretch in seconds, and its label. Without a start it is the
#: whole recording, with the duration 0 one window.
Stretch: TypeAlias = tuple[float | None, float, str]

#: Seconds by which times may be rounded: FIF files keep them in single precision.
_ROUNDING = 4e-3


def read_table(file: str | Path, folder: Path) -> pd.DataFrame:
    """Read a table of labels; all values are texts, and empty cells are missing.

    Parameters
    ----------
    file : path
        Table with commas, semicolons or tabs between its columns, in UTF-8. A relative path that
        does not exist is searched for in ``folder``.
    folder : Path
        Folder of the recordings.

    Returns
    -------
    DataFrame
        The table.

    Raises
    ------
    FileNotFoundError
        When the file does not exist.
    ValueError
        When it is no table.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings.label_annotations import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "labels.csv").write_text("file;label\\nP01.edf;rest\\n")
    ...     read_table("labels.csv", Path(folder))["label"].tolist()
    ['rest']
    """
    given = Path(file).expanduser()
    path = given if given.is_file() else folder / given
    try:
        header = path.read_text(encoding="utf-8-sig").partition("\n")[0]
        table = pd.read_csv(
            path,
            sep=max(",;\t", key=header.count),
            dtype=str,
            encoding="utf-8-sig",
            # "None" and "NA", which pandas takes for missing values, may be names of classes.
            keep_default_na=False,
            na_values=["", "n/a"],
            skipinitialspace=True,
        )
    except ValueError as error:  # also UnicodeDecodeError and pandas' own errors
        raise ValueError(f"{path} is not a table of labels in UTF-8: {error}") from error
    if not isinstance(table.index, pd.RangeIndex):
        raise ValueError(f"{path} has rows with more cells than its header.")
    return table.rename(columns=str.strip)


def label_text(value: Any) -> str:
    """Return a label as text, in one Unicode form and without blanks around it."""
    return normalized(str(value)).strip()


def times_in(table: pd.DataFrame, column: str, where: Any) -> np.ndarray:
    """Return the times of a column in seconds, NaN where its cells are empty.

    Raises
    ------
    ValueError
        When a cell is neither empty nor a number, or when a duration is negative.
    """
    given = table.get(column, pd.Series(np.nan, table.index))
    times = pd.to_numeric(given, errors="coerce")
    is_wrong = given.notna() & ~np.isfinite(times)
    is_wrong |= times < 0 if column == "duration" else False
    if is_wrong.any():
        row = is_wrong.idxmax()
        raise ValueError(
            f"{where} has the {column} {given[row]!r} in row {row + 2}; write seconds, such as "
            "90.5, and n/a for an unknown duration."
        )
    return times.to_numpy(float)


def _of_table(table: Path, *, bad_only: bool = False) -> mne.Annotations:
    """Return the events of a BIDS table, or only those that begin with "BAD"."""
    events = read_table(table, table.parent)
    absent = [name for name in ("onset", "trial_type") if name not in events]
    if absent and not bad_only:
        raise ValueError(f"{table} has no column {absent[0]!r}.")
    if absent:
        return mne.Annotations([], [], [])
    events = events.dropna(subset=["trial_type"]).fillna({"onset": "n/a"})  # not to be empty
    texts = [label_text(text) for text in events["trial_type"]]
    if bad_only:
        events = events[[is_bad(text) for text in texts]]
        texts = [text for text in texts if is_bad(text)]
    durations = np.nan_to_num(times_in(events, "duration", table))  # one of n/a is unknown
    return mne.Annotations(times_in(events, "onset", table), durations, texts)


def annotations_of(
    file: Path, raw: mne.io.BaseRaw, stretches: Sequence[Stretch] | None = None
) -> mne.Annotations:
    """Return the events of a BIDS table beside a recording, or else the recording's annotations.

    Onsets are in seconds from the first sample. Where labelled ``stretches`` are given, they are
    returned instead.

    Raises
    ------
    ValueError
        When the table has no column ``onset`` or ``trial_type``, or a time that cannot be read.
    """
    if stretches is not None:  # without a start it is the whole recording
        rows = [
            (0.0, raw.duration, label) if onset is None else (onset, duration, label)
            for onset, duration, label in stretches
        ]
        return mne.Annotations(*zip(*rows, strict=True))
    if table := table_beside(file, "events"):
        return _of_table(table)
    notes = raw.annotations
    texts = [label_text(text) for text in notes.description]
    return mne.Annotations(notes.onset - raw.first_time, notes.duration, texts)


def _in_file(file: Path) -> mne.Annotations:
    """Return the annotations in a recording, whose onsets may count from anywhere."""
    try:
        return mne.io.read_raw(file, verbose="error").annotations
    except (ValueError, OSError, RuntimeError):  # reading the recording raises the full message
        return mne.Annotations([], [], [])


def labels_in_annotations(files: Sequence[Path], seconds: float) -> list[str]:
    """Return the annotations of a folder that are labels, in alphabetical order.

    They are all that are as long as a window, or, if there are none, all without a duration.
    Annotations of gaps, and those that begin with "BAD" or "EDGE", are no labels.

    Parameters
    ----------
    files : list of Path
        Recordings.
    seconds : float
        Length of a window.

    Raises
    ------
    ValueError
        When there are none.
    """
    long, instant = set(), set()
    for file in files:
        table = table_beside(file, "events")
        for one in _of_table(table) if table else _in_file(file):
            name = label_text(one["description"])
            if is_gap(name) or is_bad(name) or name.upper().startswith("EDGE"):
                continue
            if one["duration"] == 0:
                instant.add(name)
            elif holds_a_window(one["duration"], seconds):
                long.add(name)
    if not long and not instant:
        raise ValueError(
            f"No annotation of {len(files)} recordings is as long as a window of {seconds:g} s, "
            "or without a duration; pass a shorter window_seconds, or annotate the recordings."
        )
    return sorted(long or instant)


def marks_of(raw: mne.io.BaseRaw, file: Path) -> mne.Annotations:
    """Return the gaps and bad times of a recording, also those in the BIDS table beside its file.

    Onsets are in seconds from the first sample.
    """
    own = raw.annotations
    own = own[[is_gap(text) or is_bad(text) for text in own.description]]
    marks = mne.Annotations(
        own.onset - raw.first_time, own.duration, own.description, ch_names=own.ch_names
    )
    if table := table_beside(file, "events"):
        bad = _of_table(table, bad_only=True)
        marks.append(bad.onset, bad.duration, bad.description)
    return marks


def labels_within(
    found: mne.Annotations, classes: Mapping[str, str], raw: mne.io.BaseRaw, seconds: float
) -> mne.Annotations:
    """Return the annotations that are labels, with the names of their classes.

    What is left out is counted, see :func:`~.cutting.omit`. Labels of two classes may not overlap,
    unless both have no duration.

    Parameters
    ----------
    found : Annotations
        Annotations in seconds from the first sample.
    classes : mapping of str to str
        Class of each label that is used.
    raw : Raw
        The recording.
    seconds : float
        Length of a window, which a label without a duration lasts.

    Raises
    ------
    ValueError
        When labels of two classes overlap.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.label_annotations import labels_within
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((1, 9000)), info, verbose="error")
    >>> found = mne.Annotations([0, 60], [60, 0], ["Sleep stage W", "Sleep stage R"])
    >>> labelled = labels_within(found, {"Sleep stage W": "W", "Sleep stage R": "R"}, raw, 10.0)
    >>> labelled.description.tolist(), labelled.duration.tolist()
    (['W', 'R'], [60.0, 10.0])
    """
    texts = found.description.tolist()
    found = found[[text in classes for text in texts]]
    if not len(found):
        has = listed(sorted(set(texts)), most=5)
        has = f"annotations are {has}" if has else "there are no annotations and no _events.tsv"
        omit("recordings", f"no label that was asked for; {has}", 1, 1)
        return found
    length, rounding = raw.n_times / raw.info["sfreq"], max(_ROUNDING, 0.5 / raw.info["sfreq"])
    lasts = np.where(found.duration == 0, seconds, found.duration)
    inside = np.minimum(found.onset + lasts, length) - np.maximum(found.onset, 0)
    whole, cut = (np.floor((time + rounding) / seconds) for time in (lasts, inside))
    is_outside = (cut < whole) | (inside <= 0)
    omit("labels", "all or part of which is outside the recording", is_outside.sum(), len(found))
    is_short = (whole < 1) & ~is_outside
    omit("labels", f"shorter than a window of {seconds:g} s", is_short.sum(), len(found))
    names = [classes[text] for text in found.description]
    _check_overlaps(found.onset, found.onset + lasts, names, found.duration == 0)
    return mne.Annotations(found.onset, lasts, names)


def _check_overlaps(
    starts: np.ndarray, stops: np.ndarray, names: Sequence[str], is_mark: np.ndarray
) -> None:
    """Check that a label of another class begins after one; those without a duration may overlap.

    Both are compared in the order of their starts, each with the one before that ends last.
    """
    longest = 0
    for i in np.argsort(starts, kind="stable").tolist():
        j, is_other = longest, names[i] != names[longest]
        if is_other and starts[i] < stops[j] - _ROUNDING and not (is_mark[i] and is_mark[j]):
            raise ValueError(
                f"its labels {names[j]!r}, from {starts[j]:g} s to {stops[j]:g} s, and "
                f"{names[i]!r}, from {starts[i]:g} s on, overlap; correct their times, or choose "
                "fewer labels."
            )
        longest = i if stops[i] >= stops[j] else j
