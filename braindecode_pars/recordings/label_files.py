"""Read the labels of recordings from annotations, tables or file names, and map them to classes.

Labels are read from one of four sources:

- the annotations in the recording;
- a label file next to each recording, in one of the formats in ``LABEL_SOURCES``;
- a table with one row per labeled segment, per recording or per subject;
- the paths of the recordings.

The labels are converted to annotations with the class names as descriptions. From these
annotations, :func:`~braindecode_pars.recordings.cutting.event_windows` creates windows.
"""

import logging
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, TypeAlias

import mne
import numpy as np
import pandas as pd

from braindecode_pars._common import checks, subjects
from braindecode_pars._common.tables import label_text
from braindecode_pars.recordings import cutting, loading, readers, search, side_tables
from braindecode_pars.windows import marks

log = logging.getLogger(__name__)

#: Function without arguments that opens a recording, with or without its signals.
Opener: TypeAlias = Callable[[], mne.io.BaseRaw]

#: Default length of a window in seconds.
SECONDS = 30.0
#: Minimum duration in seconds that can become the default length of windows. If all labels are
#: shorter, their durations are probably not in seconds.
_MIN_DURATION = 0.1

#: Source of the labels, see :func:`datasets.folder.load <braindecode_pars.datasets.folder.load>`.
Labels: TypeAlias = (
    str | Path | pd.DataFrame | Sequence[str] | Mapping[str, int] | Mapping[str, str] | None
)


@dataclass(frozen=True)
class LabeledFile(loading.Recording):
    """Recording with its labels, which were read from a table or from its path.

    ``segments`` contains one row per labeled segment of the recording, with the columns ``onset``
    and ``duration`` in seconds, and ``label``. If the onset is NaN, the label applies to the whole
    recording. If the duration is 0, the label applies to one window. If the labels have not been
    read yet, because they are in the annotations of the recording, ``segments`` is None. If a table
    contains only empty labels for the recording, ``segments`` has no rows.
    """

    segments: pd.DataFrame | None = None


def labels_of_files(
    labels: Labels,
    root: Path,
    files: Sequence[Path],
    column: str = "label",
    subject_of: Callable[[Path], Any] = lambda file: None,
    labels_from: str | None = None,
) -> list[LabeledFile]:
    """Read the labels of all recordings from a table or from their paths.

    If the labels are in the annotations of the recordings, they are not read yet.

    Parameters
    ----------
    labels : list | dict | str | path | DataFrame | None
        As in :func:`datasets.folder.load <braindecode_pars.datasets.folder.load>`.
    root : Path
        Folder of the recordings.
    files : list of Path
        Recordings in this folder.
    column : str
        Column of the table that contains the labels.
    subject_of : callable
        Function that returns the subject of a recording. Required for a table with one row per
        subject.
    labels_from : str | None
        Regular expression that matches the label in a path, see :func:`labels_in_paths`.

    Returns
    -------
    list of LabeledFile
        The labeled recordings, sorted by path: recordings that have a row in the table, or whose
        path matches ``labels_from``. If the labels are in annotations, all recordings are returned,
        and ``segments`` is None.

    Raises
    ------
    TypeError
        If ``labels`` has an unsupported type, or is a set, which has no order.
    ValueError
        If the table lacks a column or is contradictory, if ``column`` is passed for labels that are
        not in a table, or if both ``labels`` and ``labels_from`` are passed.

    Examples
    --------
    A table with one row per file:

    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from braindecode_pars.recordings.label_files import labels_of_files
    >>> table = pd.DataFrame({"file": ["P01_rest"], "subject": ["P01"], "label": ["rest"]})
    >>> [labeled] = labels_of_files(table, Path("data"), [Path("data", "P01_rest.edf")])
    >>> labeled.subject, labeled.segments["label"].tolist()
    ('P01', ['rest'])
    """
    is_table = isinstance(labels, (str, Path, pd.DataFrame))
    if (column != "label" and not is_table) or (labels_from and labels is not None):
        source = "a DataFrame" if isinstance(labels, pd.DataFrame) else repr(labels)
        raise ValueError(
            f"Labels can be read from only one source, got labels={source} (--labels), "
            f"label_column={column!r} (--label-column) and labels_from={labels_from!r} "
            "(--labels-from). Pass labels or labels_from. label_column requires a table as labels."
        )
    if labels_from is not None:
        return labels_in_paths(labels_from, root, files)
    if not isinstance(labels, (str, Path, pd.DataFrame)):
        if labels is not None:
            _check_ordered("labels", labels)
        return [LabeledFile(file, {}) for file in files]
    where, table = "The table of labels", labels
    if not isinstance(table, pd.DataFrame):
        where, table = str(labels), side_tables.read_table(table, root)
    table = side_tables.with_plain_columns(table.reset_index(drop=True), where)
    column = label_text(column).casefold()
    is_timed = len([name for name in table if side_tables.TIME.fullmatch(name)]) > 1
    keys = ["file"] if is_timed else ["file", "participant_id", "subject"]
    key = next((name for name in keys if name in table), None)
    if key is None or column not in table:
        raise ValueError(
            f"{where} must have a column {' or '.join(map(repr, keys))}, and the column {column!r} "
            f"with the labels, got the columns {checks.format_list([*map(repr, table)])}. Rename "
            "the columns. If only the column with the labels has another name, you can also pass "
            "its name as label_column (--label-column)."
        )
    table = table.assign(label=[*map(label_text, table[column])])
    if key == "file":
        return _labels_by_file(table, files, where)
    return _labels_by_subject(table.assign(subject=table[key]), files, where, subject_of)


def classes_and_targets(
    labels: Labels,
    classes: Sequence[str] | Mapping[str, str] | None,
    durations: Mapping[str, Sequence[float]],
    seconds: float | None = None,
) -> tuple[dict[str, str], dict[str, int], float]:
    """Return the class of each label, the target of each class, and the length of windows.

    Parameters
    ----------
    labels : list | dict | str | path | DataFrame | None
        Source of the labels. If it is a DataFrame or path, the labels are in a table. If it is a
        string, it is the path of a table or, if the labels are in file names, the regular
        expression ``labels_from``. If it is a list or dict, the labels are the annotations whose
        descriptions it contains. If None, the labels are all annotations that are at least as long
        as a window or, if there are none, all annotations without a duration.
    classes : list of str | mapping of str to str | None
        Labels to use, or the class of each label, as in :func:`classes_of_labels`.
    durations : mapping of str to list of float
        Durations of the labels in seconds, as returned by :func:`durations_in`.
    seconds : float | None
        Length of a window in seconds. If None, use 30 s, or the duration of the labels if all of
        them have the same duration and are shorter than 30 s.

    Returns
    -------
    classes_of_labels : dict of str to str
        Class of each label.
    targets : dict of str to int
        Target of each class.
    seconds : float
        Length of a window in seconds.

    Raises
    ------
    ValueError
        If there are no labels, if all labels are shorter than a window, if a class has the name of
        a gap or a bad segment, or if ``classes`` is passed for labels in annotations.

    Examples
    --------
    The labels are annotations. With the dict, they are mapped to class names or to targets:

    >>> from braindecode_pars.recordings.label_files import classes_and_targets
    >>> classes_and_targets({"Sleep stage W": "W"}, None, {"Sleep stage W": [30.0]})
    ({'Sleep stage W': 'W'}, {'W': 0}, 30.0)
    >>> classes_and_targets({"left": 3, "right": 7}, None, {"left": [4.0, 4.0]})[1:]
    ({'left': 3, 'right': 7}, 4.0)
    """
    if isinstance(labels, (str, Path, pd.DataFrame)):
        names = classes_of_labels(durations, classes)
    elif classes is not None:
        raise ValueError(
            "classes= can only be used for labels in a table or in file names, but the "
            "labels are in annotations. Pass labels={description: class} instead."
        )
    elif isinstance(labels, Mapping):
        names = {label_text(label): label_text(name) for label, name in labels.items()}
        if all(isinstance(target, Integral) for target in labels.values()):
            targets = {label_text(label): int(target) for label, target in labels.items()}
            return {name: name for name in targets}, targets, _length(durations, targets, seconds)
    elif labels is None:
        seconds = _length(durations, durations, seconds)
        names = {name: name for name in labels_in_annotations(durations, seconds)}
    else:
        names = {label_text(label): label_text(label) for label in labels}
    names = {label: name for label, name in names.items() if label and name}  # "" for NaN or None
    if reserved := [name for name in names.values() if marks.kind_of_text(name) != "label"]:
        raise ValueError(
            f"A class must not be named {reserved[0]!r}, because MNE marks bad segments and gaps "
            "with such names. Map its label to another name with --class LABEL=NAME (in Python: "
            "labels={label: name} for labels in annotations, otherwise classes={label: name})."
        )
    targets = {name: target for target, name in enumerate(dict.fromkeys(names.values()))}
    log.info("Classes, in the order of the targets 0, 1, ...: %s.", ", ".join(targets))
    return names, targets, _length(durations, names, seconds)


def _length(
    durations: Mapping[str, Sequence[float]], labels: Iterable[str], seconds: float | None
) -> float:
    """Return the length of windows in seconds, see :func:`classes_and_targets`."""
    values = np.concatenate([[], *(durations.get(name, []) for name in labels)])
    length = SECONDS if seconds is None else seconds
    if not len(values) or (values == 0).any() or cutting.holds_a_window(values.max(), length):
        return length
    shortest, longest = values.min(), values.max()
    if seconds is None and longest - shortest <= cutting.ROUNDING and shortest >= _MIN_DURATION:
        log.info("Using windows of %g s, because all labels last %g s.", shortest, shortest)
        return round(float(shortest), 3) or float(shortest)
    raise ValueError(
        f"All labels are shorter than a window of {length:g} s. Their durations, which must be in "
        f"seconds, are {shortest:g} to {longest:g} s (number of labels: {len(values)}, median: "
        f"{np.median(values):g} s). Pass a shorter window_seconds (--window-seconds), or correct "
        "the durations."
    )


def _check_ordered(name: str, labels: Any) -> None:
    """Check that labels are in a list or a dict. The order of a set would not be reproducible."""
    if isinstance(labels, (str, set, frozenset)) or not isinstance(labels, Iterable):
        raise TypeError(
            f"{name} must be a list of labels in the order of the targets 0, 1, ..., or a dict "
            f"that maps labels to classes, got {labels!r}."
        )


def classes_of_labels(
    file_labels: Iterable[str], classes: Sequence[str] | Mapping[str, str] | None
) -> dict[str, str]:
    """Map the labels in a table or in file names to classes.

    Parameters
    ----------
    file_labels : iterable of str
        All labels that occur.
    classes : list of str | mapping of str to str | None
        Labels to use, each of which is a class, or a mapping of labels to classes. If None, each
        label is a class; classes are in alphabetical order, or sorted by value if all labels are
        numbers.

    Returns
    -------
    dict of str to str
        Class of each label that is used, in the order of the targets.

    Raises
    ------
    TypeError
        If ``classes`` is a set or a string.
    ValueError
        If ``classes`` is empty, or contains a label that is not in ``file_labels``.

    Examples
    --------
    Without ``classes``, numbers are sorted by value. With ``classes``, the order is preserved:

    >>> from braindecode_pars.recordings.label_files import classes_of_labels
    >>> classes_of_labels({"10", "2"}, None)
    {'2': '2', '10': '10'}
    >>> classes_of_labels({"1", "2"}, {"2": "task", "1": "rest"})
    {'2': 'task', '1': 'rest'}
    """
    labels = sorted(set(file_labels))
    if all(re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", label) for label in labels):
        labels.sort(key=float)
    if classes is None:
        return {label: label for label in labels}
    _check_ordered("classes", classes)
    names = classes.values() if isinstance(classes, Mapping) else classes
    texts = map(label_text, classes), map(label_text, names)
    chosen = dict(zip(*texts, strict=True))
    absent = [label for label in chosen if label not in labels]
    if absent or not chosen:
        raise ValueError(
            f"classes must contain at least one label, and only labels that occur in the data "
            f"({', '.join(map(repr, labels))}), got {', '.join(map(repr, absent)) or 'no label'}. "
            "Correct the labels in classes."
        )
    return chosen


def files_named(table: pd.DataFrame, files: Iterable[Path], where: str) -> list[Path | None]:
    """Find the recording of each row of a table by the file name in the column "file".

    The column contains file names, or the last parts of paths, such as "P01/rest.edf". The file
    extension may be omitted.

    Parameters
    ----------
    table : DataFrame
        Table with the column "file".
    files : iterable of Path
        All recordings.
    where : str
        Name of the table in error messages.

    Returns
    -------
    list of (Path | None)
        Recording of each row. None if no recording matches the entry of the row.

    Raises
    ------
    ValueError
        If an entry in the column matches two files.
    """
    known: dict[str, list[Path]] = {}
    for file in files:
        parts = subjects.normalized(file.absolute().as_posix()).split("/")
        names = ["/".join(parts[i:]) for i in range(len(parts))]
        for name in {*names, *map(subjects.without_ending, names)}:
            known.setdefault(name, []).append(file)
    named: list[Path | None] = []
    for value in table["file"]:
        name = label_text(value).replace("\\", "/").removeprefix("./")
        candidates = known.get(name, [None])
        if len(candidates) > 1:
            raise ValueError(
                f"{where} contains the file name {name!r}, which matches both {candidates[0]} and "
                f"{candidates[1]}. Write the folder or the file extension in the table as well."
            )
        named += candidates
    return named


def _labels_by_file(table: pd.DataFrame, files: Sequence[Path], where: str) -> list[LabeledFile]:
    """Return the labels of recordings from a table with a column of file names."""
    named = files_named(table, files, where)
    if absent := [name for name, file in zip(table["file"], named, strict=True) if file is None]:
        raise ValueError(
            f"{where} contains the file name {label_text(absent[0])!r}, but the folder contains no "
            "recording with this name. Correct or remove the row."
        )
    onsets, durations = side_tables.times_in(table, where)
    rows = table.assign(file=named, onset=onsets, duration=np.nan_to_num(durations))
    if "subject" in rows:
        names = [label_text(s) or None if isinstance(s, str) else s for s in rows["subject"]]
        rows["subject"] = pd.Series(names, rows.index, dtype=object)
        for file, file_names in rows.groupby("file")["subject"]:
            if file_names.isna().any() or file_names.nunique() > 1:
                raise ValueError(
                    f"{where} must contain exactly one subject for {file.name}, got "
                    f"{' and '.join(map(str, file_names.unique()))}. Write the same subject in "
                    "every row for this file."
                )
    return _labeled_files(rows)


def _labels_by_subject(
    table: pd.DataFrame, files: Sequence[Path], where: str, subject_of: Callable[[Path], Any]
) -> list[LabeledFile]:
    """Return the labels of recordings from a table with one row per subject.

    Recordings of subjects without a row are omitted.
    """
    label_of = loading.column_by_subject(table, "label", where)
    file_subjects = [subject_of(file) for file in files]
    file_labels = [label_of.get(subjects.subject_key(subject)) for subject in file_subjects]
    rows = pd.DataFrame(dict(file=files, label=file_labels)).dropna()
    if rows.empty:
        raise ValueError(
            f"{where} contains no row for any subject of the recordings. Subjects of the "
            "recordings: "
            f"{checks.format_list([*map(str, dict.fromkeys(file_subjects))])}. Subjects in the "
            f"table: {checks.format_list([*map(str, table['subject'])], max_items=5)}. Correct the "
            "subjects in the table. If the subjects of the recordings are wrong, pass subject "
            "(--subject), a regular expression that matches the subject in a path."
        )
    return _labeled_files(rows.assign(onset=np.nan, duration=0.0))


def _labeled_files(rows: pd.DataFrame) -> list[LabeledFile]:
    """Group a table with one row per labeled segment by recording.

    The table has the columns ``file``, ``label``, ``onset``, ``duration`` and, optionally,
    ``subject``. Rows with an empty label are ignored.
    """
    labeled_files = []
    for file, table in rows.groupby("file"):
        description = {"subject": table["subject"].iloc[0]} if "subject" in table else {}
        segments = table.loc[table["label"] != "", ["onset", "duration", "label"]]
        labeled_files.append(LabeledFile(file, description, segments))
    return labeled_files


def labels_in_paths(pattern: str, root: Path, files: Sequence[Path]) -> list[LabeledFile]:
    """Extract labels, and optionally subjects, from file paths with a regular expression.

    Parameters
    ----------
    pattern : str
        Regular expression that is searched for in the path relative to ``root``. It must have the
        named group ``label``, and may have the named group ``subject``.
    root : Path
        Folder of the recordings.
    files : list of Path
        Recordings in this folder.

    Returns
    -------
    list of LabeledFile
        Recordings whose path matches, with their label, sorted by path.

    Raises
    ------
    ValueError
        If ``pattern`` is not a valid regular expression, or has no group ``label``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings.label_files import labels_in_paths
    >>> pattern = "(?P<subject>[^_/]+)_(?P<label>[^_.]+)"
    >>> [file] = labels_in_paths(pattern, Path("data"), [Path("data", "P01_rest.edf")])
    >>> file.subject, file.segments["label"].tolist()
    ('P01', ['rest'])
    """
    expression = search.compile_pattern("labels_from", pattern)
    names = [name for name in ("subject", "label") if name in expression.groupindex]
    if "label" not in names:
        raise ValueError(
            f"labels_from={pattern!r} must have a group named label, which matches the label in "
            "the path of a file. Pass, for example, '(?P<subject>[^_/]+)_(?P<label>[^_.]+)' for "
            "files such as P01_rest.edf, or '_(?P<label>[^_.]+)' to match only the label."
        )
    paths = [subjects.normalized(file.relative_to(root).as_posix()) for file in files]
    rows = pd.Series(paths).str.extract(expression)[names].map(label_text)
    rows = rows.assign(file=files, onset=np.nan, duration=0.0)
    return _labeled_files(rows[(rows[names] != "").all(axis=1)])


def annotations_of(
    file: Path, raw: mne.io.BaseRaw | None = None, segments: pd.DataFrame | None = None
) -> mne.Annotations:
    """Return the labels of one recording as annotations.

    The labels are ``segments``, if this argument is passed together with ``raw``. Otherwise, they
    are read from the first label file in ``LABEL_SOURCES`` that exists (BIDS events or hypnogram).
    If there is no label file, the annotations in the recording are returned. Onsets are in seconds
    relative to the first sample.

    Parameters
    ----------
    file : Path
        The recording.
    raw : Raw | None
        The opened recording. If None, the header of ``file`` is read if necessary.
    segments : DataFrame | None
        Labels of this recording, read from a table or from the path of the recording, see
        :class:`LabeledFile`. Ignored if ``raw`` is None.

    Raises
    ------
    ValueError
        If the label file lacks a column or contains a time that cannot be read.
    """
    if raw is not None and segments is not None:
        is_whole = segments["onset"].isna()
        durations = segments["duration"].mask(is_whole, raw.duration)
        return mne.Annotations(segments["onset"].fillna(0.0), durations, segments["label"])

    def open_recording() -> mne.io.BaseRaw:
        return readers.read_recording(file, preload=False) if raw is None else raw

    for find, read in LABEL_SOURCES:
        if labels := find(file):
            return read(labels, open_recording)
    opened = open_recording()
    # MNE cannot read the annotations of other formats without the recording.
    is_read_alone = file.suffix in readers.WITH_OUTSIDE
    annotations = readers.annotations_in(file) if is_read_alone else opened.annotations
    return _delayed(annotations, -opened.first_time)


def _delayed(annotations: mne.Annotations, seconds: float) -> mne.Annotations:
    """Return annotations with ``seconds`` added to the onsets, and without channel names."""
    # EDF+ appends the channel of an annotation to its text, as in "Spike@@C3".
    texts = [label_text(text.partition("@@")[0]) for text in annotations.description]
    return mne.Annotations(annotations.onset + seconds, annotations.duration, texts)


def find_events(recording: Path) -> Path | None:
    """Return the BIDS table ``_events.tsv`` of a recording; None if there is none."""
    return side_tables.table_beside(recording, "events")


def read_events(table: Path, open_recording: Opener) -> mne.Annotations:
    """Return the events of a BIDS table as annotations, from the column ``trial_type``.

    Parameters
    ----------
    table : Path
        BIDS table ``_events.tsv``.
    open_recording : callable
        Not used. All readers in ``LABEL_SOURCES`` have this argument.
    """
    return side_tables.events_in(table)


def find_hypnogram(recording: Path) -> Path | None:
    """Return the hypnogram file of a recording of Sleep-EDF; None if there is none.

    For example, SC4001EC-Hypnogram.edf belongs to SC4001E0-PSG.edf. The eighth character of the
    name of a hypnogram identifies the scorer, so it is not compared.
    """
    if not re.fullmatch(r"\w{8}-PSG\.edf", recording.name):
        return None
    return min(recording.parent.glob(f"{recording.name[:7]}?-Hypnogram.edf"), default=None)


def read_hypnogram(hypnogram: Path, open_recording: Opener) -> mne.Annotations:
    """Return the sleep stages of a hypnogram file, with onsets relative to the recording.

    The hypnogram file and the recording each contain their start date and time. Dates are often
    changed for privacy, or are the date of the next morning. Therefore, if the hypnogram would
    begin after the end of the recording, or more than 12 hours before its start, the dates are
    ignored and only the times of day are compared.

    Parameters
    ----------
    hypnogram : Path
        Hypnogram file of Sleep-EDF.
    open_recording : callable
        Function without arguments that returns the recording as a Raw object.
    """
    raw, stages = open_recording(), readers.annotations_in(hypnogram)
    start, stages_start = raw.info["meas_date"], readers.date_of(hypnogram)
    if start is None or stages_start is None:
        checks.warn_user(
            f"The start time of the hypnogram {hypnogram.name}, or of its recording, is unknown. "
            "It is assumed that both start at the same time. If they do not, pass the labels as a "
            "table with onsets."
        )
        return _delayed(stages, 0.0)
    delay = (stages_start - start).total_seconds()
    if not -43_200 <= delay < raw.duration:
        delay = (delay + 43_200) % 86_400 - 43_200
    message = "The hypnogram %s starts %g s after the start of its recording."
    log.info(message, hypnogram.name, delay)
    return _delayed(stages, delay)


#: Formats of label files, as pairs of functions. The first format for which a file exists is used.
#: The first function of a pair returns the label file of a recording, or None. The second function
#: reads the label file, and returns annotations with onsets in seconds relative to the first sample
#: of the recording. It opens the recording only if it needs the header.
LABEL_SOURCES = (
    (find_events, read_events),
    (find_hypnogram, read_hypnogram),
)


def durations_in(files: Iterable[LabeledFile]) -> dict[str, list[float]]:
    """Collect the durations of each label in all recordings, in seconds.

    If a label applies to the whole recording, its duration is 0. Gaps, and annotations that begin
    with "BAD" or "EDGE", are excluded.

    Parameters
    ----------
    files : iterable of LabeledFile
        Recordings with their labels. If the labels are in annotations, the recordings are opened.

    Returns
    -------
    dict of str to list of float
        Maps each label to the list of its durations.

    Raises
    ------
    ValueError
        If no recording has a label, and at least one recording cannot be read.
    """
    durations: dict[str, list[float]] = {}
    unread = ""
    for labeled in files:
        segments = labeled.segments
        if segments is None:
            try:  # warnings and errors are reported when the recording is read
                with warnings.catch_warnings(action="ignore"):
                    annot = annotations_of(labeled.file)
            except (ValueError, OSError) as error:
                unread = f"{labeled.file.name}: {error}"
                continue
            segments = pd.DataFrame(dict(label=annot.description, duration=annot.duration))
            segments = segments[segments["label"].map(marks.kind_of_text) == "label"]
        for label, durations_of_label in segments.groupby("label", sort=False)["duration"]:
            if label:
                durations.setdefault(label, []).extend(durations_of_label.tolist())
    if unread and not durations:
        raise ValueError(
            "No label was found in the recordings, and at least one recording cannot be read: "
            f"{unread} Repair or remove this recording, or pass the labels as a table."
        )
    return durations


def labels_in_annotations(durations: Mapping[str, Sequence[float]], seconds: float) -> list[str]:
    """Return the descriptions of annotations that are used as labels, in alphabetical order.

    Annotations that are at least as long as a window are used. If there are none, annotations
    without a duration are used.

    Parameters
    ----------
    durations : mapping of str to list of float
        Durations of the annotations in seconds, as returned by :func:`durations_in`.
    seconds : float
        Length of a window in seconds.

    Returns
    -------
    list of str
        Descriptions of the annotations.

    Raises
    ------
    ValueError
        If no annotation can be used as a label.
    """
    long = {n for n, lengths in durations.items() if cutting.holds_a_window(max(lengths), seconds)}
    instant = {name for name, lengths in durations.items() if 0 in lengths}
    if not long and not instant:
        raise ValueError(
            "The recordings contain no annotations that can be used as labels. Such annotations "
            f"must last at least {seconds:g} s (one window), or have no duration. Add annotations, "
            "or pass a table as labels (--labels). To pretrain without labels, run "
            '"braindecode-pars store FOLDER STORE", which creates the new folder STORE, and then '
            '"braindecode-pars pretrain STORE --out RUN".'
        )
    return sorted(long or instant)


def labels_within(
    annot: mne.Annotations, classes: Mapping[str, str], raw: mne.io.BaseRaw, seconds: float
) -> mne.Annotations:
    """Select the annotations that are labels, and replace their descriptions with class names.

    A label that overlaps an earlier label of the same class is removed. Labels of different classes
    must not overlap, except that labels without a duration may overlap each other. Labels that are
    partly or completely outside the recording, or shorter than a window, are returned;
    :func:`~.cutting.event_windows` later creates only complete windows within the recording. For
    each of these reasons, the number of labels that lose windows is reported with
    :func:`~.cutting.record_excluded`.

    Parameters
    ----------
    annot : Annotations
        All annotations, with onsets in seconds relative to the first sample.
    classes : mapping of str to str
        Class of each label that is used.
    raw : Raw
        The recording.
    seconds : float
        Length of a window in seconds. A label without a duration lasts for one window.

    Returns
    -------
    Annotations
        The labels, with class names as descriptions. A label without a duration has the duration of
        a window.

    Raises
    ------
    ValueError
        If labels of different classes overlap.

    Warns
    -----
    UserWarning
        If two consecutive labels without a duration have different classes and are less than half a
        window apart. This is only checked for windows of the default length, 30 s.

    Examples
    --------
    The second label has no duration, so it lasts for one window of 10 s:

    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.label_files import labels_within
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((1, 9000)), info, verbose="error")
    >>> annot = mne.Annotations([0, 60], [60, 0], ["Sleep stage W", "Sleep stage R"])
    >>> labeled = labels_within(annot, {"Sleep stage W": "W", "Sleep stage R": "R"}, raw, 10.0)
    >>> labeled.description.tolist(), labeled.duration.tolist()
    (['W', 'R'], [60.0, 10.0])
    """
    texts = annot.description.tolist()
    annot = annot[[text in classes for text in texts]]
    if not len(annot):
        listed = checks.format_list(sorted(set(texts)), max_items=5) or "none"
        reason = f"without a requested label (annotations: {listed})"
        cutting.record_excluded("recordings", reason, 1, 1)
        return annot
    sfreq = raw.info["sfreq"]
    length, rounding = raw.n_times / sfreq, max(cutting.ROUNDING, 0.5 / sfreq)
    durations = np.where(annot.duration == 0, seconds, annot.duration)
    inside = np.minimum(annot.onset + durations, length) - np.maximum(annot.onset, 0)
    n_windows, n_inside = (np.floor((t + rounding) / seconds) for t in (durations, inside))
    is_outside = (n_inside < n_windows) | (inside <= 0)
    reason = "partly or completely outside the recording; only windows inside are used"
    cutting.record_excluded("labels", reason, is_outside.sum(), len(annot))
    is_short = (n_windows < 1) & ~is_outside
    reason = f"shorter than a window of {seconds:g} s"
    cutting.record_excluded("labels", reason, is_short.sum(), len(annot))
    names = [classes[text] for text in annot.description]
    is_mark = annot.duration == 0
    mark_names = pd.Series(names, annot.onset)[is_mark].sort_index(kind="stable")
    is_other = mark_names.to_numpy()[1:] != mark_names.to_numpy()[:-1]
    is_close = np.diff(mark_names.index) < seconds / 2
    # If windows have another length, they are trials, and the user has chosen their length.
    if seconds == SECONDS and (is_close & is_other).any():
        checks.warn_user(
            "Some labels without a duration are so close together that their windows of "
            f"{seconds:g} s share more than half of their samples with a window of another class. "
            "Pass a shorter window_seconds (--window-seconds)."
        )
    return _without_overlaps(annot.onset, annot.onset + durations, names, is_mark)


def _without_overlaps(
    starts: np.ndarray, stops: np.ndarray, names: Sequence[str], is_mark: np.ndarray
) -> mne.Annotations:
    """Remove labels that overlap an earlier label of the same class, and report their number.

    Overlapping labels of the same class would result in duplicate windows. Overlapping labels of
    different classes raise an error. Labels without a duration (``is_mark``) may overlap each
    other. Labels are sorted by start, and each label is compared with the earlier label that ends
    last.
    """
    keep, longest = np.ones(len(names), bool), -1
    for i in np.lexsort((-stops, starts)).tolist():
        is_after = longest < 0 or starts[i] >= stops[longest] - cutting.ROUNDING
        if is_after or (is_mark[i] and is_mark[longest]):
            longest = i if longest < 0 or stops[i] >= stops[longest] else longest
        elif names[i] == names[longest]:
            keep[i] = False
        else:
            raise ValueError(
                f"the labels {names[longest]!r} ({starts[longest]:g} s to {stops[longest]:g} s) "
                f"and {names[i]!r} (from {starts[i]:g} s) overlap. Correct their times, or select "
                "labels that do not overlap."
            )
    reason = "overlapping a label of the same class (check that times are in seconds)"
    cutting.record_excluded("labels", reason, int((~keep).sum()), len(keep))
    return mne.Annotations(starts[keep], (stops - starts)[keep], np.array(names)[keep])
