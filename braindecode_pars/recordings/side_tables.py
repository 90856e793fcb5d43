"""Find and read the tables that belong to recordings: BIDS tables, and tables of labels.

The tables of a recording are found by the inheritance principle of BIDS (:func:`table_beside`). All
tables are read by :func:`read_table`, and the times in tables by :func:`times_in`. The package
mne-bids is not used for BIDS tables, because it appends the column ``value`` to labels in
``trial_type``, ignores a status such as "bad; noisy", and rejects tables that list the channels in
a different order than the recording.
"""

import os
import re
from collections.abc import Iterable
from io import StringIO
from pathlib import Path
from typing import Any

import mne
import numpy as np
import pandas as pd

from braindecode_pars._common import checks, subjects, tables
from braindecode_pars.recordings import search
from braindecode_pars.windows import marks

#: Suffixes of the BIDS tables that are read together with a recording.
TABLES = ("events", "channels")


def tables_beside(recording: Path) -> list[Path]:
    """Return the BIDS tables of a recording that are read, see :func:`table_beside`."""
    return [table for name in TABLES if (table := table_beside(recording, name))]


def table_beside(recording: Path, suffix: str) -> Path | None:
    """Return the BIDS table of a recording, such as sub-01_task-rest_events.tsv.

    A table with the name of the recording takes precedence. If there is none, the inheritance
    principle of BIDS applies: the table is in the folder of the recording or in a folder above, up
    to the folder of the dataset, and each entity in its file name, such as ``task-rest``, is also
    in the name of the recording. The nearest folder with such a table takes precedence; within a
    folder, the table with the most entities.

    Parameters
    ----------
    recording : Path
        The recording.
    suffix : str
        Kind of the table, such as "events" or "channels".

    Returns
    -------
    Path | None
        Path of the table. None if there is none.

    Raises
    ------
    ValueError
        If a folder contains two matching tables with the same number of entities. If a folder
        contains no matching table, but a table whose entities are spelled differently, such as
        run-01 instead of run-1.
    """
    stem = re.sub(r"_(i?eeg|meg)$", "", subjects.without_ending(recording.name))
    table = recording.with_name(f"{stem}_{suffix}.tsv")
    if os.path.lexists(table):  # a broken link counts
        return table
    entities = {part for part in stem.split("_") if "-" in part}
    for folder in recording.absolute().parents if stem.startswith("sub-") else ():
        tables = [*folder.glob(f"*_{suffix}.tsv"), *folder.glob(f"{suffix}.tsv")]
        parts = {path: {*path.name.split("_")[:-1]} for path in tables}
        n_entities = {path: len(part) for path, part in parts.items() if part <= entities}
        matches = [path for path, n in n_entities.items() if n == max(n_entities.values())]
        similar = [path for path, part in parts.items() if _plain(part) <= _plain(entities)]
        if len(matches) > 1 or (similar and not matches):
            raise ValueError(
                f"It is unclear which table belongs to {recording.name}. Candidates: "
                f"{' and '.join(map(str, sorted(matches or similar)))}. Rename the table of this "
                f"recording to {table.name}, or remove or rename the tables that do not belong to "
                "it."
            )
        if matches:
            return matches[0]
        if not re.match(r"sub-|ses-|i?eeg$|meg$", folder.name):
            break
    return None


def _plain(entities: Iterable[str]) -> set[str]:
    """Return BIDS entities in lower case and without leading zeros: Run-01 becomes run-1."""
    return {re.sub(r"-0+(?=\d)", "-", entity).casefold() for entity in entities}


def read_table(file: str | Path, folder: Path) -> pd.DataFrame:
    """Read a CSV or TSV file as a DataFrame of strings; empty cells are NaN.

    Leading and trailing whitespace is removed from cells. The cells "n/a", "NaN" and "null" count
    as empty, in upper or lower case. Column names are converted to lower case.

    Parameters
    ----------
    file : path
        Table in UTF-8, with commas, semicolons or tabs as separators. A relative path may be
        relative to ``folder`` or to the working directory.
    folder : Path
        Folder of the recordings.

    Returns
    -------
    DataFrame
        The table.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If the file is not a table, if a column name occurs twice, or if a relative path refers to
        different files in ``folder`` and in the working directory.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings.side_tables import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "labels.csv").write_text("file;label\\nP01.edf;rest\\n")
    ...     read_table("labels.csv", Path(folder))["label"].tolist()
    ['rest']
    """
    here = Path(file).expanduser()
    places = {os.path.realpath(path): path.absolute() for path in (folder / here, here)}
    paths = [path for path in places.values() if os.path.lexists(path)]
    if not paths:
        raise FileNotFoundError(
            f"The table {' or '.join(map(str, places.values()))} does not exist. Correct the path."
        )
    path, *others = paths
    if others:
        raise ValueError(
            f"The relative path {here} matches two tables: {path} and {others[0]}. Pass the "
            "absolute path of one of them."
        )
    if problem := search.why_unreadable(path):
        raise ValueError(f"{path} cannot be read: {problem}")
    try:
        text = path.read_text(encoding="utf-8-sig")
        header = text.strip("\n").partition("\n")[0]
        table = pd.read_csv(
            StringIO(text),
            sep=max(",;\t", key=header.count),
            header=None,
            dtype=str,
            keep_default_na=False,
            skipinitialspace=True,
        )
    except ValueError as error:  # also errors of pandas
        raise ValueError(
            f"{path} cannot be read as a table ({error}). Save it as a CSV or TSV file in UTF-8."
        ) from error
    table = table.apply(lambda cells: cells.str.strip().replace(tables.EMPTY, np.nan, regex=True))
    header = table.iloc[0]
    table = table.iloc[1:].dropna(how="all").set_axis(header.rename(None), axis=1)
    return with_plain_columns(table.reset_index(drop=True), path)


def with_plain_columns(table: pd.DataFrame, where: Any) -> pd.DataFrame:
    """Return a table with column names in lower case, and without empty columns that have no name.

    Parameters
    ----------
    table : DataFrame
        Table as read or as passed by the user.
    where : Any
        Name of the table in error messages.

    Raises
    ------
    ValueError
        If two columns have the same name.
    """
    table = table.set_axis([tables.label_text(name).casefold() for name in table], axis=1)
    table = table.loc[:, [name != "" or bool(cells.notna().any()) for name, cells in table.items()]]
    if (duplicated := table.columns[table.columns.duplicated()]).size:
        raise ValueError(
            f"{where} contains the column {duplicated[0]!r} twice (upper and lower case are not "
            "distinguished). Rename or remove one of them."
        )
    return table


#: Words in column names that indicate the start of an event.
_BEGIN = "beg|begin|beginning|start|onset|time|stamp|epoch|latency|sample|second|sec"
#: Words in column names that indicate the end or the duration of an event.
_EXTENT = "end|ending|stop|finish|offset|length|duration|dur"
#: A word of either kind.
_TIME = f"({_BEGIN}|{_EXTENT})"
#: Column names that contain only these words, such as "start_time".
TIME = re.compile(rf"{_TIME}({_TIME}|m?s|idx|[^a-z])*|from|to|until|first|last|t(0|1|min|max)?")


def times_in(table: pd.DataFrame, where: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the onsets and durations in a table, in seconds; NaN for empty cells.

    Parameters
    ----------
    table : DataFrame
        Table, as returned by :func:`read_table` or :func:`with_plain_columns`, with the optional
        columns ``onset`` and ``duration``.
    where : Any
        Name of the table in error messages.

    Returns
    -------
    onsets, durations : ndarray, shape (n_rows,)
        Onset and duration of each row.

    Raises
    ------
    ValueError
        If ``onset`` or ``duration`` is missing and another column appears to contain times, such as
        "start_time" or "end". If a cell is neither empty nor a number, if a duration is negative,
        or if a duration has no onset.
    """
    texts = table.reindex(columns=["onset", "duration"]).map(tables.label_text)
    filled_columns = [*table.dropna(axis=1, how="all")]
    pattern = rf"(?<![a-z])({_EXTENT}){_TIME}*s?(?![a-z])"
    if "onset" not in filled_columns:
        pattern = rf"(?<![a-z]){_TIME}+s?(?![a-z])|^({TIME.pattern})$"
    further = [name for name in filled_columns if name not in texts and re.search(pattern, name)]
    if further and not {*texts} <= {*filled_columns}:
        raise ValueError(
            f"{where} has columns that appear to contain times, but are not read: "
            f"{checks.format_list([*map(repr, further)])}. Times are only read from the columns "
            "'onset' and 'duration': the onset in seconds relative to the first sample, and the "
            "duration in seconds. If the columns contain these times, rename them to 'onset' and "
            "'duration'; otherwise, remove the columns."
        )
    numbers = texts.apply(pd.to_numeric, errors="coerce").astype(float)
    is_invalid = (texts != "") & ~np.isfinite(numbers)
    is_invalid["duration"] |= numbers["duration"] < 0
    is_invalid["onset"] |= (texts["onset"] == "") & (numbers["duration"] > 0)
    for row, column in np.argwhere(is_invalid.to_numpy())[:1].tolist():
        raise ValueError(
            f"{where} contains the {texts.columns[column]} {texts.iloc[row, column]!r} in row "
            f"{texts.index[row] + 2}, expected a time in seconds, such as 90.5. A duration must "
            "not be negative; it may be empty or n/a. A row with a duration must have an onset. "
            "Correct the row."
        )
    return numbers["onset"].to_numpy(), numbers["duration"].to_numpy()


def events_in(table: Path, *, marks_only: bool = False) -> mne.Annotations:
    """Read the events of a BIDS table as annotations, described by the column ``trial_type``.

    Parameters
    ----------
    table : Path
        BIDS table ``_events.tsv``.
    marks_only : bool
        Whether to return only gaps and bad segments. If False, all events are returned.

    Returns
    -------
    Annotations
        Annotations with onsets in seconds relative to the first sample.
    """
    events = read_table(table, table.parent)
    if marks_only and "onset" not in events:
        return mne.Annotations([], [], [])
    if not marks_only and not events.empty:
        tables.check_table(events, str(table), ["onset", "trial_type"])
    texts, values = (
        events.reindex(columns=[name])[name].map(tables.label_text, "ignore").astype(object)
        for name in ("trial_type", "value")
    )
    if marks_only:  # EEGLAB writes a gap in the column value, even if trial_type is not empty
        texts = texts.fillna(values).mask(values.astype(str).str.lower() == "boundary", values)
        texts = texts[texts.notna() & (texts.map(marks.kind_of_text, "ignore") != "label")]
    texts = texts.dropna()
    events = events.loc[texts.index].fillna({"onset": "none"})  # an empty onset is an error
    onsets, durations = times_in(events, table)
    return mne.Annotations(onsets, np.nan_to_num(durations), texts.tolist())
