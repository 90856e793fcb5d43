"""Labels of recordings: where they are, and which classes and targets they become.

Labels are in annotations of the recordings or of the BIDS table beside them, in the names of files,
or in a table of all files, with a row for each labelled stretch, or of all subjects.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from numbers import Integral
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from braindecode_pars._common.checks import listed, warn_user
from braindecode_pars._common.files import checksum_of
from braindecode_pars._common.subjects import normalized, subject_key, without_ending
from braindecode_pars.recordings.cutting import holds_a_window
from braindecode_pars.recordings.label_annotations import (
    Stretch,
    label_text,
    labels_in_annotations,
    read_table,
)
from braindecode_pars.recordings.loading import Recording

log = logging.getLogger(__name__)

#: Where labels are, see :func:`datasets.folder.load <braindecode_pars.datasets.folder.load>`.
Labels: TypeAlias = (
    str | Path | pd.DataFrame | Sequence[str] | Mapping[str, int] | Mapping[str, str] | None
)


@dataclass(frozen=True)
class LabelledFile(Recording):
    """A recording, not yet opened, with labelled stretches, and its subject if they name it."""

    stretches: tuple[Stretch, ...] = ()


def labels_of_files(
    labels: Labels,
    root: Path,
    files: Sequence[Path],
    seconds: float,
    column: str = "label",
    subject_of: Callable[[Path], Any] = lambda file: None,
) -> list[LabelledFile] | None:
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
    column : str
        Column of the labels in a table.
    subject_of : callable
        Function that returns the subject of a file, for a table of subjects.

    Raises
    ------
    TypeError
        When ``labels`` are none of these.
    ValueError
        When ``labels`` is a text that is neither a pattern of names nor the path of a table, when
        the labels are not those of the files or subjects, or when a column of no table is given.

    Examples
    --------
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings.label_files import labels_of_files
    >>> root, file = Path("data"), Path("data", "P01_rest.edf")
    >>> labels_of_files("{subject}_{label}", root, [file], 30)[0].subject
    'P01'
    >>> labels_of_files(["W", "N1"], root, [file], 30) is None
    True
    """
    text = str(labels)
    is_path = isinstance(labels, (str, Path)) and text.lower().endswith((".csv", ".tsv"))
    if is_path or isinstance(labels, pd.DataFrame):
        table = labels if isinstance(labels, pd.DataFrame) else read_table(text, root)
        where = text if is_path else "The table of labels"
        if "file" not in table:
            return labels_of_subjects(table, files, column, where, subject_of)
        if column != "label":
            table = table.drop(columns="label", errors="ignore").rename(columns={column: "label"})
        return labels_in_table(table, root, files, seconds, where)
    if column != "label":
        raise ValueError(
            f"label_column={column!r} is for labels in a table; labels is {labels!r}, so give its "
            "path, such as labels='participants.tsv', or omit label_column."
        )
    if not isinstance(labels, (str, Path)):
        if labels is not None:
            check_ordered("labels", labels)
        return None
    if "{" in text or _NAMED_GROUP in text:
        return labels_in_names(text, root, files)
    raise ValueError(
        f"labels is the text {text!r}; give a list of labels, [{text!r}], a template of names "
        "such as '{subject}_{label}', or the path of a .csv or .tsv file."
    )


def classes_and_targets(
    labels: Labels,
    classes: Sequence[str] | Mapping[str, str] | None,
    of_files: Sequence[LabelledFile] | None,
    files: Sequence[Path],
    seconds: float,
) -> tuple[dict[str, str], dict[str, int]]:
    """Return the class of each label, and the target of each class.

    Parameters
    ----------
    labels : list | dict | str | path | DataFrame | None
        Where labels are; for those in annotations also which they are.
    classes : list of str | mapping of str to str | None
        As in :func:`classes_of_labels`.
    of_files : list of LabelledFile | None
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
        labelled = {label for file in of_files for _, _, label in file.stretches}
        names = classes_of_labels(labelled, classes)
    elif classes is not None:
        raise ValueError(
            "classes is for labels in names of files or in a table; write the classes of "
            "annotations as labels={description: class}."
        )
    elif isinstance(labels, Mapping):
        return given_classes(labels)
    else:
        assert not isinstance(labels, Path)  # the labels of a table are in of_files
        if labels is None:
            _warn_of_case(labels := labels_in_annotations(files, seconds))
        names = {label_text(label): label_text(label) for label in labels}
    if not names:
        raise ValueError("There are no labels: the list or the column of labels is empty.")
    targets = targets_of(names)
    log.info("The labels are %s, with the targets 0, 1, ...", ", ".join(targets))
    return names, targets


def check_ordered(name: str, labels: Any) -> None:
    """Check that labels have an order, which is that of the targets.

    Raises
    ------
    TypeError
        When they are a set, whose order is another one in the next process, or no labels at all.
    """
    if isinstance(labels, (set, frozenset)) or not isinstance(labels, Iterable):
        raise TypeError(
            f"{name} must be a list in the order of the targets, or a dict, got {labels!r}."
        )


def classes_of_labels(
    found: Iterable[str], classes: Sequence[str] | Mapping[str, str] | None
) -> dict[str, str]:
    """Return the class of each label, in the order of the targets.

    Parameters
    ----------
    found : iterable of str
        Labels of all files.
    classes : list of str | mapping of str to str | None
        Labels that are used, in the order of the targets; or a class for each label that is used.
        None uses all labels, numbers in their order, others in alphabetical order.

    Returns
    -------
    dict of str to str
        Class by label.

    Raises
    ------
    TypeError
        When ``classes`` are neither a list nor a dict.
    ValueError
        When no file has one of the labels, or when they are many numbers, such as ages.

    Warns
    -----
    UserWarning
        When labels that become classes differ in upper and lower case only.

    Examples
    --------
    >>> from braindecode_pars.recordings.label_files import classes_of_labels
    >>> classes_of_labels(["10", "9"], None)
    {'9': '9', '10': '10'}
    >>> classes_of_labels(["1", "2"], {"1": "rest", "2": "arithmetic"})
    {'1': 'rest', '2': 'arithmetic'}
    """
    labels = sorted(set(found))
    is_number = all(re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", label) for label in labels)
    if is_number:
        labels.sort(key=float)
    if classes is None:
        if is_number and len(labels) > _MOST_NUMBERS:
            raise ValueError(
                f"The labels are {len(labels)} different numbers, {listed(labels, most=3)}; group "
                "them by classes={number: class}, such as {'31': 'young', '67': 'old'}."
            )
        _warn_of_case(labels)
        return {label: label for label in labels}
    if isinstance(classes, str):
        raise ValueError(f"classes is the text {classes!r}; give a list of labels, [{classes!r}].")
    check_ordered("classes", classes)
    names = classes.values() if isinstance(classes, Mapping) else classes
    chosen = {str(label): str(name) for label, name in zip(classes, names, strict=True)}
    absent = [label for label in chosen if label not in labels]
    if absent or not chosen:
        raise ValueError(
            f"classes has {', '.join(map(repr, absent)) or 'no label'}, but the labels of the "
            f"files are {', '.join(map(repr, labels))}."
        )
    return chosen


def _warn_of_case(labels: Iterable[str]) -> None:
    for _, same in groupby(sorted(labels, key=str.casefold), str.casefold):
        if len(spellings := list(same)) > 1:
            warn_user(
                f"The labels {' and '.join(map(repr, spellings))} are different classes. If they "
                "are one, pass classes={label: class}, or labels={label: class} for annotations."
            )


def targets_of(classes: Mapping[str, str]) -> dict[str, int]:
    """Return the targets of classes, in the order in which labels have them.

    Examples
    --------
    >>> from braindecode_pars.recordings.label_files import targets_of
    >>> targets_of({"3": "N3", "4": "N3", "5": "R"})
    {'N3': 0, 'R': 1}
    """
    return {name: target for target, name in enumerate(dict.fromkeys(classes.values()))}


def given_classes(
    labels: Mapping[str, str] | Mapping[str, int],
) -> tuple[dict[str, str], dict[str, int]]:
    """Return the class of each description of annotations, and the target of each class.

    Parameters
    ----------
    labels : mapping of str to (str | int)
        Class by description, or target by description; a class is then called as its description.

    Returns
    -------
    classes : dict of str to str
        Class by description.
    targets : dict of str to int
        Target by class, without given targets in the order of the classes.

    Raises
    ------
    ValueError
        When the values are neither all texts nor all integers.

    Examples
    --------
    >>> from braindecode_pars.recordings.label_files import given_classes
    >>> given_classes({"Sleep stage 3": "N3", "Sleep stage 4": "N3", "Sleep stage W": "W"})[1]
    {'N3': 0, 'W': 1}
    """
    values = labels.values()
    if labels and all(isinstance(value, str) for value in values):
        classes = {label_text(name): label_text(value) for name, value in labels.items()}
        return classes, targets_of(classes)
    if labels and all(isinstance(v, Integral) and not isinstance(v, bool) for v in values):
        targets = {label_text(name): int(value) for name, value in labels.items()}
        return {name: name for name in targets}, targets
    raise ValueError(
        "labels must give each description a class, as in {'Sleep stage W': 'W'}, or each a "
        f"target, an integer; got {dict(labels)!r}."
    )


#: So many different numbers are ages or scores, not classes.
_MOST_NUMBERS = 20

#: Seconds by which rounded labels may overlap.
_TOLERANCE = 1e-3

#: A whole number as pandas and spreadsheets write it in a column with empty cells.
_WHOLE = re.compile(r"\A(-?[0-9]+)\.0+\Z")


def labels_in_table(
    table: pd.DataFrame, root: Path, files: Sequence[Path], seconds: float, where: str
) -> list[LabelledFile]:
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
    list of LabelledFile
        All files; one whose only row has no label has no stretch.

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
    >>> [file] = labels_in_table(table, Path("d"), [Path("d", "a.edf")], 30, "table")
    >>> file.stretches
    ((30.0, 60.0, 'N2'),)
    """
    _check_columns(table, where)
    # A file is named by its path below the folder or its name, with or without the ending.
    known: dict[str, list[Path]] = {}
    for file in files:
        path = file.relative_to(root)
        names = (normalized(path.as_posix()), normalized(path.name))
        for name in {*names, *map(without_ending, names)}:
            known.setdefault(name, []).append(file)
    rows_of: dict[Path, list[dict[str, Any]]] = {file: [] for file in files}
    for row in table.to_dict("records"):
        rows_of[_file_of(row, known, where)].append(row)
    without = [file.relative_to(root).as_posix() for file, rows in rows_of.items() if not rows]
    if without:
        raise ValueError(
            f"{where} has no row of {listed(without, most=5)}; an empty label leaves a file out."
        )
    return [_labelled(file, rows, seconds, where) for file, rows in rows_of.items()]


def labels_of_subjects(
    table: pd.DataFrame,
    files: Sequence[Path],
    column: str,
    where: str,
    subject_of: Callable[[Path], Any],
) -> list[LabelledFile]:
    """Return the label of each file: that of its subject.

    Parameters
    ----------
    table : DataFrame
        A column ``subject`` or ``participant_id``, and one of labels; others are ignored.
    files : list of Path
        The recordings.
    column : str
        Column of the labels.
    where : str
        Name of the table, for error messages.
    subject_of : callable
        Function that returns the subject of a file. Spellings of one name, such as "sub-01" and
        "01", are one subject.

    Returns
    -------
    list of LabelledFile
        All files, without their subjects; those of a subject without a label have no stretch.

    Raises
    ------
    ValueError
        When the table lacks a column, when it does not name a subject, or gives one two labels.

    Examples
    --------
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from braindecode_pars.recordings.label_files import labels_of_subjects
    >>> table = pd.DataFrame({"participant_id": ["sub-01"], "age": [30], "diagnosis": ["MCI"]})
    >>> files = [Path("01.edf")]
    >>> labels_of_subjects(table, files, "diagnosis", "table", lambda file: file.stem)[0].stretches
    ((None, None, 'MCI'),)
    """
    name = "participant_id" if "participant_id" in table else "subject"
    if name not in table or column not in table:
        missing = repr(column) if name in table else "'file', 'subject' or 'participant_id'"
        raise ValueError(
            f"{where} has no column {missing}; it has {listed(list(map(repr, table)))}. Pass the "
            "column of the labels as label_column, such as label_column='diagnosis'."
        )
    label_of: dict[str, str] = {}
    for subject, value in zip(table[name], table[column], strict=True):
        label = _label(value)
        before = label_of.setdefault(subject_key(subject), label)
        if before != label:
            raise ValueError(
                f"{where} gives the subject {subject} the labels {before!r} and {label!r}; a "
                "label for each recording needs a column 'file'."
            )
    subjects = {file: subject_of(file) for file in files}
    absent = [s for s in dict.fromkeys(subjects.values()) if subject_key(s) not in label_of]
    if absent:
        raise ValueError(
            f"{where} has no row of the subject {listed(list(map(str, absent)))}; it has "
            f"{listed(list(map(str, table[name])), most=5)}. Add a row, with an empty label to "
            "leave the subject out, or pass subject= if this is no subject."
        )
    labels = {file: label_of[subject_key(subject)] for file, subject in subjects.items()}
    return [
        LabelledFile(file, {}, ((None, None, label),) if label else ())
        for file, label in labels.items()
    ]


def _check_columns(table: pd.DataFrame, where: str) -> None:
    columns, known = set(table), {"file", "label", "subject", "onset", "duration"}
    wrong = [f"no column {name!r}" for name in ("file", "label") if name not in columns]
    wrong += [f"the unknown column {name!r}" for name in table if name not in known]
    if "duration" in columns and "onset" not in columns:
        wrong.append("durations without onsets")
    if wrong:
        raise ValueError(
            f"{where} has {wrong[0]}. It needs the columns 'file' and 'label', and may have "
            "'subject', and 'onset' and 'duration' in seconds; rename or remove others."
        )


def _file_of(row: dict[str, Any], known: dict[str, list[Path]], where: str) -> Path:
    if pd.isna(row["file"]):
        raise ValueError(f"{where} has a row without a file (label {row['label']!r}); fill it in.")
    name = label_text(row["file"]).replace("\\", "/").removeprefix("./")
    found = known.get(name, [])
    if len(found) != 1:
        which = f"may be {found[0]} or {found[1]}" if found else "is not in the folder"
        raise ValueError(
            f"{where} names the file {name!r}, which {which}; write its path below the folder."
        )
    return found[0]


def _labelled(file: Path, rows: list[dict[str, Any]], seconds: float, where: str) -> LabelledFile:
    """Return a file with the labels in its rows."""
    given = [row["subject"] for row in rows if "subject" in row]
    subjects = list(
        dict.fromkeys(label_text(s) or None if isinstance(s, str) else s for s in given)
    )
    if len(subjects) > 1 or any(map(pd.isna, subjects)):
        named = " and ".join("none" if pd.isna(s) else str(s) for s in subjects)
        raise ValueError(
            f"{where} names the subject of {file.name} as {named}; write the same in each row."
        )
    stretches = tuple(
        (_seconds(row, "onset", where), _seconds(row, "duration", where) or None, label)
        for row in rows
        if (label := _label(row["label"]))
    )
    _check_stretches(f"{where}: {file.name}", stretches, seconds)
    return LabelledFile(file, {"subject": subjects[0]} if subjects else {}, stretches)


def _label(value: Any) -> str:
    """Return the label in a cell; an empty text if there is none."""
    return "" if pd.isna(value) else _WHOLE.sub(r"\1", label_text(value))


def _seconds(row: dict[str, Any], column: str, where: str) -> float | None:
    """Return a time in seconds; None for an empty cell."""
    text: Any = row.get(column)
    if pd.isna(text):
        return None
    try:
        value = float(text)
    except (TypeError, ValueError):  # such as a clock time
        value = math.nan
    if not 0 <= value < math.inf:
        raise ValueError(
            f"{where} has the {column} {text!r} in a row of {row['file']}; write seconds from the "
            "start of the recording, such as 90.5."
        )
    return value


def _check_stretches(name: str, stretches: Sequence[Stretch], seconds: float) -> None:
    """Check that labels with onsets do not overlap, and that one without is the only one."""
    timed = [(onset, lasts, label) for onset, lasts, label in stretches if onset is not None]
    timed.sort(key=itemgetter(0))
    if len(timed) < len(stretches) and (len(stretches) > 1 or stretches[0][1] is not None):
        labels = ", ".join(dict.fromkeys(repr(label) for _, _, label in stretches))
        raise ValueError(
            f"{name} has labels without an onset beside others or with a duration ({labels}); "
            "give each row an onset, or the file one row for the whole recording."
        )
    for (start, lasts, first), (next_start, _, second) in pairwise(timed):
        end = start + (lasts or 0)
        if next_start < end - _TOLERANCE or next_start == start:
            raise ValueError(
                f"{name} has labels that overlap: {first!r} from {start:g} s to {end:g} s, and "
                f"{second!r} from {next_start:g} s; correct their times."
            )
    for start, lasts, label in timed:
        if lasts is not None and not holds_a_window(lasts, seconds):
            raise ValueError(
                f"{name} has the label {label!r} for {lasts:g} s at {start:g} s, less than a "
                f"window of {seconds:g} s; pass a shorter window_seconds, or remove such rows."
            )


_FIELDS = ("label", "subject")
_NAMED_GROUP = "(?P<"


def labels_in_names(pattern: str, root: Path, files: Sequence[Path]) -> list[LabelledFile]:
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
    list of LabelledFile
        All files.

    Raises
    ------
    ValueError
        When the pattern is not valid, does not match a name, or matches it in two ways.

    Examples
    --------
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings.label_files import labels_in_names
    >>> file = Path("data", "Subject00_1.edf")
    >>> [labelled] = labels_in_names("{subject}_{label}", Path("data"), [file])
    >>> labelled.subject, labelled.stretches
    ('Subject00', ((None, None, '1'),))
    """
    longest, shortest = _expressions(pattern)
    found = []
    for file in files:
        path = normalized(file.relative_to(root).as_posix())
        text = path if _NAMED_GROUP in pattern else without_ending(path)
        match, other = longest.search(text), shortest.search(text)
        groups = match.groupdict() if match else {}
        fields = {name: (groups[name] or "").strip() for name in _FIELDS if name in groups}
        missing = [name for name in _FIELDS if not fields.get(name, name == "subject")]
        if missing or match is None or other is None:
            raise ValueError(
                f"{file} has no {missing[0]}: labels={pattern!r} does not match its name; change "
                "the pattern, or move the file out of the folder."
            )
        # A name that the longest and the shortest fields match differently can be read in two ways.
        for field in fields:
            if match[field] != other[field]:
                raise ValueError(
                    f"The {field} of {path} may be {other[field]!r} or {match[field]!r}; pass "
                    "labels as a regular expression, as '(?P<subject>[^/_]+)_(?P<label>[^/.]+)'."
                )
        label = fields.pop("label")
        found.append(LabelledFile(file, fields, ((None, None, label),)))
    return found


def _expressions(pattern: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the expressions with the longest and with the shortest fields of a template."""
    if _NAMED_GROUP in pattern:
        try:
            expression = re.compile(pattern)
        except re.error as error:
            raise ValueError(f"labels={pattern!r} is not a regular expression: {error}.") from error
        if "label" not in expression.groupindex:
            raise ValueError(f"labels={pattern!r} has no group (?P<label>...) around the label.")
        return expression, expression
    parts = re.split(r"(\{.*?\}|\*)", pattern)
    fields = [part[1:-1] for part in parts if part.startswith("{")]
    if "label" not in fields or len(set(fields)) < len(fields) or not {*fields} <= {*_FIELDS}:
        raise ValueError(
            f"labels={pattern!r} is no template of names; it needs the field {{label}} once, may "
            "have {subject} once, and * for any text, as in '{subject}_{label}'."
        )
    start = "^" if "/" in pattern else "(?:^|/)"

    def compiled(more: str) -> re.Pattern[str]:
        written = {f"{{{field}}}": f"(?P<{field}>[^/]{more})" for field in _FIELDS}
        written["*"] = f"(?:[^/]{more})?"
        text = "".join(written.get(part, re.escape(part)) for part in parts)
        return re.compile(rf"{start}{text}\Z")

    return compiled("+"), compiled("+?")


def checksum_of_labels(
    files: Iterable[LabelledFile], classes: Mapping[str, str], root: Path
) -> str:
    """Return a checksum of the labels of all files, for the settings of a cache."""
    rows = sorted((each.file.relative_to(root).as_posix(), each.stretches) for each in files)
    return checksum_of(json.dumps([rows, list(classes.items())]).encode())
