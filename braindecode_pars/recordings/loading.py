"""Read a list of recordings into one dataset of windows, in parallel and with a cache."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset
from tqdm.auto import tqdm

from braindecode_pars._subjects import in_corpus
from braindecode_pars._warnings import warn_user
from braindecode_pars.recordings._cache import WindowCache
from braindecode_pars.recordings._left_out import channels_left_out, count_left_out
from braindecode_pars.recordings._search import why_unreadable
from braindecode_pars.recordings.class_names import name_classes

__all__ = ["Recording", "choose_subjects", "read_corpus"]

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
        See :func:`~braindecode_pars.recordings.class_names.name_classes`.
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
        elif windows == "cached":
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
