"""Rest and mental arithmetic, from PhysioNet's EEG During Mental Arithmetic Tasks 1.0.0.

Not one of the paper's corpora, but small and free, and recorded elsewhere than all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset

from braindecode_pars._parameters import check_positive
from braindecode_pars.electrodes import template_montage
from braindecode_pars.recordings.cutting import fixed_windows
from braindecode_pars.recordings.loading import Recording, choose_subjects, read_corpus
from braindecode_pars.recordings.preparation import (
    COMMON_CHANNELS,
    SFREQ,
    filter_and_resample,
    pick_electrodes,
)
from braindecode_pars.recordings.readers import read_edf

__all__ = ["CARD", "load", "recordings"]

#: What the corpus is, and what :func:`load` makes of it.
CARD: dict[str, Any] = dict(
    name="EEGMAT",
    version="1.0.0",
    licence="ODC-BY-1.0",
    address="https://physionet.org/content/eegmat/1.0.0/",
    subjects=36,
    channels=len(COMMON_CHANNELS),
    sfreq=SFREQ,
    classes=("rest", "arithmetic"),
    reference="Zyma et al. 2019, Data 4(1); Goldberger et al. 2000, Circulation 101(23)",
)

_NAME = re.compile(r"(Subject\d\d)_([12])\.edf")


def recordings(path: str | Path) -> list[Recording]:
    """Find both recordings of every subject, without opening them.

    Parameters
    ----------
    path : path
        The folder with ``SubjectNN_1.edf``, at rest, and ``SubjectNN_2.edf``, counting.

    Returns
    -------
    list of Recording
        Descriptions hold ``subject`` ("Subject00" and so on) and ``condition`` ("rest" or
        "arithmetic").

    Raises
    ------
    FileNotFoundError
        When there is none.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, "Subject00_2.edf").touch()
    ...     [recording] = datasets.eegmat.recordings(folder)
    >>> recording.description
    {'subject': 'Subject00', 'condition': 'arithmetic'}
    """
    folder = Path(path).expanduser()
    there = [
        Recording(file, dict(subject=found[1], condition=CARD["classes"][int(found[2]) - 1]))
        for file in sorted(folder.glob("Subject*.edf"))
        if (found := _NAME.fullmatch(file.name))
    ]
    if not there:
        raise FileNotFoundError(f"{path} holds no file such as {folder / 'Subject00_1.edf'}.")
    return there


def load(
    path: str | Path,
    subjects: Iterable[str] | None = None,
    *,
    window_seconds: float = 10.0,
    sfreq: float = SFREQ,
    n_jobs: int = 1,
    cache: str | Path | None = None,
    on_error: str = "raise",
    verbose: int = 1,
) -> BaseConcatDataset:
    """Read rest (three minutes a person) and mental arithmetic (one minute).

    The 19 common channels, without the electrocardiogram; 0.3-75 Hz, 50 Hz notch, 200 Hz from the
    500 Hz of the files. The publishers have filtered them to 0.5-45 Hz and removed artefacts
    already. Rest and arithmetic are recordings of their own, so part of what tells them apart may
    be time.

    Parameters
    ----------
    path : path
        The folder with ``Subject00_1.edf`` and so on.
    subjects : iterable of str | None
        Such as ``"Subject00"``; None means all that are there.
    window_seconds : float
        Length of the windows in seconds, which follow one another.
    sfreq : float
        Sampling rate in Hz.
    n_jobs, cache, on_error, verbose
        See :func:`~braindecode_pars.recordings.loading.read_corpus`.

    Returns
    -------
    BaseConcatDataset of EEGWindowsDataset
        Volts; target 0 is rest, 1 arithmetic; descriptions hold ``subject`` and ``condition``.

    Raises
    ------
    FileNotFoundError
        When the folder or a subject has no recording.
    ValueError
        When a recording is damaged or lacks a channel.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> datasets.eegmat.CARD["classes"]
    ('rest', 'arithmetic')
    >>> windows = datasets.eegmat.load("eegmat", ["Subject00"])  # doctest: +SKIP
    """
    arguments = dict(window_seconds=window_seconds, sfreq=sfreq)
    check_positive(**arguments)
    return read_corpus(
        choose_subjects(recordings(path), subjects, path),
        partial(_read, **arguments),
        dict(corpus=CARD["name"], version=CARD["version"], **arguments),
        n_jobs=n_jobs,
        cache=cache,
        on_error=on_error,
        verbose=verbose,
    )


def _read(recording: Recording, *, window_seconds: float, sfreq: float) -> EEGWindowsDataset | None:
    raw = read_edf(recording.file)
    pick_electrodes(raw, COMMON_CHANNELS, lambda name: name.removeprefix("EEG "))
    raw.set_montage(template_montage(), match_case=False, match_alias=True, verbose="error")
    filter_and_resample(raw, sfreq=sfreq, mains=50.0)
    target = CARD["classes"].index(recording.description["condition"])
    return fixed_windows(raw, window_seconds, target)
