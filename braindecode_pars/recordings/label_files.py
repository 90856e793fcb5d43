"""Labels of recordings: where they are, and which classes and targets they become.

Labels are in annotations of the recordings or of a file beside each of them, see ``LABEL_SOURCES``,
or in a table of all files, with a row for each labeled segment, or of all subjects, or in the paths
of the files. They become annotations with the names of their classes, of which
:func:`~braindecode_pars.recordings.cutting.event_windows` cuts windows.
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
from braindecode_pars.recordings import cutting, loading, readers, search
from braindecode_pars.windows import marks

log = logging.getLogger(__name__)

#: Start and duration of a labeled stretch in seconds, and its label. Without a start it is the
#: whole recording, with the duration 0 one window.
Stretch: TypeAlias = tuple[float | None, float, str]
#: Function that returns the recording, perhaps with its header only.
Opener: TypeAlias = Callable[[], mne.io.BaseRaw]

#: Usual length of a window.
SECONDS = 30.0
#: Fewest seconds of labels that set the length of windows: shorter ones are in another unit.
_SHORTEST = 0.1

#: Where labels are, see :func:`datasets.folder.load <braindecode_pars.datasets.folder.load>`.
Labels: TypeAlias = (
    str | Path | pd.DataFrame | Sequence[str] | Mapping[str, int] | Mapping[str, str] | None
)


@dataclass(frozen=True)
class LabeledFile(loading.Recording):
    """A recording, not yet opened, with labeled stretches, and its subject if they name it.

    ``why_unlabeled`` is the reason if no label is known, as opposed to an empty label in a table.
    """

    stretches: tuple[Stretch, ...] = ()
    why_unlabeled: str = ""


#: Reason of a recording without label.
_NO_ROW = "no row in the table of labels"


def labels_of_files(
    labels: Labels,
    root: Path,
    files: Sequence[Path],
    column: str = "label",
    subject_of: Callable[[Path], Any] = lambda file: None,
) -> list[LabeledFile] | None:
    """Return the labels in a table; None for labels in annotations.

    Parameters
    ----------
    labels : list | dict | str | path | DataFrame | None
        As in :func:`datasets.folder.load <braindecode_pars.datasets.folder.load>`.
    root : Path
        Folder of the recordings.
    files : list of Path
        Recordings in it.
    column : str
        Column of a table that has the labels.
    subject_of : callable
        Function that returns the subject of a file, for a table of subjects.

    Returns
    -------
    list of LabeledFile | None
        One for each file, in their order.

    Raises
    ------
    TypeError
        When the labels are a set, which has no order, or not of the above.
    ValueError
        When the labels of a file are unclear, when a text is not the path of a table, or when
        ``column`` is given for labels that are in no table.

    Examples
    --------
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from braindecode_pars.recordings.label_files import labels_of_files
    >>> table = pd.DataFrame({"file": ["P01_rest"], "subject": ["P01"], "label": ["rest"]})
    >>> [found] = labels_of_files(table, Path("data"), [Path("data", "P01_rest.edf")])
    >>> found.subject, found.stretches
    ('P01', ((None, 0.0, 'rest'),))
    """
    is_path = isinstance(labels, (str, Path))
    if not is_path and not isinstance(labels, pd.DataFrame):
        if column != "label":
            raise ValueError(
                f"label_column={column!r} (--label-column) is for labels in a table; labels is "
                f"{labels!r}, so give its path, such as labels='participants.tsv', or omit it."
            )
        if labels is not None:
            _check_ordered("labels", labels)
        return None
    where = str(labels) if is_path else "The table of labels"
    if is_path and not where.lower().endswith((".csv", ".tsv")):
        raise ValueError(
            f"labels={where!r} is not the path of a .csv or .tsv file, with the columns file, "
            f"subject and label. A list of labels is [{where!r}]."
        )
    table = labels if isinstance(labels, pd.DataFrame) else loading.read_table(where, root)
    table = loading.with_plain_columns(table.reset_index(drop=True), where)
    column = label_text(column).casefold()
    is_timed = len([name for name in table if loading.TIME.fullmatch(name)]) > 1
    keys = ["file"] if is_timed else ["file", "participant_id", "subject"]
    key = next((name for name in keys if name in table), None)
    if key is None or column not in table:
        missing, remedy = repr(column), "Pass that of the labels as label_column (--label-column)."
        if not key:
            missing = " or ".join(map(repr, keys))
            remedy = "Rename the one with the names of the files, or of the subjects."
        columns = checks.format_list([*map(repr, table)])
        raise ValueError(f"{where} has no column {missing}; it has {columns}. {remedy}")
    texts = [*map(label_text, table[column])]
    if key == "file":
        return _labels_of_each(table.assign(label=texts), files, where)
    return _labels_of_subjects(dict(subject=table[key], label=texts), files, where, subject_of)


def classes_and_targets(
    labels: Labels,
    classes: Sequence[str] | Mapping[str, str] | None,
    of_files: Sequence[LabeledFile] | None,
    durations: Mapping[str, Sequence[float]],
    seconds: float | None = None,
) -> tuple[dict[str, str], dict[str, int], float]:
    """Return the class of each label, the target of each class, and the length of windows.

    Parameters
    ----------
    labels : list | dict | str | path | DataFrame | None
        Where labels are; for those in annotations also which they are.
    classes : list of str | mapping of str to str | None
        As in :func:`classes_of_labels`.
    of_files : list of LabeledFile | None
        What :func:`labels_of_files` returned.
    durations : mapping of str to list of float
        What :func:`durations_in` returned, for labels in annotations.
    seconds : float | None
        Length of a window. None is 30 s, or that of all labels if it is one, and shorter.

    Raises
    ------
    ValueError
        When there are no labels, all are shorter than a window, or ``classes`` are given for labels
        in annotations.

    Examples
    --------
    >>> from braindecode_pars.recordings.label_files import classes_and_targets
    >>> classes_and_targets({"Sleep stage W": "W"}, None, None, {"Sleep stage W": [30.0]})
    ({'Sleep stage W': 'W'}, {'W': 0}, 30.0)
    >>> classes_and_targets({"left": 3, "right": 7}, None, None, {"left": [4.0, 4.0]})[1:]
    ({'left': 3, 'right': 7}, 4.0)
    """
    if of_files is not None:
        rows = [row for file in of_files for row in file.stretches]
        names = classes_of_labels({label for *_, label in rows}, classes)
        durations = {  # of the whole recording: 0
            name: [0.0 if onset is None else lasts for onset, lasts, label in rows if label == name]
            for name in names
        }
    elif classes is not None:
        raise ValueError("classes is for a table; annotations have labels={description: class}.")
    elif isinstance(labels, Mapping):
        names = {label_text(label): label_text(name) for label, name in labels.items()}
        if all(isinstance(target, Integral) for target in labels.values()):
            targets = {label_text(label): int(target) for label, target in labels.items()}
            return {name: name for name in targets}, targets, _length(durations, targets, seconds)
    elif labels is None:
        seconds = _length(durations, durations, seconds)
        names = {name: name for name in labels_in_annotations(durations, seconds)}
    else:
        assert not isinstance(labels, Path)  # the labels of a table are in of_files
        names = {label_text(label): label_text(label) for label in labels}
    names = {label: name for label, name in names.items() if label and name}  # "" is NaN or None
    if not names:
        raise ValueError("There are no labels: the list or the column of labels is empty.")
    if odd := [name for name in names.values() if marks.kind_of_text(name) != "label"]:
        raise ValueError(
            f"A class may not be called {odd[0]!r}, which marks a bad time or a gap; give it "
            f"another name, as in {{{odd[0]!r}: 'poor'}}."
        )
    targets = {name: target for target, name in enumerate(dict.fromkeys(names.values()))}
    log.info("The labels are %s, with the targets 0, 1, ...", ", ".join(targets))
    return names, targets, _length(durations, names, seconds)


def _length(
    durations: Mapping[str, Sequence[float]], used: Iterable[str], seconds: float | None
) -> float:
    """Return the length of windows, see :func:`classes_and_targets`."""
    lasts = np.concatenate([[], *(durations.get(name, []) for name in used)])
    wanted = SECONDS if seconds is None else seconds
    if not len(lasts) or (lasts == 0).any() or cutting.holds_a_window(lasts.max(), wanted):
        return wanted
    shortest, usual, longest = lasts.min(), np.quantile(lasts, 0.05, method="lower"), lasts.max()
    if seconds is None and longest - shortest <= cutting.ROUNDING and shortest >= _SHORTEST:
        log.info("All labels last %g s, and so do the windows.", shortest)
        return round(float(shortest), 3) or float(shortest)
    raise ValueError(
        f"No label is as long as a window of {wanted:g} s: {len(lasts)} labels last {shortest:g} "
        f"to {longest:g} s, 95 % of them {round(usual, 3) or usual:g} s or more. Pass this or a "
        "shorter window_seconds; or correct their durations, in seconds."
    )


def _check_ordered(name: str, labels: Any) -> None:
    """Check that labels are a list or a dict: a set has another order in the next process."""
    if isinstance(labels, (str, set, frozenset)) or not isinstance(labels, Iterable):
        raise TypeError(f"{name} must be a list in the order of targets or a dict, got {labels!r}.")


def classes_of_labels(
    file_labels: Iterable[str], classes: Sequence[str] | Mapping[str, str] | None
) -> dict[str, str]:
    """Return the class of each label of the files that is used.

    Parameters
    ----------
    file_labels : iterable of str
        Labels of the files.
    classes : list of str | mapping of str to str | None
        Labels to use, or the class of each. None uses all as they are: in alphabetical order, or,
        if all are numbers, in theirs.

    Returns
    -------
    dict of str to str
        Classes by label, in the order of the targets.

    Raises
    ------
    TypeError
        When ``classes`` have no order, or are one text.
    ValueError
        When ``classes`` are empty, or one is a label that no file has.

    Examples
    --------
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
            f"classes has {', '.join(map(repr, absent)) or 'no label'}, but the labels of the "
            f"files are {', '.join(map(repr, labels))}."
        )
    return chosen


def files_named(table: pd.DataFrame, files: Iterable[Path], where: str) -> list[Path | None]:
    """Return the file that each row of a table names, in its column "file"; None for others.

    It is named by the end of its path, with or without the ending of a recording.

    Raises
    ------
    ValueError
        When a name may be of two of the files.
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
                f"{where} names the file {name!r}, which may be {candidates[0]} or "
                f"{candidates[1]}; write more of its path."
            )
        named += candidates
    return named


def _labels_of_each(table: pd.DataFrame, files: Sequence[Path], where: str) -> list[LabeledFile]:
    """Return the labels of files in a table with rows for each; an empty label is none."""
    named = files_named(table, files, where)
    if absent := [name for name, file in zip(table["file"], named, strict=True) if file is None]:
        raise ValueError(
            f"{where} names the file {label_text(absent[0])!r}, which is not in the folder."
        )
    onsets, durations = loading.times_in(table, where)
    rows = table.assign(file=named, onset=onsets, duration=np.nan_to_num(durations))
    of_file = dict(list(rows.groupby("file", sort=False)))
    return [
        _labeled(file, of_file[file], where)
        if file in of_file
        else LabeledFile(file, {}, why_unlabeled=_NO_ROW)
        for file in files
    ]


def _labeled(file: Path, rows: pd.DataFrame, where: str) -> LabeledFile:
    """Return the labels of a file."""
    description = {}
    if "subject" in rows:
        row_subjects = [label_text(s) or None if isinstance(s, str) else s for s in rows["subject"]]
        names = list(dict.fromkeys(row_subjects))
        if len(names) > 1 or pd.isna(names[0]):
            named = " and ".join("none" if pd.isna(name) else str(name) for name in names)
            raise ValueError(
                f"{where} names the subject of {file.name} as {named}; write the same in each row."
            )
        description = {"subject": names[0]}
    stretches = [
        (None, 0.0, row.label) if pd.isna(row.onset) else (row.onset, row.duration, row.label)
        for row in rows.itertuples()
        if row.label
    ]
    return LabeledFile(file, description, tuple(stretches))


def _labels_of_subjects(
    table: Mapping[str, Iterable[Any]],
    files: Sequence[Path],
    where: str,
    subject_of: Callable[[Path], Any],
) -> list[LabeledFile]:
    """Return the labels of files in a table of subjects; an empty label leaves a subject out."""
    label_of = loading.by_subject(zip(table["subject"], table["label"], strict=True), where)
    names = [subject_of(file) for file in files]
    labels = [label_of.get(subjects.subject_key(subject)) for subject in names]
    if all(label is None for label in labels):
        raise ValueError(
            f"{where} has no row of the subject {checks.format_list([*map(str, dict.fromkeys(names))])}"
            f"; it has {checks.format_list([*map(str, table['subject'])], max_items=5)}. Correct the names, "
            "or pass subject= (--subject), a regular expression that finds the subject in a path."
        )
    return [
        LabeledFile(
            file, {}, ((None, 0.0, label),) if label else (), _NO_ROW if label is None else ""
        )
        for file, label in zip(files, labels, strict=True)
    ]


def labels_in_paths(pattern: str, root: Path, files: Sequence[Path]) -> list[LabeledFile]:
    """Return the labels, and the subjects, that a regular expression finds in the paths of files.

    Parameters
    ----------
    pattern : str
        Regular expression that is searched for in the path below the folder. It has the named group
        ``label``, and perhaps ``subject``.
    root : Path
        Folder of the recordings.
    files : list of Path
        Recordings in it.

    Returns
    -------
    list of LabeledFile
        One for each file, in their order.

    Raises
    ------
    ValueError
        When the pattern is not a regular expression, or has no group ``label``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings.label_files import labels_in_paths
    >>> pattern = "(?P<subject>[^_/]+)_(?P<label>[^_.]+)"
    >>> [file] = labels_in_paths(pattern, Path("data"), [Path("data", "P01_rest.edf")])
    >>> file.subject, file.stretches
    ('P01', ((None, 0.0, 'rest'),))
    """
    expression = search.compiled("labels_from", pattern)
    names = [name for name in ("subject", "label") if name in expression.groupindex]
    if "label" not in names:
        raise ValueError(
            f"labels_from={pattern!r} has no group named label; pass one such as "
            "'(?P<subject>[^_/]+)_(?P<label>[^_.]+)', without subject where paths have none."
        )
    labeled = []
    for file in files:
        match = expression.search(subjects.normalized(file.relative_to(root).as_posix()))
        values = {name: label_text((match and match[name]) or "") for name in names}
        if all(values.values()):
            stretch = (None, 0.0, values.pop("label"))
            labeled.append(LabeledFile(file, values, (stretch,)))
        else:
            why = f"no {' and '.join(names)} in the path, labels_from={pattern!r}"
            labeled.append(LabeledFile(file, {}, why_unlabeled=why))
    return labeled


def annotations_of(
    file: Path, raw: mne.io.BaseRaw | None = None, stretches: Sequence[Stretch] | None = None
) -> mne.Annotations:
    """Return the labels in a file beside a recording, or else its own annotations.

    Onsets are in seconds from the first sample. The first file of ``LABEL_SOURCES`` that exists is
    read. Where labeled ``stretches`` are given, they are returned instead. Without ``raw``, the
    header of the recording is read where it is needed.

    Raises
    ------
    ValueError
        When the file of labels lacks something or has a time that cannot be read.
    """
    if raw is not None and stretches is not None:  # without a start it is the whole recording
        rows = [
            (0.0, raw.duration, label) if onset is None else (onset, duration, label)
            for onset, duration, label in stretches
        ]
        return mne.Annotations(*(zip(*rows, strict=True) if rows else [[]] * 3))

    def open_recording() -> mne.io.BaseRaw:
        return readers.read_recording(file, preload=False) if raw is None else raw

    for find, read in LABEL_SOURCES:
        if labels := find(file):
            return read(labels, open_recording)
    opened = open_recording()
    # MNE reads those of no other format alone.
    is_read_alone = file.suffix in readers.WITH_OUTSIDE
    annotations = readers.annotations_in(file) if is_read_alone else opened.annotations
    return _delayed(annotations, -opened.first_time)


def _delayed(annotations: mne.Annotations, seconds: float) -> mne.Annotations:
    """Return annotations that begin later by some seconds, with plain texts."""
    # EDF+ has the channel of an annotation behind its text, as in "Spike@@C3".
    texts = [label_text(text.partition("@@")[0]) for text in annotations.description]
    return mne.Annotations(annotations.onset + seconds, annotations.duration, texts)


def find_events(recording: Path) -> Path | None:
    """Return the table ``_events.tsv`` of BIDS."""
    return search.table_beside(recording, "events")


def read_events(table: Path, open_recording: Opener) -> mne.Annotations:
    """Return the column ``trial_type`` of a table of BIDS."""
    return loading.events_in(table)


def find_hypnogram(recording: Path) -> Path | None:
    """Return the file of sleep stages of a night of Sleep-EDF.

    SC4001EC-Hypnogram.edf is that of SC4001E0-PSG.edf; the last letter is the scorer.
    """
    if not re.fullmatch(r"\w{8}-PSG\.edf", recording.name):
        return None
    return min(recording.parent.glob(f"{recording.name[:7]}?-Hypnogram.edf"), default=None)


def read_hypnogram(hypnogram: Path, open_recording: Opener) -> mne.Annotations:
    """Return the sleep stages in a file of annotations, which has a start of its own.

    Dates are often changed, or are that of the morning: where by them the hypnogram would not begin
    within the recording or half a day before, the times of day alone decide.
    """
    raw, stages = open_recording(), readers.annotations_in(hypnogram)
    start, stages_start = raw.info["meas_date"], readers.date_of(hypnogram)
    if start is None or stages_start is None:
        checks.warn_user(f"{hypnogram.name}: start unknown; taken to be that of the recording.")
        return _delayed(stages, 0.0)
    delay = (stages_start - start).total_seconds()
    if not -43_200 <= delay < raw.duration:
        delay = (delay + 43_200) % 86_400 - 43_200
    log.info("%s begins %g s after its recording.", hypnogram.name, delay)
    return _delayed(stages, delay)


#: Formats of files beside a recording that have its labels; the first one that exists is used. The
#: first function returns the file of a recording, or None. The second function reads it: onsets are
#: in seconds from the first sample of the recording, which it opens only if it needs its header.
LABEL_SOURCES = (
    (find_events, read_events),
    (find_hypnogram, read_hypnogram),
)


def durations_in(files: Iterable[Path]) -> dict[str, list[float]]:
    """Return the durations of the annotations of recordings in seconds, by their texts.

    Those of gaps, and those that begin with "BAD" or "EDGE", are left out.

    Raises
    ------
    ValueError
        When none is found, and a recording cannot be read.
    """
    durations: dict[str, list[float]] = {}
    unread = ""
    for file in files:
        try:  # with its warnings and errors it is read later
            with warnings.catch_warnings(action="ignore"):
                annot = annotations_of(file)
        except (ValueError, OSError) as error:
            unread = f"{file.name}: {error}"
            continue
        for name, lasts in zip(annot.description.tolist(), annot.duration.tolist(), strict=True):
            if name and marks.kind_of_text(name) == "label":
                durations.setdefault(name, []).append(lasts)
    if unread and not durations:
        raise ValueError(f"No recording has an annotation that can be read, such as {unread}")
    return durations


def labels_in_annotations(durations: Mapping[str, Sequence[float]], seconds: float) -> list[str]:
    """Return the annotations that are labels, in alphabetical order.

    They are all that are as long as a window, or, if there are none, all without a duration.

    Parameters
    ----------
    durations : mapping of str to list of float
        What :func:`durations_in` returned.
    seconds : float
        Length of a window.

    Raises
    ------
    ValueError
        When there are none.

    Warns
    -----
    UserWarning
        When only one of several is as long as a window.
    """
    long = {n for n, lengths in durations.items() if cutting.holds_a_window(max(lengths), seconds)}
    if len(long) == 1 and len(durations) > 1:
        others = {name: max(lengths) for name, lengths in durations.items() if name not in long}
        descriptions = [f"{name!r} ({lasts:g} s)" for name, lasts in sorted(others.items())]
        checks.warn_user(
            f"The only label is {next(iter(long))!r}: no other annotation is as long as a window "
            f"of {seconds:g} s. If {checks.format_list(descriptions, max_items=5)} are labels, pass "
            "window_seconds, or labels= with their names."
        )
    instant = {name for name, lengths in durations.items() if 0 in lengths}
    if not long and not instant:
        raise ValueError(
            f"The recordings have no annotation that is as long as a window of {seconds:g} s or "
            "without a duration; annotate them, or pass labels= (--labels), a table: other files, "
            "such as .st of WFDB, are not read. To pretrain on recordings without labels, "
            "braindecode-pars store FOLDER STORE, then pretrain."
        )
    return sorted(long or instant)


def labels_within(
    annot: mne.Annotations, classes: Mapping[str, str], raw: mne.io.BaseRaw, seconds: float
) -> mne.Annotations:
    """Return the annotations that are labels, with the names of their classes.

    What is left out is counted, see :func:`~.cutting.omit`. Labels of two classes may not overlap,
    unless both have no duration.

    Parameters
    ----------
    annot : Annotations
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

    Warns
    -----
    UserWarning
        When windows of the usual length after labels without a duration share most of their samples
        with those of another class.

    Examples
    --------
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
        has = checks.format_list(sorted(set(texts)), max_items=5) or "none"
        cutting.omit("recordings", f"no label that was asked for (annotations: {has})", 1, 1)
        return annot
    sfreq = raw.info["sfreq"]
    length, rounding = raw.n_times / sfreq, max(cutting.ROUNDING, 0.5 / sfreq)
    lasts = np.where(annot.duration == 0, seconds, annot.duration)
    inside = np.minimum(annot.onset + lasts, length) - np.maximum(annot.onset, 0)
    whole, cut = (np.floor((time + rounding) / seconds) for time in (lasts, inside))
    is_outside = (cut < whole) | (inside <= 0)
    cutting.omit(
        "labels", "all or part of which is outside the recording", is_outside.sum(), len(annot)
    )
    is_short = (whole < 1) & ~is_outside
    cutting.omit("labels", f"shorter than a window of {seconds:g} s", is_short.sum(), len(annot))
    names = [classes[text] for text in annot.description]
    is_mark = annot.duration == 0
    order = np.argsort(annot.onset, kind="stable")
    at, of = annot.onset[order][is_mark[order]], np.array(names)[order][is_mark[order]]
    # Shorter windows are trials, whose length the user has chosen.
    if seconds == SECONDS and ((np.diff(at) < seconds / 2) & (of[1:] != of[:-1])).any():
        checks.warn_user(
            f"Windows of {seconds:g} s after labels without a duration share more than half of "
            "their samples with those of another class; pass a shorter window_seconds."
        )
    return _without_overlaps(annot.onset, annot.onset + lasts, names, is_mark)


def _without_overlaps(
    starts: np.ndarray, stops: np.ndarray, names: Sequence[str], is_mark: np.ndarray
) -> mne.Annotations:
    """Leave out labels that overlap another of their class; count them.

    They would give the same windows again. Labels of two classes may not overlap. Marks are labels
    without a duration, which may lie close together. Each label is compared with the one before, in
    the order of starts, that ends last.
    """
    keep, longest = np.ones(len(names), bool), -1
    for i in np.lexsort((-stops, starts)).tolist():
        apart = longest < 0 or starts[i] >= stops[longest] - cutting.ROUNDING
        if apart or (is_mark[i] and is_mark[longest]):
            longest = i if longest < 0 or stops[i] >= stops[longest] else longest
        elif names[i] == names[longest]:
            keep[i] = False
        else:
            raise ValueError(
                f"its labels {names[longest]!r}, from {starts[longest]:g} s to {stops[longest]:g} "
                f"s, and {names[i]!r}, from {starts[i]:g} s on, overlap; correct their times, or "
                "choose fewer labels."
            )
    why = "which overlap another of their class (is the unit of their times seconds?)"
    cutting.omit("labels", why, int((~keep).sum()), len(keep))
    return mne.Annotations(starts[keep], (stops - starts)[keep], np.array(names)[keep])
