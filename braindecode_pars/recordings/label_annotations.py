"""Labels in the annotations of a recording, or in the table of events that BIDS puts beside it.

Annotations become labels with the names of their classes. What cannot be used of them is counted:
those outside the recording, those shorter than a window, and where two of them overlap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import mne
import numpy as np
import pandas as pd

from braindecode_pars._common.checks import listed, warn_user
from braindecode_pars._common.subjects import normalized
from braindecode_pars.recordings.cutting import holds_a_window, is_bad, is_gap, omit
from braindecode_pars.recordings.search import table_beside

#: Start and duration of a labelled stretch in seconds, and its label. Without a start it is the
#: whole recording, without a duration one window.
Stretch: TypeAlias = tuple[float | None, float | None, str]

#: Seconds by which annotations may overlap: FIF files round times.
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
    """Return a text in one spelling: in one Unicode form, and without blanks around it."""
    return normalized(str(value)).strip()


def _of_table(table: Path, are_labels: bool = True) -> mne.Annotations:
    events = read_table(table, table.parent)
    absent = [name for name in ("onset", "trial_type") if name not in events]
    if absent and are_labels:
        raise ValueError(f"{table} has no column {absent[0]!r}.")
    if absent:
        return mne.Annotations([], [], [])
    events = events.dropna(subset=["trial_type"])
    if not are_labels:
        marks = [is_bad(label_text(text)) for text in events["trial_type"]]
        events = events[np.array(marks, dtype=bool)]
    onsets = _times(events, "onset", table)
    durations = _times(events, "duration", table) if "duration" in events else 0 * onsets
    texts = [label_text(text) for text in events["trial_type"]]
    return mne.Annotations(onsets, durations.fillna(0), texts)  # one of n/a is unknown


def _times(events: pd.DataFrame, column: str, table: Path) -> pd.Series:
    """Return a column of a table of events in seconds; "n/a" is NaN in that of the durations."""
    times = pd.to_numeric(events[column], errors="coerce")
    is_wrong = ~np.isfinite(times)
    if column == "duration":
        is_wrong = (is_wrong & events[column].notna()) | (times < 0)
    if is_wrong.any():
        row = events[is_wrong].iloc[0]
        raise ValueError(
            f"{table} has the {column} {row[column]!r} of {row['trial_type']!r} in row "
            f"{row.name + 2}; write seconds, such as 90.5, and n/a for an unknown duration."
        )
    return times


def annotations_of(file: Path, raw: mne.io.BaseRaw, *, are_labels: bool = True) -> mne.Annotations:
    """Return the annotations of a recording, in seconds from its first sample.

    Parameters
    ----------
    file : Path
        The recording.
    raw : Raw
        What its reader returned. With gaps, only this has the annotations at their samples.
    are_labels : bool
        Whether labels are among them; else only bad times of a table are read, if it has some.
    """
    if table := table_beside(file, "events"):
        try:
            return _of_table(table, are_labels)
        except ValueError as error:
            if are_labels:
                raise
            warn_user(f"Bad times in the table beside {file.name} are not known: {error}")
    notes = raw.annotations
    texts = [label_text(text) for text in notes.description]
    return mne.Annotations(notes.onset - raw.first_time, notes.duration, texts)


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
            "or without a duration; pass a shorter window_seconds, annotate the recordings, or "
            "add tables _events.tsv as in BIDS."
        )
    return sorted(long or instant)


def marks_of(raw: mne.io.BaseRaw, found: mne.Annotations, labels: Iterable[str]) -> mne.Annotations:
    """Return the gaps and bad times of a recording, in seconds from its first sample.

    Parameters
    ----------
    raw : Raw
        The recording.
    found : Annotations
        Its annotations of :func:`annotations_of`, which may be those of another file.
    labels : iterable of str
        Annotations that are labels, even if they begin with "BAD".
    """
    own = raw.annotations
    own = own[[is_gap(text) or (is_bad(text) and text not in labels) for text in own.description]]
    marks = mne.Annotations(
        own.onset - raw.first_time, own.duration, own.description, ch_names=own.ch_names
    )
    # Those of a table are often in the file too, which may name their channels.
    known = set(zip(marks.onset.round(3), map(label_text, marks.description), strict=True))
    bad = found[
        [
            is_bad(text) and text not in labels and (onset, text) not in known
            for onset, text in zip(found.onset.round(3), found.description, strict=True)
        ]
    ]
    marks.append(bad.onset, bad.duration, bad.description)
    return marks


def labels_within(
    found: mne.Annotations, classes: Mapping[str, str], raw: mne.io.BaseRaw, seconds: float
) -> mne.Annotations:
    """Return the annotations that are labels, with the names of their classes.

    Where labels of two classes overlap, there is no label; two labels without a duration may
    overlap. What is left out is counted, see :func:`~.cutting.omit`.

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
        When all labels are outside the recording.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.label_annotations import labels_within
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((1, 9000)), info, verbose="error")
    >>> found = mne.Annotations([0, 50], [60, 40], ["W", "R"])
    >>> labelled = labels_within(found, {"W": "W", "R": "R"}, raw, 10.0)
    >>> labelled.onset.tolist(), labelled.duration.tolist()
    ([0.0, 60.0], [50.0, 30.0])
    """
    texts, spellings = found.description.tolist(), {name.casefold(): name for name in classes}
    for text in sorted({text for text in texts if text not in classes}):
        if (same := spellings.get(text.casefold())) is not None:
            why = f"{text!r}, which differs from the label {same!r} in its case only"
            omit("labels", why, texts.count(text), len(texts))
    found = found[[text in classes for text in texts]]
    if not len(found):
        has = listed(sorted(set(texts)), most=5)
        has = f"annotations are {has}" if has else "there are no annotations and no _events.tsv"
        omit("recordings", f"no label that was asked for; {has}", 1, 1)
        return found
    # Times
    length, rounding = raw.n_times / raw.info["sfreq"], max(_ROUNDING, 0.5 / raw.info["sfreq"])
    is_mark = found.duration == 0
    lasts = np.where(is_mark, seconds, found.duration)
    inside = np.minimum(found.onset + lasts, length) - np.maximum(found.onset, 0)
    if (inside <= 0).all():
        raise ValueError(
            f"all {len(found)} labels are outside the recording, which has {length:g} s; the first "
            f"begins at {found.onset[0]:g} s. Correct their times."
        )
    whole, cut = (np.floor((time + rounding) / seconds) for time in (lasts, inside))
    is_outside = (cut < whole) | (inside <= 0)
    omit("labels", "all or part of which is outside the recording", is_outside.sum(), len(found))
    is_short = (whole < 1) & ~is_outside
    omit("labels", f"shorter than a window of {seconds:g} s", is_short.sum(), len(found))
    # Overlaps
    names = [classes[text] for text in found.description]
    overlaps = _overlaps(found.onset, found.onset + lasts, names, is_mark)
    why = "that overlap a label of another class, where neither is used"
    omit("labels", why, sum(map(bool, overlaps)), len(found))
    parts = []
    for start, duration, name, taken in zip(found.onset, lasts, names, overlaps, strict=True):
        stop = start + duration
        for first, last in sorted(taken):
            parts.append((start, first - start, name))
            start, duration = max(start, last), stop - max(start, last)
        parts.append((start, duration, name))
    used = [part for part in parts if part[1] > 0]
    return mne.Annotations(*zip(*used, strict=True)) if used else mne.Annotations([], [], [])


def _overlaps(
    starts: np.ndarray, stops: np.ndarray, names: Sequence[str], is_mark: np.ndarray
) -> list[list[tuple[float, float]]]:
    """Return the parts of each label that one of another class overlaps, up to rounding."""
    found: list[list[tuple[float, float]]] = [[] for _ in names]
    order = np.argsort(starts, kind="stable").tolist()
    for position, i in enumerate(order):
        for j in order[position + 1 :]:
            if starts[j] >= stops[i] - _ROUNDING:
                break
            end = min(stops[i], stops[j])
            if names[i] != names[j] and not (is_mark[i] and is_mark[j]):
                found[i].append((starts[j], end))
                found[j].append((starts[j], end))
    return found


def to_annotations(
    stretches: Iterable[Stretch], classes: Mapping[str, str], raw: mne.io.BaseRaw, seconds: float
) -> mne.Annotations:
    """Return the stretches as annotations of a recording, with the names of their classes.

    Parameters
    ----------
    stretches : iterable of Stretch
        Labels of the recording.
    classes : mapping of str to str
        Class of each label that is used.
    raw : Raw
        The recording.
    seconds : float
        Length of a window, which a stretch without a duration lasts.

    Returns
    -------
    Annotations
        Onsets in seconds from the first sample.

    Raises
    ------
    ValueError
        When a stretch ends after the recording.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.label_annotations import to_annotations
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((1, 6000)), info, verbose="error")
    >>> print(*to_annotations([(30, None, "2")], {"2": "N2"}, raw, 30.0).description)
    N2
    """
    length = raw.n_times / raw.info["sfreq"]
    notes = mne.Annotations([], [], [])
    for onset, duration, label in stretches:
        start = 0.0 if onset is None else onset
        lasts = (length if onset is None else seconds) if duration is None else duration
        # A file may end by a rounded sample before its last label.
        if start + lasts > length + 1.5 / raw.info["sfreq"]:
            raise ValueError(
                f"its label {label!r} at {start:g} s ends at {start + lasts:g} s, but the "
                f"recording has {length:g} s; correct its times, or remove it."
            )
        if label in classes:
            notes.append(start, lasts, classes[label])
    return notes
