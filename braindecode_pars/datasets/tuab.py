"""Normal or abnormal: the TUH Abnormal EEG Corpus (TUAB) of Temple University Hospital."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset

from braindecode_pars.recordings import _temple as temple
from braindecode_pars.recordings.cutting import fixed_windows
from braindecode_pars.recordings.loading import Recording, choose_subjects, read_corpus
from braindecode_pars.recordings.preparation import COMMON_CHANNELS

__all__ = ["CARD", "CHANNELS", "load", "recordings"]

#: The 19 common channels and both ears.
CHANNELS = (*COMMON_CHANNELS, "A1", "A2")

#: What the corpus is, and what :func:`load` makes of it.
CARD: dict[str, Any] = dict(
    name="TUAB",
    version="3.0.1",
    licence="free of charge on request, not to be passed on",
    address="https://isip.piconepress.com/projects/nedc/html/tuh_eeg/",
    subjects=2329,
    channels=len(CHANNELS),
    sfreq=200.0,
    classes=("normal", "abnormal"),
    reference="Lopez 2017, MS thesis, Temple University; Obeid & Picone 2016, "
    "Front Neurosci 10:196",
)

_EXAMPLE = "edf/train/normal/01_tcp_ar/aaaaaaaa_s001_t000.edf"
# Until v2 there are folders for the subject and the session between montage and file.
_LAYOUT = (
    r"/(?P<folder>train|eval)/(?P<label>normal|abnormal)/(?P<montage>\d\d_tcp_\w+)/(?:[^/]+/){0,3}"
    + temple.FILE
)


def recordings(
    path: str | Path, subjects: Iterable[str] | None = None, *, split_seed: int = 0
) -> list[Recording]:
    """Find recordings and say which split they are in, without opening them.

    Parameters
    ----------
    path : path
        The corpus, or any folder above or within it.
    subjects : iterable of str | None
        None means all that are there.
    split_seed : int
        The subjects of ``train`` that are there, also those not asked for, are divided by it: 80 %
        are "train" and 20 % "valid". ``eval`` is "test".

    Returns
    -------
    list of Recording
        Descriptions hold ``subject``, ``folder`` ("train" or "eval"), ``label`` ("normal" or
        "abnormal"), ``montage``, ``session``, ``token`` and ``split``. A subject of ``train`` may
        have recordings with both labels; they are in one split.

    Raises
    ------
    FileNotFoundError
        When nothing is found, or a subject has no recording.
    ValueError
        When a subject is in both ``train`` and ``eval``, naming it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = Path(folder, "edf", "eval", "abnormal", "01_tcp_ar")
    ...     files.mkdir(parents=True)
    ...     Path(files, "aaaaaaaa_s001_t000.edf").touch()
    ...     [recording] = datasets.tuab.recordings(folder)
    >>> [recording.description[name] for name in ("subject", "label", "split")]
    ['aaaaaaaa', 'abnormal', 'test']
    """
    found = temple.divide(temple.find(path, [_LAYOUT], _EXAMPLE), {"eval": "test"}, split_seed)
    chosen = choose_subjects(found, subjects, path)
    temple.check_no_shared_subjects(chosen)
    return chosen


def load(
    path: str | Path,
    subjects: Iterable[str] | None = None,
    *,
    split_seed: int = 0,
    n_jobs: int = 1,
    cache: str | Path | None = None,
    on_error: str = "raise",
    verbose: int = 1,
) -> BaseConcatDataset:
    """Read 30-second windows of 21 channels at 200 Hz, 0.3 to 75 Hz, without 60 Hz.

    Parameters
    ----------
    path, subjects, split_seed
        As in :func:`recordings`.
    n_jobs, cache, on_error, verbose
        As in :func:`~braindecode_pars.recordings.loading.read_corpus`.

    Returns
    -------
    BaseConcatDataset of EEGWindowsDataset
        Volts, in the order of :data:`CHANNELS`. The target is 0 for normal and 1 for abnormal, of
        the whole recording; descriptions are those of :func:`recordings`.

    Raises
    ------
    FileNotFoundError
        As in :func:`recordings`.
    ValueError
        As there, and when a recording is damaged or lacks one of the channels, naming it.

    Notes
    -----
    Files are read through MNE: :class:`braindecode.datasets.TUHAbnormal` opens every file in its
    constructor, ends at the first bad one, and writes a date file beside each recording.

    Channels and splits are those of the paper's appendix A.3.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> datasets.tuab.CARD["classes"]
    ('normal', 'abnormal')
    >>> windows = datasets.tuab.load("tuh_eeg_abnormal/v3.0.1")  # doctest: +SKIP
    >>> test = windows.split("split")["test"]  # doctest: +SKIP
    """
    return read_corpus(
        recordings(path, subjects, split_seed=split_seed),
        _read,
        {"corpus": CARD["name"], "version": CARD["version"]},
        n_jobs=n_jobs,
        cache=cache,
        on_error=on_error,
        verbose=verbose,
    )


def _read(recording: Recording) -> EEGWindowsDataset | None:
    target = CARD["classes"].index(recording.description["label"])
    return fixed_windows(temple.prepare(recording.file, CHANNELS), target=target)
