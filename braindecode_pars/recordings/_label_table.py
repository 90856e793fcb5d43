"""Labels in a table: a CSV file, or a data frame, with a row for each labelled stretch."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from braindecode_pars._subjects import normalized, without_ending
from braindecode_pars.recordings._file_labels import FileLabels, Stretch
from braindecode_pars.recordings.cutting import holds_a_window

__all__ = ["labels_in_table", "read_table"]

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
    >>> from braindecode_pars.recordings._label_table import read_table
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
    >>> from braindecode_pars.recordings._label_table import labels_in_table
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
    ordered = sorted(stretches, key=lambda stretch: stretch.onset)
    for first, second in pairwise(ordered):
        end = first.onset + (first.duration or 0)
        if second.onset < end - _TOLERANCE or second.onset == first.onset:
            raise ValueError(
                f"{name} has labels that overlap: {first.label!r} from {first.onset:g} s to "
                f"{end:g} s, and {second.label!r} from {second.onset:g} s; correct their times."
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
