"""Labels of recordings: where they are, and which classes and targets they become.

Labels are in annotations of the recordings or of the BIDS table beside them, in the names of files,
or in a table of all files, with a row for each labelled stretch.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from pathlib import Path, PurePath
from typing import Any, NamedTuple, TypeAlias

import mne
import numpy as np
import pandas as pd

from braindecode_pars._common.files import checksum_of
from braindecode_pars._common.subjects import normalized, without_ending
from braindecode_pars.recordings.cutting import holds_a_window, is_gap
from braindecode_pars.recordings.labelled import (
    check_ordered,
    classes_of_labels,
    given_classes,
    targets_of,
)
from braindecode_pars.recordings.loading import Recording
from braindecode_pars.recordings.search import table_beside

log = logging.getLogger(__name__)

#: Where labels are, see :func:`datasets.folder.load <braindecode_pars.datasets.folder.load>`.
Labels: TypeAlias = (
    str | Path | pd.DataFrame | Sequence[str] | Mapping[str, int] | Mapping[str, str] | None
)


def labels_of_files(
    labels: Labels, root: Path, files: Sequence[Path], seconds: float
) -> dict[Path, FileLabels] | None:
    """Return the labels in names of files or in a table; None for labels in annotations.

    Parameters
    ----------
    labels : list | dict | str | path | DataFrame | None
        Where labels are.
    root : Path
        Folder of all recordings.
    files : list of Path
        The recordings.
    seconds : float
        Length of a window.

    Raises
    ------
    TypeError
        When ``labels`` are none of these.
    ValueError
        When ``labels`` is a text that is neither a pattern of names nor the path of a table, or
        when the labels are not those of the files.

    Examples
    --------
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings.label_files import labels_of_files
    >>> root, file = Path("data"), Path("data", "P01_rest.edf")
    >>> labels_of_files("{subject}_{label}", root, [file], 30)[file].subject
    'P01'
    >>> labels_of_files(["W", "N1"], root, [file], 30) is None
    True
    """
    if isinstance(labels, pd.DataFrame):
        return labels_in_table(labels, root, files, seconds, "The table of labels")
    if labels is None:
        return None
    if not isinstance(labels, (str, Path)):
        check_ordered("labels", labels)
        return None
    text = str(labels)
    if is_name_pattern(text):
        return labels_in_names(text, root, files)
    if text.lower().endswith((".csv", ".tsv")):
        return labels_in_table(read_table(text, root), root, files, seconds, text)
    raise ValueError(
        f"labels is the text {text!r}; give a list of labels, [{text!r}], a template of names "
        "such as '{subject}_{label}', or the path of a .csv or .tsv file."
    )


def classes_and_targets(
    labels: Labels,
    classes: Sequence[str] | Mapping[str, str] | None,
    of_files: Mapping[Path, FileLabels] | None,
    files: Sequence[Path],
    seconds: float,
) -> tuple[dict[str, str], dict[str, int]]:
    """Return the class of each label, and the target of each class.

    Parameters
    ----------
    labels : list | dict | str | path | DataFrame | None
        Where labels are; for those in annotations also which they are.
    classes : list of str | mapping of str to str | None
        As in :func:`~braindecode_pars.recordings.labelled.classes_of_labels`.
    of_files : mapping of Path to FileLabels | None
        What :func:`labels_of_files` returned.
    files : list of Path
        Recordings in whose annotations labels are searched for if none are given.
    seconds : float
        Length of a window.

    Raises
    ------
    ValueError
        When there are no labels, or ``classes`` are given for labels in annotations.

    Examples
    --------
    >>> from braindecode_pars.recordings.label_files import classes_and_targets
    >>> classes_and_targets({"Sleep stage W": "W"}, None, None, [], 30)
    ({'Sleep stage W': 'W'}, {'W': 0})
    """
    if of_files is not None:
        found = {stretch.label for one in of_files.values() for stretch in one.stretches}
        names = classes_of_labels(found, classes)
    elif classes is not None:
        raise ValueError(
            "classes is for labels in names of files or in a table; write the classes of "
            "annotations as labels={description: class}."
        )
    elif isinstance(labels, Mapping):
        return given_classes(labels)
    else:
        assert not isinstance(labels, Path)  # the labels of a table are in of_files
        in_files = labels_in_annotations(files, seconds) if labels is None else labels
        names = {str(label): str(label) for label in in_files}
    if not names:
        raise ValueError("There are no labels: the list or the column of labels is empty.")
    targets = targets_of(names)
    log.info("The labels are %s, with the targets 0, 1, ...", ", ".join(targets))
    return names, targets


_COLUMNS = ("subject", "file", "label", "onset", "duration")
#: Seconds by which rounded labels may overlap.
_TOLERANCE = 1e-3

#: A whole number as pandas and spreadsheets write it in a column with empty cells.
_WHOLE = re.compile(r"(-?[0-9]+)\.0+")


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
    >>> from braindecode_pars.recordings.label_files import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "labels.csv").write_text("file;label\\nP01.edf;rest\\n")
    ...     read_table("labels.csv", Path(folder))["label"].tolist()
    ['rest']
    """
    given = Path(file).expanduser()
    path = given if given.is_file() else folder / given
    if not path.is_file():
        raise FileNotFoundError(
            f"labels={str(file)!r} is a file that does not exist, neither here nor in {folder}."
        )
    try:
        text = path.read_text(encoding="utf-8-sig")
        header = text.partition("\n")[0]
        separator = max(",;\t", key=header.count)
        table = pd.read_csv(
            path,
            sep=separator,
            dtype=str,
            encoding="utf-8-sig",
            keep_default_na=False,
            na_values=["", "n/a"],
            skipinitialspace=True,
        )
        if not isinstance(table.index, pd.RangeIndex):
            raise ValueError("its rows have more cells than its header")
        return table.rename(columns=str.strip)
    except (ValueError, OSError) as error:  # also UnicodeDecodeError and pandas' own errors
        raise ValueError(f"{path} is not a table of labels in UTF-8: {error}") from error


def labels_in_table(
    table: pd.DataFrame, root: Path, files: Sequence[Path], seconds: float, where: str
) -> dict[Path, FileLabels]:
    """Return the labels of each file.

    Parameters
    ----------
    table : DataFrame
        Columns ``file`` and ``label``, and perhaps ``subject``, ``onset`` and ``duration``, see
        :func:`datasets.folder.load <braindecode_pars.datasets.folder.load>`.
    root : Path
        Folder of all recordings.
    files : list of Path
        The recordings.
    seconds : float
        Length of a window.
    where : str
        Name of the table, for error messages.

    Returns
    -------
    dict of Path to FileLabels
        Labels of all files; none for a file whose only row has no label.

    Raises
    ------
    ValueError
        When the table lacks a column or has an unknown one, when its files are not those of the
        folder, or when a file has no label, labels that overlap or are shorter than a window, or
        two subjects.

    Examples
    --------
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from braindecode_pars.recordings.label_files import labels_in_table
    >>> table = pd.DataFrame({"file": ["a.edf"], "label": ["N2"], "onset": [30], "duration": [60]})
    >>> [labels] = labels_in_table(table, Path("d"), [Path("d", "a.edf")], 30, "table").values()
    >>> labels.stretches
    (Stretch(onset=30.0, duration=60.0, label='N2'),)
    """
    _check_columns(table, where)
    rows_of: dict[Path, list[dict[str, Any]]] = {}
    known = _names_of(root, files)
    for row in table.to_dict("records"):
        rows_of.setdefault(_file_of(row, known, where), []).append(row)
    without = [file for file in files if file not in rows_of]
    if without:
        raise ValueError(
            f"{where} has no row of {_listed(without, root)}; add the label, or a row with an "
            "empty label, which leaves the file out."
        )
    labels = {file: _labels_of(file, rows_of[file], where) for file in files}
    _check_lengths(labels, seconds, where)
    return labels


def _check_columns(table: pd.DataFrame, where: str) -> None:
    absent = [name for name in ("file", "label") if name not in table]
    unknown = [str(name) for name in table if name not in _COLUMNS]
    if absent or unknown:
        wrong = f"no column {absent[0]!r}" if absent else f"the unknown column {unknown[0]!r}"
        raise ValueError(
            f"{where} has {wrong}; its columns are {', '.join(map(str, table))}. It needs 'file' "
            "and 'label', and may have 'subject', 'onset' and 'duration', both in seconds; rename "
            "or remove others."
        )
    if "duration" in table and "onset" not in table:
        raise ValueError(f"{where} has durations without onsets; add the column 'onset'.")


def _names_of(root: Path, files: Sequence[Path]) -> dict[str, list[Path]]:
    """Return the files that a text may mean: a path below the folder or a name, or its stem."""
    known: dict[str, list[Path]] = {}
    for file in files:
        path = file.relative_to(root)
        names = (normalized(path.as_posix()), normalized(path.name))
        for name in dict.fromkeys((*names, *map(without_ending, names))):
            known.setdefault(name, []).append(file)
    return known


def _file_of(row: dict[str, Any], known: dict[str, list[Path]], where: str) -> Path:
    if pd.isna(row["file"]):
        raise ValueError(f"{where} has a row without a file (label {row['label']!r}); fill it in.")
    name = _text(row["file"]).replace("\\", "/").removeprefix("./")
    found = known.get(name, [])
    if not found:
        raise ValueError(
            f"{where} names the file {name!r}, which is not in the folder; correct the name, write "
            "it as a path below the folder, or remove the row."
        )
    if len(found) > 1:
        raise ValueError(
            f"{where} names the file {name!r}, which may be {found[0]} or {found[1]}; write its "
            "path below the folder."
        )
    return found[0]


def _labels_of(file: Path, rows: list[dict[str, Any]], where: str) -> FileLabels:
    subject = _subject_of(file, rows, where)
    stretches = [
        Stretch(_seconds(row, "onset", where), _seconds(row, "duration", where), label)
        for row in rows
        if (label := _label_of(row["label"]))
    ]
    has_whole = any(stretch.onset is None for stretch in stretches)
    check = _check_whole if has_whole else _check_apart
    check(f"{where}: {file.name}", stretches)
    return FileLabels(tuple(stretches), subject)


def _text(value: Any) -> str:
    """Return a text in one spelling: in one Unicode form, and without blanks around it."""
    return normalized(str(value)).strip()


def _label_of(value: Any) -> str:
    """Return a label in one spelling; an empty text for an empty cell."""
    text = "" if pd.isna(value) else _text(value)
    whole = _WHOLE.fullmatch(text)
    return whole[1] if whole else text


def _subject_of(file: Path, rows: list[dict[str, Any]], where: str) -> Any:
    found = [row.get("subject") for row in rows]
    found = [_text(subject) or None if isinstance(subject, str) else subject for subject in found]
    subjects = list(dict.fromkeys(found))
    if len(subjects) > 1 or ("subject" in rows[0] and pd.isna(subjects[0])):
        named = " and ".join("none" if pd.isna(subject) else str(subject) for subject in subjects)
        raise ValueError(
            f"{where} names the subject of {file.name} as {named}; write the same subject in each "
            "row of the file."
        )
    return subjects[0]


def _seconds(row: dict[str, Any], column: str, where: str) -> float | None:
    """Return a time in seconds; None for an empty cell."""
    text = row.get(column)
    if text is None or pd.isna(text):
        return None
    at = f"{where} has the {column} {text!r} in a row of {row['file']}"
    try:
        value = float(text)
    except (TypeError, ValueError):
        is_clock = isinstance(text, str) and ":" in text
        what = "a clock time" if is_clock else "no number with a decimal point"
        raise ValueError(
            f"{at}, which is {what}; write seconds from the start of the recording, such as 90.5."
        ) from None
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{at}; it must be a number of seconds of at least 0.")
    return None if column == "duration" and value == 0 else value


def _check_whole(name: str, stretches: list[Stretch]) -> None:
    """Check the labels of a file of which at least one has no onset."""
    if len(stretches) > 1:
        labels = " and ".join(dict.fromkeys(repr(stretch.label) for stretch in stretches))
        raise ValueError(
            f"{name} has {len(stretches)} rows, not all with an onset (label {labels}); give each "
            "row an onset, or the file one row, which labels the whole recording."
        )
    if stretches[0].duration is not None:
        raise ValueError(
            f"{name} has a duration without an onset (label {stretches[0].label!r}); add the "
            "onset, or remove the duration to label the whole recording."
        )


def _check_apart(name: str, stretches: list[Stretch]) -> None:
    """Check that labels with onsets do not overlap, as far as their durations are known."""
    timed = [(stretch.onset, stretch) for stretch in stretches if stretch.onset is not None]
    for (start, first), (next_start, second) in pairwise(sorted(timed, key=itemgetter(0))):
        end = start + (first.duration or 0)
        if next_start < end - _TOLERANCE or next_start == start:
            raise ValueError(
                f"{name} has labels that overlap: {first.label!r} from {start:g} s to {end:g} s, "
                f"and {second.label!r} from {next_start:g} s; correct their times."
            )


def _check_lengths(labels: Mapping[Path, FileLabels], seconds: float, where: str) -> None:
    short = [
        (file, stretch)
        for file, found in labels.items()
        for stretch in found.stretches
        if stretch.duration is not None and not holds_a_window(stretch.duration, seconds)
    ]
    if short:
        file, stretch = short[0]
        count = "a label that is" if len(short) == 1 else f"{len(short)} labels that are"
        raise ValueError(
            f"{where} has {count} shorter than a window of {seconds:g} s: {stretch.label!r} of "
            f"{file.name} at {stretch.onset:g} s has {stretch.duration:g} s; pass a shorter "
            "window_seconds, or remove such rows."
        )


def _listed(files: Sequence[Path], root: Path) -> str:
    names = [file.relative_to(root).as_posix() for file in files[:5]]
    more = f" and {len(files) - 5} more files" if len(files) > 5 else ""
    return f"{', '.join(names)}{more}"


_FIELDS = ("label", "subject")
_NAMED_GROUP = "(?P<"


def is_name_pattern(text: str) -> bool:
    """Return whether a text is a template or a regular expression of names.

    Examples
    --------
    >>> from braindecode_pars.recordings.label_files import is_name_pattern
    >>> is_name_pattern("{subject}_{label}"), is_name_pattern("labels.csv")
    (True, False)
    """
    return "{" in text or _NAMED_GROUP in text


def labels_in_names(pattern: str, root: Path, files: Sequence[Path]) -> dict[Path, FileLabels]:
    """Return the label of each file, of the whole recording, and its subject.

    Parameters
    ----------
    pattern : str
        Template of the names without their ending, such as ``"{subject}_{label}"``, in which ``*``
        stands for any text; one with "/" is a template of the path below the folder. Or a regular
        expression with the named group ``label``, and perhaps ``subject``, that is searched for in
        this path.
    root : Path
        Folder of all recordings.
    files : list of Path
        The recordings.

    Returns
    -------
    dict of Path to FileLabels
        Labels of all files.

    Raises
    ------
    ValueError
        When the pattern is not valid, does not match a name, or matches it in two ways.

    Examples
    --------
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings.label_files import labels_in_names
    >>> file = Path("data", "Subject00_1.edf")
    >>> labels_in_names("{subject}_{label}", Path("data"), [file])[file]
    FileLabels(stretches=(Stretch(onset=None, duration=None, label='1'),), subject='Subject00')
    """
    read = _expression(pattern) if _NAMED_GROUP in pattern else _template(pattern)
    found = {}
    for file in files:
        read_fields = read(file.relative_to(root)).items()
        fields = {name: (text or "").strip() for name, text in read_fields}
        missing = [name for name in _FIELDS if not fields.get(name, name == "subject")]
        if missing:
            raise ValueError(
                f"{file} has no {missing[0]}: labels={pattern!r} does not match its name; change "
                "the pattern, or move the file out of the folder."
            )
        found[file] = FileLabels((Stretch(None, None, fields["label"]),), fields.get("subject"))
    return found


def _expression(pattern: str) -> Callable[[PurePath], dict[str, str]]:
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"labels={pattern!r} is not a regular expression: {error}.") from error
    if "label" not in expression.groupindex:
        raise ValueError(f"labels={pattern!r} has no group (?P<label>...) around the label.")

    def read(path: PurePath) -> dict[str, str]:
        found = expression.search(normalized(path.as_posix()))
        return found.groupdict() if found else {}

    return read


def _template(pattern: str) -> Callable[[PurePath], dict[str, str]]:
    parts = re.split(r"(\{.*?\}|\*)", pattern)
    fields = [part[1:-1] for part in parts if part.startswith("{")]
    if "label" not in fields or len(set(fields)) < len(fields) or not {*fields} <= {*_FIELDS}:
        raise ValueError(
            f"labels={pattern!r} is no template of names; it needs the field {{label}} once, may "
            "have {subject} once, and * for any text, as in '{subject}_{label}'."
        )
    # A name that the longest and the shortest fields match differently can be read in two ways.
    longest, shortest = (_compiled(parts, more) for more in ("+", "+?"))

    def read(path: PurePath) -> dict[str, str]:
        stem = without_ending(normalized(path.as_posix()))
        name = stem if "/" in pattern else stem.rpartition("/")[2]
        found, other = longest.fullmatch(name), shortest.fullmatch(name)
        if found is None or other is None:
            return {}
        unclear = [field for field in _FIELDS if field in fields and found[field] != other[field]]
        if unclear:
            field = unclear[0]
            raise ValueError(
                f"The {field} of {path} may be {other[field]!r} or {found[field]!r} by "
                f"labels={pattern!r}; pass a regular expression, such as "
                "'(?P<subject>[^/_]+)_(?P<label>[^/.]+)'."
            )
        return found.groupdict()

    return read


def _compiled(parts: Sequence[str], more: str) -> re.Pattern[str]:
    written = {"*": f"(?:[^/]{more})?"}
    written |= {f"{{{field}}}": f"(?P<{field}>[^/]{more})" for field in _FIELDS}
    return re.compile("".join(written.get(part, re.escape(part)) for part in parts))


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


class Stretch(NamedTuple):
    """A labelled stretch of a recording.

    Attributes
    ----------
    onset : float | None
        Start in seconds from the first sample; None for the whole recording.
    duration : float | None
        Length in seconds; None for one window from the onset.
    label : str
        Label.
    """

    onset: float | None
    duration: float | None
    label: str


class FileLabels(NamedTuple):
    """Labelled stretches of a file, and its subject; None if the labels do not name it."""

    stretches: tuple[Stretch, ...]
    subject: Any = None


@dataclass(frozen=True)
class LabelledFile(Recording):
    """A recording, not yet opened, with labelled stretches."""

    stretches: tuple[Stretch, ...] = ()


def checksum_of_labels(
    labels: Mapping[Path, FileLabels], classes: Mapping[str, str], root: Path
) -> str:
    """Return a checksum of the labels of all files, for the settings of a cache."""
    rows = sorted((f.relative_to(root).as_posix(), one.stretches) for f, one in labels.items())
    return checksum_of(json.dumps([rows, list(classes.items())]).encode())


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
    >>> from braindecode_pars.recordings.label_files import Stretch, to_annotations
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((1, 6000)), info, verbose="error")
    >>> stretches = [Stretch(30, None, "2")]
    >>> print(*to_annotations(stretches, {"2": "N2"}, raw, 30.0).description)
    N2
    """
    length = raw.n_times / raw.info["sfreq"]
    rows = []
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
            rows.append((start, lasts, classes[label]))
    onsets, durations, labels = zip(*rows, strict=True) if rows else ((), (), ())
    return mne.Annotations(onsets, durations, labels)
