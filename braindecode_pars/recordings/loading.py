"""Read a list of recordings into one dataset of windows, in parallel; and read tables.

Subjects are chosen by name, and split at random but reproducibly, or as a file lists them.
"""

import codecs
import logging
import os
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import joblib
import mne
import numpy as np
import pandas as pd
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset

from braindecode_pars._common import checks, tables, training
from braindecode_pars._common.subjects import in_corpus, subject_key
from braindecode_pars.recordings import cutting, search
from braindecode_pars.windows import marks

log = logging.getLogger(__name__)


def skipped_message(skipped: Sequence[str], n_recordings: int) -> str:
    """Return a message with the reasons why recordings were skipped, at most twenty of them."""
    more = [f"and {len(skipped) - 20} more"] if len(skipped) > 20 else []
    lines = [f"{len(skipped)} of {n_recordings} recordings were skipped:", *skipped[:20], *more]
    return "\n  ".join(lines)


@dataclass(frozen=True)
class Recording:
    """One recording of a corpus, not yet opened, with its description.

    Parameters
    ----------
    file : Path
        Path of the recording.
    description : mapping
        Numbers and strings that describe the recording: ``subject``, then further entries such as
        ``split`` and ``session``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings.loading import Recording
    >>> Recording(Path("P01.edf"), {"subject": "P01", "split": "train"}).subject
    'P01'
    """

    file: Path
    description: Mapping[str, Any]

    @property
    def subject(self) -> Any:
        """Subject of the recording."""
        return self.description["subject"]

    @property
    def corpus_subject(self) -> Any:
        """Subject with the corpus in front, where the description has one."""
        return in_corpus(self.description.get("corpus"), self.subject)


def choose_subjects(
    recordings: Iterable[Recording], subjects: Iterable | None, where: str | Path
) -> list[Recording]:
    """Keep the recordings of some subjects.

    Parameters
    ----------
    recordings : iterable of Recording
        All recordings that were found.
    subjects : iterable | None
        Subjects to keep, with or without their corpus in front; None keeps all.
    where : path
        Folder of the recordings, for the error message.

    Returns
    -------
    list of Recording
        Recordings of these subjects, in the given order.

    Raises
    ------
    FileNotFoundError
        When a subject has no recording, or when there are no recordings.
    TypeError
        When ``subjects`` is a string.
    ValueError
        When ``subjects`` is empty.

    Examples
    --------
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings.loading import Recording, choose_subjects
    >>> files = [Path(f"P0{n}.edf") for n in (1, 2, 3)]
    >>> recordings = [Recording(file, {"subject": file.stem}) for file in files]
    >>> chosen = choose_subjects(recordings, ["P02", "P03"], "folder")
    >>> [recording.subject for recording in chosen]
    ['P02', 'P03']
    """
    recordings = list(recordings)
    if subjects is None:
        if not recordings:
            raise FileNotFoundError(f"{where} contains no recording of this corpus.")
        return recordings
    if isinstance(subjects, str):
        raise TypeError(f"subjects is the string {subjects!r}; give a list of subjects.")
    # Every subject needs a recording, so that a typing error does not go unnoticed.
    subjects = list(subjects)
    if not subjects:
        raise ValueError("subjects is an empty list; omit it to read all subjects.")
    all_subjects = list(dict.fromkeys(recording.subject for recording in recordings))
    known = {*all_subjects, *(recording.corpus_subject for recording in recordings)}
    absent = [subject for subject in subjects if subject not in known]
    if absent:
        raise FileNotFoundError(
            f"{where} contains no recording of subject {', '.join(map(str, absent))}; it has "
            f"{checks.format_list(list(map(str, all_subjects))) or 'none'}."
        )
    wanted = set(subjects)
    return [r for r in recordings if r.subject in wanted or r.corpus_subject in wanted]


def read_corpus(
    recordings: Iterable[Recording],
    read: Callable[[Recording], EEGWindowsDataset | None],
    corpus: str,
    classes: Sequence[str] | Mapping[str, int] = (),
    expected: Collection[str] | None = None,
    *,
    left_out: Mapping[Path, str] | None = None,
    n_jobs: int = 1,
    on_error: str = "raise",
    verbose: int = 1,
) -> BaseConcatDataset:
    """Read all recordings of a corpus into one dataset of windows.

    A :class:`~braindecode_pars.signal_store.SignalStore` with labels keeps prepared recordings on
    disk, also those of a corpus that does not fit into memory.

    Parameters
    ----------
    recordings : iterable of Recording
        Recordings to read.
    read : callable
        Function that opens one recording, prepares it and cuts it into windows. It returns None
        when the recording is too short for a window. It must be picklable if ``n_jobs`` is not 1.
    corpus : str
        Name of the corpus, which the progress bar shows.
    classes : sequence of str | mapping of str to int
        Names of the targets 0, 1, ..., or the target of each name; empty if they have no names.
        See :func:`~braindecode_pars.recordings.cutting.name_classes`.
    expected : collection of str | None
        Classes that must have a window, as must every subject, where the user chooses labels or the
        length of a window. None, as for corpora that have short recordings, expects neither.
    left_out : mapping of Path to str | None
        Further files, which are not read, and the reason of each for the table of what is left out.
    n_jobs : int
        Number of processes, as in joblib.
    on_error : "raise" | "warn"
        Whether a recording that cannot be read raises an error, or is skipped with a warning; and
        whether there is one when nothing is left of an ``expected`` class or of a subject.
    verbose : int
        Whether to show a progress bar and log what is left out, such as recordings that are too
        short, and kinds of channels of the files (1), or nothing (0).

    Returns
    -------
    BaseConcatDataset of EEGWindowsDataset
        Windows, in the order of ``recordings`` and with their descriptions.

    Raises
    ------
    ValueError
        When a recording cannot be read, whose name is in the message, or when no recording contains
        a window. When nothing is left of a class in ``expected``, or of a subject.

    Warns
    -----
    UserWarning
        With ``on_error="warn"``, when recordings are skipped. The message names them. With
        ``expected``, also when recordings or labels are left out: it is a table of how many, of how
        many, why, and in which files. Windows that the user has marked as bad alone are logged.

    Examples
    --------
    Read a folder of FIF files:

    >>> import tempfile
    >>> from pathlib import Path
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.loading import Recording, read_corpus
    >>> from braindecode_pars.recordings.cutting import fixed_windows
    >>> from braindecode_pars.recordings.preparation import filter_and_resample
    >>> def read(recording):
    ...     raw = mne.io.read_raw_fif(recording.file, preload=True, verbose=False)
    ...     filter_and_resample(raw, mains=50.0)
    ...     return fixed_windows(raw, seconds=10)
    >>> noise = 1e-5 * np.random.default_rng(0).standard_normal((2, 60 * 250))
    >>> info = mne.create_info(["C3", "C4"], 250.0, "eeg")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "P01_raw.fif")
    ...     _ = mne.io.RawArray(noise, info, verbose=False).save(file, verbose=False)
    ...     recordings = [Recording(file, {"subject": "P01"})]
    ...     windows = read_corpus(recordings, read, "mine", verbose=0)
    >>> len(windows), windows[0][0].shape, windows.description["subject"][0]
    (6, (2, 2000), 'P01')
    """
    checks.choice("raise", "warn").check("on_error", on_error)
    recordings, left_out = list(recordings), left_out or {}
    # Read in parallel; results arrive in the given order.
    jobs = joblib.Parallel(n_jobs=n_jobs, return_as="generator")(
        joblib.delayed(_read_one)(recording, read) for recording in recordings
    )
    bar = training.ProgressBar(
        jobs,
        total=len(recordings),
        desc=f"reading {corpus}",
        unit=" recordings",
        disable=not verbose,
    )
    datasets, failures, lost = [], [], []
    rows = [
        (file.name, cutting.ExcludedItem("recordings", why, 1, 1)) for file, why in left_out.items()
    ]
    for recording, (windows, problem, omissions, said) in zip(recordings, bar, strict=True):
        for text in said:
            checks.warn_user(text)
        if problem is not None:
            if on_error == "raise":
                raise ValueError(
                    f"{recording.file} cannot be used: {problem} (on_error='warn', or --on-error "
                    "warn, skips such recordings.)"
                )
            failures.append(f"{recording.file}: {problem}")
            lost.append(recording.subject)
        elif windows is None:
            whole = [omission for omission in omissions if omission.what == "recordings"]
            why = ", ".join(map(str, omissions))
            reason = f"no window left: {why}" if why else "no label as long as a window"
            omissions = whole[:1] or [cutting.ExcludedItem("recordings", reason, 1, 1)]
            lost += [recording.subject] if not omissions[0].is_asked else []
        else:
            windows.set_description(dict(recording.description), overwrite=True)
            datasets.append(cutting.name_classes(windows, classes))
        rows += [(recording.file.name, omission) for omission in omissions]
    # Report what was not used.
    table = _table_of_omissions(rows, len(recordings) + len(left_out))
    if not datasets:
        raise ValueError(
            f"None of {len(recordings)} recordings contains a window. Either all are shorter than "
            f"one, or they have no label that was asked for and is as long as a window.{table}"
        )
    nothing = [] if expected is None else _nothing_left(datasets, lost, classes, expected)
    if nothing and on_error == "raise":
        raise ValueError(
            f"Nothing is left of {checks.format_list(nothing)}. Correct the labels, pass a shorter "
            f"window, or choose other subjects or classes (on_error='warn', or --on-error warn, "
            f"goes on without).{table}"
        )
    messages = [skipped_message(failures, len(recordings))] if failures else []
    messages += [f"Nothing is left of {checks.format_list(nothing)}."] if nothing else []
    if messages or (expected is not None and not all(row.is_asked for _, row in rows)):
        checks.warn_user(("\n".join(messages) + table).strip())
    elif table and verbose:
        log.info(table.strip())
    return BaseConcatDataset(datasets)


def _nothing_left(
    datasets: Sequence[EEGWindowsDataset],
    lost: Iterable[Any],
    classes: Sequence[str] | Mapping[str, int],
    expected: Collection[str],
) -> list[str]:
    """Return the subjects of lost recordings, and the expected classes, without a window."""
    subjects = {part.description["subject"] for part in datasets}
    present_targets = {target for part in datasets for target in part.metadata["target"].tolist()}
    if not isinstance(classes, Mapping):
        classes = {name: target for target, name in enumerate(classes)}
    absent = [n for n, target in classes.items() if n in expected and target not in present_targets]
    lost_subjects = [subject for subject in dict.fromkeys(lost) if subject not in subjects]
    return [*(f"subject {s}" for s in lost_subjects), *(f"the class {name!r}" for name in absent)]


#: Lines of a table of what is left out.
_MOST_LINES = 12


def _table_of_omissions(rows: Iterable[tuple[str, cutting.ExcludedItem]], n_recordings: int) -> str:
    """Return a table of how much is left out, of how much, why, and of which files."""
    columns = ["file", "what", "why", "number", "of", "is_asked"]
    frame = pd.DataFrame([(file, *omission) for file, omission in rows], columns=columns)
    cells = []
    for (what, why), part in frame.groupby(["what", "why"], sort=False):
        of = n_recordings if what == "recordings" else part["of"].sum()
        cells.append(
            (f"{part['number'].sum()} of {of} {what}", why, checks.format_list([*part["file"]], 3))
        )
    return f"\nLeft out:{table_text(cells)}" if cells else ""


def table_text(cells: Sequence[tuple[str, str, str]]) -> str:
    """Return rows of a table as indented lines, at most twelve."""
    shown = cells[:_MOST_LINES]
    first, second = (max((len(cell[i]) for cell in shown), default=0) for i in (0, 1))
    lines = [f"{a:{first}}  {b:{second}}  {c}" for a, b, c in shown]
    lines += [f"and {len(cells) - len(shown)} other reasons"] if len(cells) > len(shown) else []
    return "".join(f"\n  {line}" for line in lines)


def _read_one(
    recording: Recording, read: Callable[[Recording], EEGWindowsDataset | None]
) -> tuple[EEGWindowsDataset | None, str | None, list[cutting.ExcludedItem], list[str]]:
    """Return the windows of a recording, or why it cannot be read, and what is left out of it.

    The last are its warnings, which would not leave a process of a worker.
    """
    if problem := search.why_unreadable(recording.file):
        return None, problem, [], []
    windows, problem = None, None
    with cutting.collected_omissions() as omissions, warnings.catch_warnings(record=True) as w:
        warnings.simplefilter("always", UserWarning)
        try:
            windows = read(recording)
        except Exception as error:  # the caller names the file, whatever error a reader raises
            problem = f"{error or type(error).__name__}"
    said = [str(warning.message) for warning in w if issubclass(warning.category, UserWarning)]
    return windows, problem, [] if problem else omissions, said


def split_subjects(
    subjects: Iterable, shares: Mapping[str, float], seed: int = 0
) -> dict[object, str]:
    """Divide subjects at random into splits.

    The same subjects and seed give the same splits. The order of the subjects and repetitions do
    not matter.

    Parameters
    ----------
    subjects : iterable
        Subjects to divide.
    shares : mapping of str to float
        Share of the subjects in each split, for example ``{"train": 0.8, "valid": 0.2}``.
    seed : int
        Seed of the random division.

    Returns
    -------
    dict
        Split of each subject.

    Raises
    ------
    ValueError
        When a share is negative, or when the shares do not sum to 1.

    Examples
    --------
    >>> from collections import Counter
    >>> from braindecode_pars.recordings.loading import split_subjects
    >>> shares = {"train": 0.6, "valid": 0.2, "test": 0.2}
    >>> splits = split_subjects(range(10), shares, seed=0)
    >>> sorted(Counter(splits.values()).items())
    [('test', 2), ('train', 6), ('valid', 2)]
    """
    values = tables.numbers_of("shares", list(shares.values()))
    if not np.isclose(values.sum(), 1) or values.min() < 0:
        raise ValueError(f"shares must not be negative and must sum to 1, got {dict(shares)}.")
    # Sorted first, so that only the seed determines the order.
    shuffled = sorted(set(subjects), key=str)
    shuffled = [shuffled[i] for i in np.random.RandomState(seed).permutation(len(shuffled))]
    ends = np.round(np.cumsum(list(shares.values())) * len(shuffled)).astype(int)
    names = np.repeat(list(shares), np.diff(ends, prepend=0)).tolist()
    return dict(zip(shuffled, names, strict=True))


def set_splits(
    windows_ds: BaseConcatDataset, splits: Mapping[Any, str] | str | Path
) -> BaseConcatDataset:
    """Set the split of every recording: the entry ``split`` of its description, by subject.

    ``PARSClassifier(validation="split")`` and the protocols use the splits "train", "valid" and
    "test"; ``windows_ds.split("split")`` divides the data by them.

    Parameters
    ----------
    windows_ds : BaseConcatDataset
        Windows with ``subject`` in the descriptions. The descriptions are changed in place.
    splits : mapping | path
        Split by subject, or a table of them: a file ``.csv`` or ``.tsv`` with the columns
        ``subject`` (or BIDS' ``participant_id``) and ``split``. Spellings of one name, such as
        "sub-01" and "1", are one subject. A name may have its corpus in front, as in
        "tuab:aaaaaaab".

    Returns
    -------
    BaseConcatDataset
        ``windows_ds`` itself.

    Raises
    ------
    FileNotFoundError
        When the file does not exist.
    ValueError
        When a subject of the data has no split, or two; or when the file lacks a column.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.recordings.loading import set_splits
    >>> windows = datasets.simulated.sleep(n_subjects=3, hours=0.1, n_chans=2)
    >>> windows = set_splits(windows, {1: "train", 2: "valid", 3: "test"})
    >>> sorted(windows.split("split"))
    ['test', 'train', 'valid']
    """
    pairs: Iterable[tuple[Any, str]]
    if isinstance(splits, Mapping):
        pairs = splits.items()
    else:  # subjects without a split in a file are left out
        table = read_table(splits, Path())
        column = "participant_id" if "participant_id" in table else "subject"
        tables.check_table(table, str(splits), (column, "split"))
        table = table.dropna(subset=["split"])
        pairs = zip(table[column], table["split"], strict=True)
    split_of = by_subject(pairs, "The splits")
    # Keys of each subject; a name with the corpus in front decides before the name alone.
    names = [
        (subject_key(in_corpus(desc.get("corpus"), desc["subject"])), subject_key(desc["subject"]))
        for desc in (part.description for part in windows_ds.datasets)
    ]
    new_splits = [split_of.get(qualified, split_of.get(name)) for qualified, name in names]
    without = {name for (_, name), split in zip(names, new_splits, strict=True) if split is None}
    if without:
        raise ValueError(
            f"The splits do not name {len(without)} subjects of the data: "
            f"{checks.format_list(sorted(without))}; add them to the splits, or leave them out of "
            "the data."
        )
    windows_ds.set_description({"split": new_splits}, overwrite=True)
    return windows_ds


def by_subject(pairs: Iterable[tuple[Any, str]], where: str) -> dict[str, str]:
    """Return what a table has for each subject, by :func:`subject_key`.

    Raises
    ------
    ValueError
        When a subject has two values.
    """
    values: dict[str, str] = {}
    for subject, value in pairs:
        if (before := values.setdefault(subject_key(subject), value)) != value:
            raise ValueError(f"{where} has the subject {subject} with {before!r} and {value!r}.")
    return values


#: What a text in UTF-16 begins with.
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_table(file: str | Path, folder: Path) -> pd.DataFrame:
    """Read a table; all values are texts without blanks around them, and empty cells are missing.

    Empty are also "n/a", "NaN" and "null", in any case. Names of columns are in lower case.

    Parameters
    ----------
    file : path
        Table with commas, semicolons or tabs between its columns, in UTF-8, UTF-16 or Latin-1. A
        relative path is one below ``folder``, or else below the working directory.
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
        When it is no table, or has a column twice; or when both folders have another table of this
        name.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings.loading import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "labels.csv").write_text("file;label\\nP01.edf;rest\\n")
    ...     read_table("labels.csv", Path(folder))["label"].tolist()
    ['rest']
    """
    here = Path(file).expanduser()
    path = folder / here if (folder / here).is_file() or not here.is_file() else here
    if not os.path.lexists(path):
        places = dict.fromkeys(map(str, (path, here.absolute())))
        raise FileNotFoundError(f"There is no table {' or '.join(places)}.")
    if path != here and here.is_file() and path.read_bytes() != here.read_bytes():
        raise ValueError(
            f"{path} and {here.absolute()} are two tables; pass the whole path of one of them."
        )
    if problem := search.why_unreadable(path):
        raise ValueError(f"{path} cannot be read: {problem}")
    content = path.read_bytes()
    try:
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:  # UTF-16, which has a mark at its begin, or Western of Windows
            text = content.decode("utf-16" if content[:2] in _UTF_16 else "cp1252")
        header = text.strip("\r\n").partition("\n")[0]
        table = pd.read_csv(
            StringIO(text),
            sep=max(",;\t", key=header.count),
            header=None,
            dtype=str,
            keep_default_na=False,
            skipinitialspace=True,
        )
    except ValueError as error:  # also pandas' own errors
        raise ValueError(f"{path} is not a table: {error}") from error
    table = table.apply(lambda cells: cells.str.strip().replace(tables.EMPTY, np.nan, regex=True))
    header = table.iloc[0]
    table = table.iloc[1:].dropna(how="all").set_axis(header.rename(None), axis=1)
    return with_plain_columns(table.reset_index(drop=True), path)


def with_plain_columns(table: pd.DataFrame, where: Any) -> pd.DataFrame:
    """Return a table whose names of columns are texts in lower case; empty ones are left out.

    Raises
    ------
    ValueError
        When two columns have one name.
    """
    table = table.set_axis([tables.label_text(name).casefold() for name in table], axis=1)
    table = table.loc[:, [name != "" or bool(cells.notna().any()) for name, cells in table.items()]]
    if (doubled := table.columns[table.columns.duplicated()]).size:
        raise ValueError(f"{where} has the column {doubled[0]!r} twice; rename or remove one.")
    return table


#: Words in names of columns that say when something begins, and when it ends.
_BEGIN = "beg|begin|beginning|start|onset|time|stamp|epoch|latency|sample|second|sec"
_EXTENT = "end|ending|stop|finish|offset|length|duration|dur"
#: Columns that are no more than such words, as "start_time".
_TIME = f"({_BEGIN}|{_EXTENT})"
TIME = re.compile(rf"{_TIME}({_TIME}|m?s|idx|[^a-z])*|from|to|until|first|last|t(0|1|min|max)?")


def times_in(table: pd.DataFrame, where: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the onsets and durations of a table in seconds, NaN where cells are empty.

    Parameters
    ----------
    table : DataFrame
        Table of :func:`read_table` or :func:`with_plain_columns`, perhaps with the columns
        ``onset`` and ``duration``.
    where : Any
        What the table is called in messages.

    Raises
    ------
    ValueError
        When another column looks like a missing one of these, such as "start_time" or "end"; when
        a cell is neither empty nor a number, a duration is negative, or one has no onset.
    """
    texts = table.reindex(columns=["onset", "duration"]).map(tables.label_text)
    filled_columns = [*table.dropna(axis=1, how="all")]
    looks = rf"(?<![a-z])({_EXTENT}){_TIME}*s?(?![a-z])"
    if "onset" not in filled_columns:
        looks = rf"(?<![a-z]){_TIME}+s?(?![a-z])|^({TIME.pattern})$"
    others = [repr(name) for name in filled_columns if name not in texts and re.search(looks, name)]
    if others and not {*texts} <= {*filled_columns}:
        raise ValueError(
            f"{where} has {checks.format_list(others)}, which look like times and are not read. Read "
            "are 'onset' and 'duration', in seconds from the first sample: rename or remove others."
        )
    numbers = texts.apply(pd.to_numeric, errors="coerce").astype(float)
    is_wrong = (texts != "") & ~np.isfinite(numbers)
    is_wrong["duration"] |= numbers["duration"] < 0
    is_wrong["onset"] |= (texts["onset"] == "") & (numbers["duration"] > 0)
    for row, column in np.argwhere(is_wrong.to_numpy())[:1].tolist():
        raise ValueError(
            f"{where} has the {texts.columns[column]} {texts.iloc[row, column]!r} in row "
            f"{texts.index[row] + 2}; write seconds, such as 90.5. A duration may be n/a, and one "
            "without an onset has no place."
        )
    return numbers["onset"].to_numpy(), numbers["duration"].to_numpy()


def events_in(table: Path, *, marks_only: bool = False) -> mne.Annotations:
    """Return the events of a BIDS table, or only the gaps and bad times among them.

    Onsets are in seconds from the first sample.
    """
    events = read_table(table, table.parent)
    absent = [name for name in ("onset", "trial_type") if name not in events]
    if absent and not marks_only:
        raise ValueError(f"{table} has no column {absent[0]!r}.")
    if "onset" not in events:
        return mne.Annotations([], [], [])
    texts = events.get("trial_type", pd.Series(pd.NA, events.index, str)).map(
        tables.label_text, "ignore"
    )
    if marks_only:  # EEGLAB writes a gap as a value, also beside another text
        value = events.get("value", texts).astype(object)
        texts = texts.fillna(value).mask(value.str.lower() == "boundary", value).dropna()
        texts = texts[texts.map(marks.kind_of_text) != "label"]
    texts = texts.dropna()
    events = events.loc[texts.index].fillna({"onset": "none"})  # not to be empty
    onsets, durations = times_in(events, table)
    return mne.Annotations(onsets, np.nan_to_num(durations), texts.tolist())  # NaN: unknown
