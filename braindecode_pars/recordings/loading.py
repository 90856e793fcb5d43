"""From a list of recordings to one dataset of windows: in parallel, cached, bad files named."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset
from tqdm.auto import tqdm

from braindecode_pars.recordings._cache import WindowCache

__all__ = ["Recording", "choose_subjects", "read_corpus"]

log = logging.getLogger(__name__)


def left_out_sentence(left_out: Sequence[str], n_recordings: int) -> str:
    """Which recordings were left out and why, twenty of them at most."""
    more = f" And {len(left_out) - 20} more." if len(left_out) > 20 else ""
    shown = " ".join(left_out[:20])
    return f"{len(left_out)} of {n_recordings} recordings were left out. {shown}{more}"


@dataclass(frozen=True)
class Recording:
    """One recording of a corpus and what is known of it before it is opened.

    Parameters
    ----------
    file : Path
        What is opened; errors name it.
    description : mapping
        ``subject`` first, then whatever else is known, such as ``split`` and ``session``; plain
        numbers and strings.

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
        """Who was recorded."""
        return self.description["subject"]


def choose_subjects(
    recordings: Iterable[Recording], subjects: Iterable | None, where: str | Path
) -> list[Recording]:
    """Keep the recordings of some subjects.

    Parameters
    ----------
    recordings : iterable of Recording
        Those that were found.
    subjects : iterable | None
        Whom to keep; None keeps everybody.
    where : path
        Where they were found, for the message.

    Returns
    -------
    list of Recording
        In the order in which they came.

    Raises
    ------
    FileNotFoundError
        When a subject has no recording, or there is none at all.
    TypeError
        When ``subjects`` is a string.
    ValueError
        When ``subjects`` is empty.

    Examples
    --------
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings.loading import Recording, choose_subjects
    >>> files = [Path(f"P0{n}.edf") for n in (1, 2, 3)]
    >>> there = [Recording(file, {"subject": file.stem}) for file in files]
    >>> chosen = choose_subjects(there, ["P02", "P03"], "folder")
    >>> [recording.subject for recording in chosen]
    ['P02', 'P03']
    """
    recordings = list(recordings)
    there = list(dict.fromkeys(recording.subject for recording in recordings))
    if subjects is None:
        if not recordings:
            raise FileNotFoundError(f"{where} holds no recording of this corpus.")
        return recordings
    if isinstance(subjects, str):
        raise TypeError(f"subjects is the string {subjects!r}; give a list of subjects.")
    subjects = list(subjects)
    if not subjects:
        raise ValueError("subjects is an empty list; leave it out to read everybody.")
    absent = [subject for subject in subjects if subject not in there]
    if absent:
        shown = ", ".join(map(str, there[:10])) + (", ..." if len(there) > 10 else "")
        raise FileNotFoundError(
            f"{where} holds no recording of subject{'s' if len(absent) > 1 else ''} "
            f"{', '.join(map(str, absent))}; it has {shown or 'none at all'}."
        )
    return [recording for recording in recordings if recording.subject in set(subjects)]


def read_corpus(
    recordings: Iterable[Recording],
    read: Callable[[Recording], EEGWindowsDataset | None],
    settings: Mapping[str, Any],
    *,
    n_jobs: int = 1,
    cache: str | Path | None = None,
    on_error: str = "raise",
    verbose: int = 1,
) -> BaseConcatDataset:
    """Read every recording into windows.

    Parameters
    ----------
    recordings : iterable of Recording
        What is to be read.
    read : callable
        Opens one recording, prepares it and cuts its windows; None where it is too short for
        one. It must be picklable where ``n_jobs`` is not 1.
    settings : mapping
        Everything that shapes the windows, as JSON knows it. A cache made with others is refused.
    n_jobs : int
        Recordings that are read at a time, as joblib counts.
    cache : path | None
        Folder for prepared recordings, in single precision. They are read from there the next
        time, and lazily: a corpus need not fit into memory. None keeps all signals in memory.
    on_error : "raise" | "warn"
        What a recording that cannot be read does: end the reading, or be left out with a warning
        that names it.
    verbose : int
        1 shows a progress bar, and logs how many recordings were too short.

    Returns
    -------
    BaseConcatDataset of EEGWindowsDataset
        In the order of ``recordings``; descriptions are those of the recordings.

    Raises
    ------
    ValueError
        When a recording cannot be read, naming it, when no window is left, or when ``cache`` holds
        something else or was made with other settings.

    Warns
    -----
    UserWarning
        With ``on_error="warn"``, naming what was left out and why.

    Examples
    --------
    A recipe for a folder of FIF files is as short as this:

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
    ...     there = [Recording(file, {"subject": "P01"})]
    ...     windows = read_corpus(there, read, {"corpus": "mine"}, verbose=0)
    >>> len(windows), windows[0][0].shape, windows.description["subject"][0]
    (6, (2, 2000), 'P01')
    """
    if on_error not in ("raise", "warn"):
        raise ValueError(f"on_error must be 'raise' or 'warn', got {on_error!r}.")
    recordings = list(recordings)
    store = None if cache is None else WindowCache.open(cache, settings)
    jobs = joblib.Parallel(n_jobs=n_jobs, return_as="generator")(
        joblib.delayed(_read_one)(recording, read, store) for recording in recordings
    )
    datasets, failures, too_short = [], [], 0
    bar = tqdm(
        zip(recordings, jobs, strict=True),
        total=len(recordings),
        desc=f"reading {settings.get('corpus', 'recordings')}",
        unit=" recordings",
        disable=not verbose,
    )
    for recording, (windows, problem) in bar:
        if problem is not None:
            told = f"{recording.file} cannot be used: {problem}"
            if on_error == "raise":
                raise ValueError(f"{told} (on_error='warn' leaves such recordings out.)")
            failures.append(told)
        elif windows == "cached":
            datasets.append(store.load(recording.file, recording.description))
        elif windows is None:
            too_short += 1
        else:
            windows.set_description(dict(recording.description), overwrite=True)
            datasets.append(windows)
    if failures:
        warnings.warn(left_out_sentence(failures, len(recordings)), stacklevel=3)
    if verbose and too_short:
        log.info(
            "%d of %d recordings hold no window and were left out.", too_short, len(recordings)
        )
    if not datasets:
        raise ValueError(f"None of {len(recordings)} recordings holds a window.")
    return BaseConcatDataset(datasets)


def _read_one(
    recording: Recording,
    read: Callable[[Recording], EEGWindowsDataset | None],
    cache: WindowCache | None,
) -> tuple[EEGWindowsDataset | str | None, str | None]:
    """The windows and no problem, or the problem. What is in the cache is not sent around."""
    if cache is not None and cache.holds(recording.file):
        return ("cached" if cache.n_windows(recording.file) else None), None
    try:
        windows = read(recording)
    except Exception as error:  # whatever a reader stumbles over, the file is to be named
        return None, f"{error or type(error).__name__}"
    if cache is None:
        return windows, None
    cache.store(recording.file, windows)
    return (None if windows is None else "cached"), None
