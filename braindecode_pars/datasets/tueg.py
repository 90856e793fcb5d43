"""Recordings without labels, to pretrain on: the TUH EEG Corpus of Temple University Hospital."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset

from braindecode_pars.recordings import _temple as temple
from braindecode_pars.recordings.cutting import fixed_windows
from braindecode_pars.recordings.loading import Recording, choose_subjects, read_corpus
from braindecode_pars.recordings.preparation import COMMON_CHANNELS

__all__ = ["CARD", "leave_out", "load", "recordings"]

log = logging.getLogger(__name__)

#: What the corpus is, and what :func:`load` makes of it.
CARD: dict[str, Any] = dict(
    name="TUEG",
    version="2.0.1",
    licence="free of charge on request, not to be passed on",
    address="https://isip.piconepress.com/projects/nedc/html/tuh_eeg/",
    subjects=14987,
    channels=len(COMMON_CHANNELS),
    sfreq=200.0,
    classes=(),
    reference="Obeid & Picone 2016, Front Neurosci 10:196",
)

_EXAMPLE = "edf/000/aaaaaaaa/s001_2015_12_30/01_tcp_ar/aaaaaaaa_s001_t000.edf"
_SUBJECT = r"\d{3}/(?:[a-z]{8}|\d{8})/s\d+_\d{4}\w*/"
_LAYOUTS = (
    rf"/{_SUBJECT}(?P<montage>\d\d_tcp_\w+)/{temple.FILE}",
    # Until v1.2. TUAB v2 has the like, but not directly below edf.
    rf"/edf/(?P<montage>\d\d_tcp_\w+)/{_SUBJECT}{temple.FILE}",
)

#: A folder of another corpus, or subjects by name.
Excluded = str | PathLike | Iterable[str]


def recordings(path: str | Path, subjects: Iterable[str] | None = None) -> list[Recording]:
    """Find recordings without opening them, in the layout of v2.0 or v1.

    Parameters
    ----------
    path : path
        The corpus, or any folder above or within it.
    subjects : iterable of str | None
        None means all that are there.

    Returns
    -------
    list of Recording
        Descriptions hold ``subject``, ``montage``, ``session`` and ``token``.

    Raises
    ------
    FileNotFoundError
        When nothing is found, or a subject has no recording.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = Path(folder, "edf", "000", "aaaaaaaa", "s001_2015_12_30", "01_tcp_ar")
    ...     files.mkdir(parents=True)
    ...     Path(files, "aaaaaaaa_s001_t000.edf").touch()
    ...     [recording] = datasets.tueg.recordings(folder)
    >>> recording.description
    {'subject': 'aaaaaaaa', 'montage': '01_tcp_ar', 'session': 1, 'token': 0}
    """
    return choose_subjects(temple.find(path, _LAYOUTS, _EXAMPLE), subjects, path)


def leave_out(
    recordings: Iterable[Recording], exclude: Sequence[Excluded]
) -> tuple[list[Recording], list[Recording]]:
    """Divide recordings into those that are kept and those of excluded subjects.

    Parameters
    ----------
    recordings : iterable of Recording
        As :func:`recordings` finds them.
    exclude : sequence
        Folders of other corpora, each scanned for the names of its recordings, and lists of
        subjects: ``["tuh_eeg_abnormal/v3.0.1", "tuh_eeg_seizure/v2.0.3"]`` or
        ``[["aaaaaaaa", "aaaaaaab"]]``.

    Returns
    -------
    kept, gone : list of Recording
        Those to pretrain on, and those of excluded subjects.

    Raises
    ------
    FileNotFoundError
        When a folder is not there or holds no recording.
    ValueError
        When a folder or list calls subjects by numbers and the recordings do by letters, or the
        other way round: people would be missed.
    TypeError
        When ``exclude`` is a path instead of a list.

    Examples
    --------
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings.loading import Recording
    >>> from braindecode_pars.datasets.tueg import leave_out
    >>> names = "aaaaaaaa", "aaaaaaab"
    >>> there = [Recording(Path(f"{name}.edf"), {"subject": name}) for name in names]
    >>> kept, gone = leave_out(there, exclude=[["aaaaaaab"]])
    >>> [recording.subject for recording in kept]
    ['aaaaaaaa']
    """
    recordings = list(recordings)
    if isinstance(exclude, str | PathLike):
        raise TypeError(
            f"exclude is the path {str(exclude)!r}; give a list of folders or of lists of subjects."
        )
    excluded: set[str] = set()
    for item in exclude:
        is_folder = isinstance(item, str | PathLike)
        subjects = temple.subjects_in(item) if is_folder else set(item)
        _check_naming(recordings, subjects, str(item) if is_folder else "a list in exclude")
        excluded |= subjects
    kept = [recording for recording in recordings if recording.subject not in excluded]
    gone = [recording for recording in recordings if recording.subject in excluded]
    return kept, gone


def _check_naming(recordings: list[Recording], subjects: set[str], where: str) -> None:
    ours = {recording.subject.isdigit(): recording.subject for recording in recordings}
    theirs = {str(subject).isdigit(): subject for subject in subjects}
    if ours and theirs and ours.keys() != theirs.keys():
        raise ValueError(
            f"{where} has subjects such as {', '.join(map(str, theirs.values()))}, but the "
            f"recordings are of subjects such as {', '.join(ours.values())}: people would be "
            "missed. Subjects were renamed from numbers to letters in 2022; use versions of the "
            "corpora with the same names."
        )


def load(
    path: str | Path,
    subjects: Iterable[str] | None = None,
    *,
    exclude: Sequence[Excluded] = (),
    n_jobs: int = 1,
    cache: str | Path | None = None,
    on_error: str = "raise",
    verbose: int = 1,
) -> BaseConcatDataset:
    """Read 30-second windows of 19 channels at 200 Hz, 0.3 to 75 Hz, without 60 Hz.

    Parameters
    ----------
    path, subjects
        As in :func:`recordings`.
    exclude : sequence
        Whose recordings are not read: folders of TUAB and TUSZ, or lists of subjects, as in
        :func:`leave_out`. Subjects that were asked for are left out too.
    n_jobs, cache, on_error, verbose
        As in :func:`~braindecode_pars.recordings.loading.read_corpus`. The corpus does not fit into
        memory: name a cache. Recordings that lack one of the channels are among those that
        ``on_error="warn"`` leaves out. ``verbose=1`` also says how many subjects and
        recordings ``exclude`` left out.

    Returns
    -------
    BaseConcatDataset of EEGWindowsDataset
        Volts, in the order of
        :data:`~braindecode_pars.recordings.preparation.COMMON_CHANNELS`. The target is -1,
        "without a label"; descriptions are those of :func:`recordings`.

    Raises
    ------
    FileNotFoundError
        As in :func:`recordings` and :func:`leave_out`.
    ValueError
        When a recording is damaged or lacks one of the channels, naming it, when ``exclude``
        leaves nobody, and as in :func:`leave_out`.

    Warns
    -----
    UserWarning
        Without ``exclude``.

    Notes
    -----
    Files are read through MNE: :class:`braindecode.datasets.TUH` opens every file in its
    constructor, ends at the first bad one, and knows no removal of subjects.

    The paper removes the subjects of TUAB and TUSZ before pretraining (appendix A.3).

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> datasets.tueg.CARD["channels"]
    19
    >>> windows = datasets.tueg.load(  # doctest: +SKIP
    ...     "tuh_eeg/v2.0.1",
    ...     exclude=["tuh_eeg_abnormal/v3.0.1", "tuh_eeg_seizure/v2.0.3"],
    ...     cache="tueg_windows",
    ...     on_error="warn",
    ... )
    """
    found = recordings(path, subjects)
    kept, gone = leave_out(found, exclude)
    if not exclude:
        warnings.warn(
            "TUAB and TUSZ are parts of TUEG: without exclude=[TUAB_FOLDER, TUSZ_FOLDER] a "
            "model that is pretrained on these windows has seen the people that it is fine-tuned "
            "and tested on there.",
            stacklevel=2,
        )
    elif verbose:
        log.info(
            "Excluded from %s: %s of %s. Left: %s.",
            CARD["name"],
            _count(gone),
            _count(found),
            _count(kept),
        )
    if not kept:
        raise ValueError(f"exclude leaves none of {_count(found)}.")
    return read_corpus(
        kept,
        _read,
        {"corpus": CARD["name"], "version": CARD["version"]},
        n_jobs=n_jobs,
        cache=cache,
        on_error=on_error,
        verbose=verbose,
    )


def _count(recordings: list[Recording]) -> str:
    people, files = len({recording.subject for recording in recordings}), len(recordings)
    return (
        f"{people} subject{'' if people == 1 else 's'} "
        f"({files} recording{'' if files == 1 else 's'})"
    )


def _read(recording: Recording) -> EEGWindowsDataset | None:
    return fixed_windows(temple.prepare(recording.file, COMMON_CHANNELS))
