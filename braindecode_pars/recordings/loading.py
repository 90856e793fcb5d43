"""Read a list of recordings into one dataset of windows, in parallel and with a cache.

Subjects are chosen by name, and split at random but reproducibly, or as a file lists them.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import mne
import numpy as np
import pandas as pd
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset
from tqdm.auto import tqdm

from braindecode_pars._common.checks import warn_user
from braindecode_pars._common.files import (
    check_may_write,
    checksum_of,
    checksum_of_file,
    differences,
    locked,
    read_checked,
    read_json,
    replace_file,
    to_json,
    write_checked,
    written_aside,
)
from braindecode_pars._common.subjects import in_corpus, subject_key
from braindecode_pars.recordings.cutting import name_classes
from braindecode_pars.recordings.preparation import channels_left_out, count_left_out
from braindecode_pars.recordings.preprocessing import remember_steps, remembered_steps
from braindecode_pars.recordings.search import files_beside, why_unreadable

log = logging.getLogger(__name__)


def skipped_message(skipped: Sequence[str], n_recordings: int) -> str:
    """Return a message with the reasons why recordings were skipped, at most twenty of them."""
    more = f" And {len(skipped) - 20} more." if len(skipped) > 20 else ""
    shown = " ".join(skipped[:20])
    return f"{len(skipped)} of {n_recordings} recordings were skipped. {shown}{more}"


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
    def person(self) -> Any:
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
    found = list(dict.fromkeys(recording.subject for recording in recordings))
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
    known = {*found, *(recording.person for recording in recordings)}
    absent = [subject for subject in subjects if subject not in known]
    if absent:
        shown = ", ".join(map(str, found[:10])) + (", ..." if len(found) > 10 else "")
        raise FileNotFoundError(
            f"{where} contains no recording of subject{'s' if len(absent) > 1 else ''} "
            f"{', '.join(map(str, absent))}; it has {shown or 'no subjects'}."
        )
    wanted = set(subjects)
    return [r for r in recordings if r.subject in wanted or r.person in wanted]


def read_corpus(
    recordings: Iterable[Recording],
    read: Callable[[Recording], EEGWindowsDataset | None],
    settings: Mapping[str, Any],
    *,
    classes: Sequence[str] | Mapping[str, int] = (),
    n_jobs: int = 1,
    cache: str | Path | None = None,
    on_error: str = "raise",
    verbose: int = 1,
) -> BaseConcatDataset:
    """Read all recordings of a corpus into one dataset of windows.

    Parameters
    ----------
    recordings : iterable of Recording
        Recordings to read.
    read : callable
        Function that opens one recording, prepares it and cuts it into windows. It returns None
        when the recording is too short for a window. It must be picklable if ``n_jobs`` is not 1.
    settings : mapping
        All settings on which the windows depend, as values that JSON supports. A cache that was
        created with other settings raises an error.
    classes : sequence of str | mapping of str to int
        Names of the targets 0, 1, ..., or the target of each name; empty if they have no names.
        See :func:`~braindecode_pars.recordings.cutting.name_classes`.
    n_jobs : int
        Number of processes, as in joblib.
    cache : path | None
        Folder for prepared recordings, in single precision. A second call reads windows from this
        folder, each when it is indexed, so the corpus need not fit into memory. None keeps all
        signals in memory.
    on_error : "raise" | "warn"
        Whether a recording that cannot be read raises an error, or is skipped with a warning.
    verbose : int
        Whether to show a progress bar and log how many recordings are too short and which kinds of
        channels of the files are left out (1), or nothing (0).

    Returns
    -------
    BaseConcatDataset of EEGWindowsDataset
        Windows, in the order of ``recordings`` and with their descriptions.

    Raises
    ------
    ValueError
        When a recording cannot be read, when no recording contains a window, or when ``cache`` is
        another folder or was created with other settings. The message names the recording.

    Warns
    -----
    UserWarning
        With ``on_error="warn"``, when recordings are skipped. When entries of the cache are damaged
        or were edited, so that their recordings are prepared again. The message names them.

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
    ...     windows = read_corpus(recordings, read, {"corpus": "mine"}, verbose=0)
    >>> len(windows), windows[0][0].shape, windows.description["subject"][0]
    (6, (2, 2000), 'P01')
    """
    if on_error not in ("raise", "warn"):
        raise ValueError(f"on_error must be 'raise' or 'warn', got {on_error!r}.")
    recordings = list(recordings)
    store = None if cache is None else WindowCache.open(cache, settings)
    # Read in parallel; results arrive in the given order.
    jobs = joblib.Parallel(n_jobs=n_jobs, return_as="generator")(
        joblib.delayed(_read_one)(recording, read, store) for recording in recordings
    )
    datasets, failures, too_short, refused, left_out = [], [], 0, [], []
    bar = tqdm(
        zip(recordings, jobs, strict=True),
        total=len(recordings),
        desc=f"reading {settings.get('corpus', 'recordings')}",
        unit=" recordings",
        disable=not verbose,
    )
    for recording, (windows, problem, reason) in bar:
        refused.append(reason)
        if problem is not None:
            message = f"{recording.file} cannot be used: {problem}"
            if on_error == "raise":
                raise ValueError(f"{message} (on_error='warn' skips such recordings.)")
            failures.append(message)
        elif store is not None and windows == "cached":
            datasets.append(store.load(recording.file, recording.description))
        elif windows is None:
            too_short += 1
        else:
            windows.set_description(dict(recording.description), overwrite=True)
            datasets.append(windows)
            left_out.append(channels_left_out(windows.raw))
    # Report entries of the cache that were not used, and recordings that gave no window.
    _warn_of_refused([reason for reason in refused if reason is not None])
    if failures:
        warn_user(skipped_message(failures, len(recordings)))
    if verbose:
        _log_counts(left_out, too_short, len(recordings))
    if not datasets:
        raise ValueError(
            f"None of {len(recordings)} recordings contains a window. Either all are shorter than "
            "one, or they have no label that was asked for and is as long as a window."
        )
    return BaseConcatDataset([name_classes(windows, classes) for windows in datasets])


def _log_counts(left_out: list[dict[str, str]], too_short: int, n_recordings: int) -> None:
    """Log which channels were left out, and how many recordings gave no window."""
    if (line := count_left_out(left_out)) is not None:
        log.info(line)
    if too_short:
        log.info(
            "%d of %d recordings are too short for a window and were skipped.",
            too_short,
            n_recordings,
        )


def _read_one(
    recording: Recording,
    read: Callable[[Recording], EEGWindowsDataset | None],
    cache: WindowCache | None,
) -> tuple[EEGWindowsDataset | str | None, str | None, str | None]:
    """Return windows, a problem, and the reason why an entry of the cache was not used.

    The windows are None if there is a problem, or no window; "cached" stands for windows on disk.
    """
    # Windows in the cache are not sent between processes; the caller loads them from disk.
    refused = None
    try:
        if cache is not None and cache.holds(recording.file):
            return ("cached" if cache.n_windows(recording.file) else None), None, None
    except ValueError as error:
        refused = str(error)
    problem = why_unreadable(recording.file)
    if problem is not None:
        return None, problem, refused
    try:
        windows = read(recording)
    except Exception as error:  # the caller names the file, whatever error a reader raises
        return None, f"{error or type(error).__name__}", refused
    if cache is None:
        return windows, None, None
    cache.store(recording.file, windows)
    return (None if windows is None else "cached"), None, refused


def _warn_of_refused(refused: Sequence[str]) -> None:
    if not refused:
        return
    more = f" And {len(refused) - 5} more." if len(refused) > 5 else ""
    entries = "1 entry" if len(refused) == 1 else f"{len(refused)} entries"
    warn_user(
        f"{entries} of the cache cannot be used, so the recordings are prepared again: "
        f"{' '.join(refused[:5])}{more}"
    )


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
    if not np.isclose(sum(shares.values()), 1) or min(shares.values()) < 0:
        raise ValueError(f"shares must not be negative and must sum to 1, got {dict(shares)}.")
    # Sorted first, so that only the seed determines the order.
    shuffled = sorted(set(subjects), key=str)
    shuffled = [shuffled[i] for i in np.random.RandomState(seed).permutation(len(shuffled))]
    ends = np.round(np.cumsum(list(shares.values())) * len(shuffled)).astype(int)
    parts = np.split(np.arange(len(shuffled)), ends[:-1])
    return {shuffled[i]: name for name, part in zip(shares, parts, strict=True) for i in part}


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

    Warns
    -----
    UserWarning
        When the splits name subjects that are not in the data.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.recordings.loading import set_splits
    >>> windows = datasets.simulated.sleep(n_subjects=3, hours=0.1, n_chans=2)
    >>> windows = set_splits(windows, {1: "train", 2: "valid", 3: "test"})
    >>> sorted(windows.split("split"))
    ['test', 'train', 'valid']
    """
    split_of = _by_key(splits.items() if isinstance(splits, Mapping) else _read(Path(splits)))
    # A name with the corpus decides before the name alone.
    names = [_spellings(part.description) for part in windows_ds.datasets]
    found = [next((name for name in both if name in split_of), None) for both in names]
    without = sorted({both[-1] for both, name in zip(names, found, strict=True) if name is None})
    if without:
        raise ValueError(
            f"The splits do not name {len(without)} subjects of the data: {_listed(without)}; add "
            "them to the splits, or leave them out of the data."
        )
    absent = sorted(split_of.keys() - {name for both in names for name in both})
    if absent:
        warn_user(
            f"The splits name {len(absent)} subjects that are not in the data: {_listed(absent)}. "
            "The others are used."
        )
    splits_found = [split_of[name] for name in found if name is not None]
    windows_ds.set_description({"split": splits_found}, overwrite=True)
    return windows_ds


def _spellings(description: Mapping[str, Any]) -> tuple[str, str]:
    """Return the keys of a subject with the corpus in front, and without it."""
    subject = description.get("subject")
    return subject_key(in_corpus(description.get("corpus"), subject)), subject_key(subject)


def _by_key(pairs: Iterable[tuple[Any, str]]) -> dict[str, str]:
    """Return the split of each subject, whatever the spelling of its name."""
    split_of: dict[str, str] = {}
    for subject, split in pairs:
        before = split_of.setdefault(subject_key(subject), split)
        if before != split:
            raise ValueError(
                f"Subject {subject} is in the splits {before!r} and {split!r}; put it in one."
            )
    return split_of


def _read(file: Path) -> list[tuple[str, str]]:
    """Return pairs of subject and split from a table; subjects without a split are left out."""
    table = pd.read_csv(file.expanduser(), sep="\t" if file.suffix == ".tsv" else ",", dtype=str)
    subject = "participant_id" if "participant_id" in table else "subject"
    absent = [name for name in (subject, "split") if name not in table]
    if absent:
        raise ValueError(
            f"{file} has no column {absent[0]!r}; it needs 'subject' and 'split', and has "
            f"{', '.join(map(str, table))}."
        )
    table = table.dropna(subset=["split"])
    return list(zip(table[subject], table["split"], strict=True))


def _listed(names: list[str]) -> str:
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")


_SETTINGS = "settings.json"


@dataclass(frozen=True)
class WindowCache:
    """Folder of prepared recordings: signals as FIF in single precision, windows as JSON.

    A recording is prepared again when the size or modification time of its file has changed. The
    same holds for files beside it with the same name and another ending, such as annotations.

    Each entry contains the checksums of its signals, of the settings of the cache and of itself. An
    entry that does not match is not used: to prepare a recording again is always possible, and
    always right.

    Attributes
    ----------
    folder : Path
        Folder of the cache.
    settings_checksum : str
        Checksum of the settings of the preparation.
    """

    folder: Path
    settings_checksum: str

    @classmethod
    def open(cls, folder: str | Path, settings: Mapping[str, Any]) -> WindowCache:
        """Open a cache, or create it in an empty folder.

        Parameters
        ----------
        folder : path
            Folder of the cache.
        settings : mapping
            Settings of the preparation. They are stored in the folder when it is created.

        Raises
        ------
        ValueError
            When the folder is not a cache, or was created with other settings. The message names
            the differences.
        """
        folder = Path(folder).expanduser()
        file = folder / _SETTINGS
        # A new cache: store the settings, but only in an empty folder. Another process may create
        # the same cache at this moment.
        check_may_write(folder, "a cache of windows", is_ours=file.exists())
        cache = cls(folder, checksum_of(to_json(settings).encode()))
        if not file.exists():
            with locked(folder, f"{folder} is locked by another process; try again.", wait=60):
                if not file.exists():
                    replace_file(file, to_json(settings))
        # Its settings must be the same.
        try:
            stored = read_json(file)
        except ValueError as error:
            raise ValueError(f"{error} Remove the cache folder.") from error
        found = differences(stored, settings)
        if found:
            raise ValueError(
                f"The cache {folder} was created with other settings: {'; '.join(found)}. Pass "
                "another folder, or remove this one."
            )
        return cache

    def _entry(self, source: Path) -> Path:
        # The hash distinguishes files of the same name in different folders.
        name = hashlib.sha256(str(source.absolute()).encode()).hexdigest()[:12]
        return self.folder / f"{source.stem}-{name}.json"

    def _signals(self, source: Path) -> Path:
        return self._entry(source).with_name(self._entry(source).stem + "_raw.fif")

    def holds(self, source: Path) -> bool:
        """Whether the cache contains an up-to-date entry of a recording. Its signals are read.

        Raises
        ------
        ValueError
            When the entry or its signals are damaged, were edited, or are of another recording or
            version. The message names the file.
        """
        file = self._entry(source)
        try:
            content = read_checked(file)
        except FileNotFoundError:
            return False
        if content.get("settings") != self.settings_checksum:
            raise ValueError(f"{file} was prepared with other settings.")
        if content["source"]["file"] != str(source.absolute()):
            raise ValueError(f"{file} is of the recording {content['source']['file']}.")
        if content["source"] != _state_of(source):
            return False  # the recording has changed
        for name, expected in content["signals"].items():
            _check_signals(self.folder / name, expected)
        return True

    def n_windows(self, source: Path) -> int:
        return len(self._windows(source)["target"])

    def store(self, source: Path, windows: EEGWindowsDataset | None) -> None:
        """Write a prepared recording; ``windows`` is None if it is too short for a window."""
        table: dict[str, list] = {"target": []}
        signals: dict[str, str] = {}
        steps: list[Any] = []
        if windows is not None:
            steps = remembered_steps(windows.raw.info)  # a FIF file does not contain them
            table = windows.metadata.to_dict(orient="list")
            with written_aside(self.folder) as aside:
                windows.raw.save(aside / self._signals(source).name, fmt="single", verbose="error")
                # MNE splits signals of more than 2 GB into several files.
                signals = {file.name: checksum_of_file(file) for file in aside.iterdir()}
        # The entry is written last, so that it exists only when the signals do.
        content = {
            "source": _state_of(source),
            "settings": self.settings_checksum,
            "signals": signals,
            "windows": table,
            "steps": steps,
        }
        write_checked(self._entry(source), content)

    def load(self, source: Path, description: Mapping[str, Any]) -> EEGWindowsDataset:
        """Return the windows of a recording; each is read from disk when it is indexed."""
        raw = mne.io.read_raw_fif(self._signals(source), preload=False, verbose="error")
        entry = read_json(self._entry(source))
        remember_steps(raw, entry.get("steps", ()))  # earlier versions kept none
        return EEGWindowsDataset(raw, pd.DataFrame(entry["windows"]), dict(description))

    def _windows(self, source: Path) -> dict[str, list]:
        return read_json(self._entry(source))["windows"]


def _check_signals(file: Path, expected: str) -> None:
    try:
        found = checksum_of_file(file)
    except OSError as error:  # it is missing, or a folder
        raise ValueError(f"{file} cannot be read ({error.strerror}).") from error
    if found != expected:
        raise ValueError(f"{file} does not match its checksum.")


def _state_of(source: Path) -> dict[str, Any]:
    """Return size and modification time of a recording and of files with the same name."""
    states = {file.name: file.stat() for file in files_beside(source)}
    return {
        "file": str(source.absolute()),
        "bytes": {name: state.st_size for name, state in states.items()},
        "changed": {name: state.st_mtime_ns for name, state in states.items()},
    }
