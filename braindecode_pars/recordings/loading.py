"""Read recordings in parallel into one dataset of windows; select and split subjects.

Subjects are selected by name. They are assigned to splits, such as training and test, at random
with a seed, or according to a table.
"""

import logging
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeVar

import joblib
import numpy as np
import pandas as pd
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset

from braindecode_pars._common import checks, tables, training
from braindecode_pars._common.findings import Collected, Finding, FindingWarning, collected
from braindecode_pars._common.subjects import in_corpus, subject_key
from braindecode_pars.recordings import cutting, search

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recording:
    """Path and description of a recording that has not been opened yet.

    Parameters
    ----------
    file : Path
        Path of the recording.
    description : mapping
        Entries that describe the recording, with numbers or strings as values. ``subject`` is
        required; other entries, such as ``split`` and ``session``, are optional.

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
        """Subject with its corpus as prefix, such as "tuab:aaaaaaaa", if the corpus is known."""
        return in_corpus(self.description.get("corpus"), self.subject)

    def described(self, **entries: Any) -> Self:
        """Return a copy of the recording with additional entries in the description."""
        return replace(self, description={**self.description, **entries})


R = TypeVar("R", bound=Recording)


def find_recordings(
    path: str | Path,
    corpus: str,
    example: str,
    *layouts: str,
    convert: Mapping[str, Callable[[str], Any]] | None = None,
) -> list[Recording]:
    """List the recordings of a corpus in a folder, without opening the files.

    Parameters
    ----------
    path : path
        Folder that contains the recordings, in any subfolder.
    corpus : str
        Name of the corpus, which becomes the entry ``corpus`` in the description of a recording.
    example : str
        Example of a recording path in the corpus, for the error message.
    *layouts : str
        Regular expressions, one of which must match the end of the path of a recording. The
        separator of folders is ``/``. The text of each named group becomes an entry in the
        description of the recording; the group ``subject`` is required.
    convert : mapping of str to callable | None
        Functions that convert the text of named groups to another type, such as ``{"run": int}``.

    Returns
    -------
    list of Recording
        Recordings, sorted by path.

    Raises
    ------
    FileNotFoundError
        If the folder contains no recording of the corpus.
    PermissionError
        If a folder cannot be listed.
    ValueError
        If two recordings of a subject have the same file name.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings.loading import find_recordings
    >>> layout = r"S(?P<subject>\\d{3})R(?P<run>\\d\\d)\\.edf"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, "S007R04.edf").touch()
    ...     [file] = find_recordings(folder, "mine", "S001R04.edf", layout, convert={"run": int})
    >>> file.description
    {'subject': '007', 'corpus': 'mine', 'run': 4}
    """
    folder = Path(path).expanduser()
    patterns = [re.compile(f"/(?:{layout})$") for layout in layouts]
    recordings: dict[tuple[str, str], Recording] = {}
    for file in search.list_files(folder):
        # Layouts may contain folders of the corpus, and ``path`` may be one of these folders.
        absolute_path = file.absolute().as_posix()
        match = next(filter(None, (p.search(absolute_path) for p in patterns)), None)
        if match is None:
            continue
        if first := recordings.get((match["subject"], file.name)):
            raise ValueError(
                f"{path} contains two recordings named {file.name} of the same subject: "
                f"{first.file} and {file}. Remove one of them, or pass a folder that contains only "
                "one of them."
            )
        entries = {"subject": match["subject"], "corpus": corpus, **match.groupdict()}
        numbers = {name: function(entries[name]) for name, function in (convert or {}).items()}
        recordings[match["subject"], file.name] = Recording(file, entries | numbers)
    if not recordings:
        raise FileNotFoundError(
            f"{folder} contains no recording of {corpus}. Pass a folder that contains files such "
            f"as {example} in any subfolder."
        )
    return list(recordings.values())


def choose_subjects(
    recordings: Iterable[R], subjects: Iterable | None, where: str | Path
) -> list[R]:
    """Select the recordings of the requested subjects.

    Parameters
    ----------
    recordings : iterable of Recording
        All recordings of the corpus.
    subjects : iterable | None
        Requested subjects, with or without a corpus prefix such as "tuab:". If None, return all
        recordings.
    where : path
        Folder of the recordings, for the error message.

    Returns
    -------
    list of Recording
        Recordings of the requested subjects, in the order of ``recordings``.

    Raises
    ------
    FileNotFoundError
        If there are no recordings, a requested subject has no recording, or ``subjects`` is empty.
    TypeError
        If ``subjects`` is a string.

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
    if not recordings:
        raise FileNotFoundError(f"The requested corpus has no files in {where}. Check the path.")
    if subjects is None:
        return recordings
    if isinstance(subjects, str):
        raise TypeError(
            f"subjects must be a list, got the string {subjects!r}. Pass [{subjects!r}] instead."
        )
    # Every requested subject must have a recording, so that misspelled names raise an error.
    subjects = list(subjects)
    all_subjects = list(dict.fromkeys(recording.subject for recording in recordings))
    known = {*all_subjects, *(recording.corpus_subject for recording in recordings)}
    absent = [subject for subject in subjects if subject not in known]
    if absent or not subjects:
        problem = f"{where} contains no recording of these subjects: {', '.join(map(str, absent))}"
        raise FileNotFoundError(
            f"{problem if absent else 'subjects must not be empty'}. Pass only available subjects: "
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
    """Read all recordings of a corpus into one dataset of windows, in parallel.

    If the corpus does not fit into memory, create a
    :class:`~braindecode_pars.signal_store.SignalStore` with labels instead: a folder on disk with
    the preprocessed signals.

    Parameters
    ----------
    recordings : iterable of Recording
        Recordings to read.
    read : callable
        Function that receives a Recording, opens and preprocesses it, and returns its windows, or
        None if it contains no window. If ``n_jobs`` is not 1, the function must be picklable.
    corpus : str
        Name of the corpus for the progress bar.
    classes : sequence of str | mapping of str to int
        Class names in the order of the targets 0, 1, ..., or a mapping of class names to targets;
        empty if the targets have no names. See
        :func:`~braindecode_pars.recordings.cutting.name_classes`.
    expected : collection of str | None
        Classes that must have at least one window. If this is not None, every subject must also
        have at least one window, even if the collection is empty. Pass a collection for datasets
        whose labels or window length are chosen by the user. If None, classes and subjects without
        windows are accepted, as in a corpus that contains short recordings.
    left_out : mapping of Path to str | None
        Files that were excluded before this function was called, and the reason for each. These
        files are not read, but are listed in the table of excluded items.
    n_jobs : int
        Number of processes, as in joblib.
    on_error : "raise" | "warn"
        If "raise", raise an error if a recording cannot be read, or if windows that ``expected``
        requires are missing. If "warn", issue a warning, and continue without these recordings or
        windows.
    verbose : int
        If 1, show a progress bar and log excluded items, such as recordings that are too short. If
        0, show no progress bar, and do not log excluded items.

    Returns
    -------
    BaseConcatDataset of EEGWindowsDataset
        Windows with the descriptions of their recordings, in the order of ``recordings``.

    Raises
    ------
    ValueError
        If no recording contains a window. With ``on_error="raise"``, also if a recording cannot be
        read (the message contains the file name), or if windows that ``expected`` requires are
        missing.

    Warns
    -----
    UserWarning
        If recordings are skipped with ``on_error="warn"``; the message contains the file names. If
        ``expected`` is passed, also if items such as recordings or labels are excluded; the message
        is a table of excluded items: their number, the total number, the reason and the file names.
        If the user requested all of these exclusions, for example with "BAD" annotations, the table
        is only logged.

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
    # Read in parallel; the results have the order of the recordings.
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
    datasets, failures, unread_subjects = [], [], []
    rows = [
        (file.name, cutting.ExcludedItem("recordings", why, 1, 1)) for file, why in left_out.items()
    ]
    for recording, result in zip(recordings, bar, strict=True):
        windows, problem, excluded_items, messages = result
        for message in messages:
            checks.warn_user(message)
        if problem is not None:
            if on_error == "raise":
                raise ValueError(
                    f"{recording.file} cannot be used: {problem} (To skip recordings that cannot "
                    "be used, pass on_error='warn', or --on-error warn.)"
                )
            failures.append(f"{recording.file}: {problem}")
            unread_subjects.append(recording.subject)
        elif windows is None:
            whole = [item for item in excluded_items if item.what == "recordings"]
            why = ", ".join(map(str, excluded_items))
            reason = f"no windows remain: {why}" if why else "no label as long as a window"
            excluded_items = whole[:1] or [cutting.ExcludedItem("recordings", reason, 1, 1)]
            unread_subjects += [recording.subject] if not excluded_items[0].is_requested else []
        else:
            windows.set_description(dict(recording.description), overwrite=True)
            datasets.append(cutting.name_classes(windows, classes))
        rows += [(recording.file.name, item) for item in excluded_items]
    # Report excluded items.
    table = _table_of_excluded_items(rows, len(recordings) + len(left_out))
    missing = _without_windows(datasets, unread_subjects, classes, expected)
    skipped = Finding("skipped_recordings", dict(n_recordings=len(recordings), reasons=failures))
    messages = [skipped.text] if failures else []
    if missing or not datasets:
        what = checks.format_list(missing) or f"any recording (of {len(recordings)})"
        messages.append(f"No windows remain for {what}.")
    text = ("\n".join(messages) + table).strip()
    if not datasets or (missing and on_error == "raise"):
        raise ValueError(
            f"{text}\nCorrect the labels, use shorter windows, or select other subjects or "
            "classes. If any windows remain, you can continue without the subjects and classes "
            "listed above: pass on_error='warn' (--on-error warn)."
        )
    if messages or (expected is not None and not all(row.is_requested for _, row in rows)):
        checks.warn_user(text)
    elif table and verbose:
        log.info(text)
    return BaseConcatDataset(datasets)


def _without_windows(
    datasets: Sequence[EEGWindowsDataset],
    unread_subjects: Iterable[Any],
    classes: Sequence[str] | Mapping[str, int],
    expected: Collection[str] | None,
) -> list[str]:
    """Return the subjects of unread recordings, and the expected classes, that have no windows."""
    if expected is None:
        return []
    subjects = {part.description["subject"] for part in datasets}
    present_targets = {target for part in datasets for target in part.metadata["target"].tolist()}
    if not isinstance(classes, Mapping):
        classes = {name: target for target, name in enumerate(classes)}
    absent = [n for n, target in classes.items() if n in expected and target not in present_targets]
    absent_subjects = [s for s in dict.fromkeys(unread_subjects) if s not in subjects]
    return [*(f"subject {s}" for s in absent_subjects), *(f"class {name!r}" for name in absent)]


#: Maximum number of lines of the table of excluded items.
_MAX_LINES = 12


def _table_of_excluded_items(
    rows: Iterable[tuple[str, cutting.ExcludedItem]], n_recordings: int
) -> str:
    """Format a table of excluded items: number, total number, reason and file names."""
    columns = ["file", "what", "why", "number", "of", "is_requested"]
    frame = pd.DataFrame([(file, *item) for file, item in rows], columns=columns)
    cells = []
    for (what, why), part in frame.groupby(["what", "why"], sort=False):
        of = n_recordings if what == "recordings" else part["of"].sum()
        number = f"{part['number'].sum()} of {of} {what}"
        cells.append((number, why, checks.format_list([*part["file"]], 3)))
    return f"\nExcluded:{table_text(cells)}" if cells else ""


def table_text(cells: Sequence[tuple[str, str, str]]) -> str:
    """Format the rows of a table as indented lines; only the first twelve rows are shown.

    Parameters
    ----------
    cells : sequence of (str, str, str)
        The three cells of each row.
    """
    shown = cells[:_MAX_LINES]
    first, second = (max((len(cell[i]) for cell in shown), default=0) for i in (0, 1))
    lines = [f"{a:{first}}  {b:{second}}  {c}" for a, b, c in shown]
    lines += [f"and {len(cells) - len(shown)} more reasons"] if len(cells) > len(shown) else []
    return "".join(f"\n  {line}" for line in lines)


def _read_one(
    recording: Recording, read: Callable[[Recording], EEGWindowsDataset | None]
) -> tuple[
    EEGWindowsDataset | None, str | None, list[cutting.ExcludedItem], list[FindingWarning | str]
]:
    """Read the windows of a recording.

    Returns
    -------
    windows : EEGWindowsDataset | None
        Windows; None if the recording contains no window or cannot be read.
    problem : str | None
        Reason why the recording cannot be read.
    excluded_items : list of ExcludedItem
        Excluded labels, windows and signals.
    messages : list of (FindingWarning | str)
        Warnings, which would otherwise be lost in a worker process.
    """
    if problem := search.why_unreadable(recording.file):
        return None, problem, [], []
    windows, problem = None, None
    caught: list[Collected] = []
    with cutting.collect_excluded_items() as excluded_items, collected(caught):
        warnings.simplefilter("always", UserWarning)
        try:
            windows = read(recording)
        except Exception as error:  # the caller adds the file name to any error of a reader
            problem = f"{error or type(error).__name__}"
    messages = [message for message, category, *_ in caught if issubclass(category, UserWarning)]
    return windows, problem, [] if problem else excluded_items, messages


def split_subjects(
    subjects: Iterable, shares: Mapping[str, float], seed: int = 0
) -> dict[object, str]:
    """Randomly divide subjects into splits, such as training, validation and test.

    The splits depend only on the set of subjects, the proportions and the seed, not on the order of
    the subjects or on duplicates.

    Parameters
    ----------
    subjects : iterable
        Subjects to divide.
    shares : mapping of str to float
        Proportion of subjects in each split, for example ``{"train": 0.8, "valid": 0.2}``.
    seed : int
        Seed of the random number generator.

    Returns
    -------
    dict
        Split of each subject.

    Raises
    ------
    ValueError
        If a proportion is negative, or if the proportions do not sum to 1.

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
        raise ValueError(
            f"The proportions in shares must be non-negative and sum to 1, got {dict(shares)}."
        )
    # Sort the subjects first, so that only the seed determines the order.
    shuffled = sorted(set(subjects), key=str)
    shuffled = [shuffled[i] for i in np.random.RandomState(seed).permutation(len(shuffled))]
    ends = np.round(np.cumsum(list(shares.values())) * len(shuffled)).astype(int)
    names = np.repeat(list(shares), np.diff(ends, prepend=0)).tolist()
    return dict(zip(shuffled, names, strict=True))


def column_by_subject(table: pd.DataFrame, column: str, where: str) -> dict[str, str]:
    """Return the value of each subject in a column of a table; empty cells are ignored.

    The keys are subjects as converted by :func:`subject_key`.

    Parameters
    ----------
    table : DataFrame
        Table with the column ``participant_id`` or ``subject``, and one or more rows per subject.
    column : str
        Column that contains the values.
    where : str
        Name of the table in error messages.

    Raises
    ------
    ValueError
        If a subject has two different values.
    """
    name = "participant_id" if "participant_id" in table else "subject"
    tables.check_table(table, where, (name, column))
    table = table.dropna(subset=[column])
    values: dict[str, str] = {}
    for subject, value in zip(table[name], table[column], strict=True):
        if (first := values.setdefault(subject_key(subject), value)) != value:
            raise ValueError(
                f"{where} contains two different values for subject {subject}: {first!r} and "
                f"{value!r}. Correct or remove one of the rows."
            )
    return values
