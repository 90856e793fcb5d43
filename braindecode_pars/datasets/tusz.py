"""Seizure or background: the TUH EEG Seizure Corpus (TUSZ) of Temple University Hospital."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset

from braindecode_pars.recordings import _temple as temple
from braindecode_pars.recordings.cutting import fixed_windows
from braindecode_pars.recordings.loading import Recording, choose_subjects, read_corpus
from braindecode_pars.recordings.preparation import COMMON_CHANNELS

__all__ = ["CARD", "MIN_OVERLAP", "load", "overlap", "read_seizures", "recordings"]

#: What the corpus is, and what :func:`load` makes of it.
CARD: dict[str, Any] = dict(
    name="TUSZ",
    version="2.0.3",
    licence="free of charge on request, not to be passed on",
    address="https://isip.piconepress.com/projects/nedc/html/tuh_eeg/",
    subjects=675,
    channels=len(COMMON_CHANNELS),
    sfreq=200.0,
    classes=("background", "seizure"),
    reference="Shah et al. 2018, Front Neuroinform 12:83; Obeid & Picone 2016, "
    "Front Neurosci 10:196",
)

#: Seconds; the resolution of the annotations, so that any overlap they can express counts.
MIN_OVERLAP = 1e-4
WINDOW_SECONDS = 30.0

_EXAMPLE = "edf/train/aaaaaaaa/s001_2003/02_tcp_le/aaaaaaaa_s001_t000.edf"
_LAYOUT = (
    r"/(?P<folder>train|dev|eval)/(?:[a-z]{8}|\d{8})/s\d+_\d{4}\w*/(?P<montage>\d\d_tcp_\w+)/"
    + temple.FILE
)
#: What becomes of the folder dev: from folders to the splits of all that is in them.
_GIVEN = {
    "train": {"eval": "test"},
    "valid": {"eval": "test", "dev": "valid", "train": "train"},
    "leave_out": {"eval": "test"},
}


def recordings(
    path: str | Path,
    subjects: Iterable[str] | None = None,
    *,
    dev: str = "train",
    split_seed: int = 0,
) -> list[Recording]:
    """Find recordings and say which split they are in, without opening them.

    Parameters
    ----------
    path : path
        The corpus, or any folder above or within it.
    subjects : iterable of str | None
        None means all that are there.
    dev : "train" | "valid" | "leave_out"
        What becomes of the folder ``dev``. "train": its subjects join those of ``train``, and
        all are divided (the paper counts the 675 subjects of all three folders, and divides what
        is not for testing 80/20). "valid": it is the validation set, and nothing is divided.
        "leave_out": it is not used, and ``train`` alone is divided.
    split_seed : int
        Divides the subjects that are there, also those not asked for: 80 % are "train" and 20 %
        "valid". ``eval`` is always "test".

    Returns
    -------
    list of Recording
        Descriptions hold ``subject``, ``folder`` ("train", "dev" or "eval"), ``montage``,
        ``session``, ``token`` and ``split``.

    Raises
    ------
    FileNotFoundError
        When nothing is found, or a subject has no recording.
    ValueError
        When a subject is in two splits, naming it, or ``dev`` is unknown.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = Path(folder, "edf", "dev", "aaaaaaaa", "s001_2003", "02_tcp_le")
    ...     files.mkdir(parents=True)
    ...     Path(files, "aaaaaaaa_s001_t000.edf").touch()
    ...     [recording] = datasets.tusz.recordings(folder, dev="valid")
    >>> [recording.description[name] for name in ("subject", "folder", "split")]
    ['aaaaaaaa', 'dev', 'valid']
    """
    if dev not in _GIVEN:
        raise ValueError(f"dev must be one of {', '.join(map(repr, _GIVEN))}, got {dev!r}.")
    found = temple.find(path, [_LAYOUT], _EXAMPLE)
    if dev == "leave_out":
        found = [recording for recording in found if recording.description["folder"] != "dev"]
    chosen = choose_subjects(temple.divide(found, _GIVEN[dev], split_seed), subjects, path)
    temple.check_no_shared_subjects(chosen)
    return chosen


def load(
    path: str | Path,
    subjects: Iterable[str] | None = None,
    *,
    dev: str = "train",
    split_seed: int = 0,
    min_overlap: float = MIN_OVERLAP,
    annotations: str = "csv_bi",
    n_jobs: int = 1,
    cache: str | Path | None = None,
    on_error: str = "raise",
    verbose: int = 1,
) -> BaseConcatDataset:
    """Read 30-second windows of 19 channels at 200 Hz, 0.3 to 75 Hz, without 60 Hz.

    Parameters
    ----------
    path, subjects, dev, split_seed
        As in :func:`recordings`.
    min_overlap : float
        A window is a seizure when seizures last at least so many of its 30 seconds, together. The
        default is 0.0001 s, the resolution of the annotations: any overlap counts.
    annotations : "csv_bi" | "csv"
        Which of the files beside a recording is read: seizures of all channels together, or of
        single channels with the kind of seizure. In the latter a seizure on any channel is one.
    n_jobs, cache, on_error, verbose
        As in :func:`~braindecode_pars.recordings.loading.read_corpus`.

    Returns
    -------
    BaseConcatDataset of EEGWindowsDataset
        Volts, in the order of
        :data:`~braindecode_pars.recordings.preparation.COMMON_CHANNELS`. The target is 1 for a
        seizure and 0 for background, which is also what nobody annotated; descriptions are those
        of :func:`recordings`.

    Raises
    ------
    FileNotFoundError
        As in :func:`recordings`.
    ValueError
        As there, and when a recording is damaged, lacks one of the channels or its annotations,
        naming it.

    Notes
    -----
    Files are read through MNE; braindecode has no reader of this corpus. Channels, filters and the
    80/20 division are those of appendix A.3; it does not say how much of a seizure makes a window
    one, nor what it does with the folder ``dev``.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> datasets.tusz.CARD["classes"]
    ('background', 'seizure')
    >>> windows = datasets.tusz.load("tuh_eeg_seizure/v2.0.3", min_overlap=5)  # doctest: +SKIP
    """
    if annotations not in ("csv_bi", "csv"):
        raise ValueError(f"annotations must be 'csv_bi' or 'csv', got {annotations!r}.")
    if not 0 < min_overlap <= WINDOW_SECONDS:
        raise ValueError(
            f"min_overlap must be more than 0 and at most {WINDOW_SECONDS:g} seconds, "
            f"got {min_overlap!r}."
        )
    return read_corpus(
        recordings(path, subjects, dev=dev, split_seed=split_seed),
        functools.partial(_read, annotations=annotations, min_overlap=min_overlap),
        {
            "corpus": CARD["name"],
            "version": CARD["version"],
            "annotations": annotations,
            "min_overlap": float(min_overlap),
        },
        n_jobs=n_jobs,
        cache=cache,
        on_error=on_error,
        verbose=verbose,
    )


def read_seizures(file: Path) -> np.ndarray:
    """Read when there were seizures from a ``.csv_bi`` or ``.csv`` file.

    Every label but ``bckg`` is a seizure; the channel does not matter.

    Parameters
    ----------
    file : Path
        The file beside a recording.

    Returns
    -------
    ndarray, shape (n_seizures, 2)
        Start and stop in seconds, in the order of the file. They may overlap.

    Raises
    ------
    ValueError
        When the file is absent, holds no annotation or one that ends before it begins.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars.datasets.tusz import read_seizures
    >>> lines = [
    ...     "channel,start_time,stop_time,label,confidence",
    ...     "TERM,0.0000,36.8868,bckg,1.0000",
    ...     "TERM,36.8868,183.3055,seiz,1.0000",
    ... ]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "aaaaaaaa_s001_t000.csv_bi")
    ...     _ = file.write_text("\\n".join(lines))
    ...     read_seizures(file)
    array([[ 36.8868, 183.3055]])
    """
    if not file.is_file():
        raise ValueError(f"its annotations {file.name} are not beside it.")
    try:
        table = pd.read_csv(file, comment="#", skipinitialspace=True)
        times = table[["start_time", "stop_time"]].to_numpy(dtype=float)
        is_seizure = table["label"].str.strip().ne("bckg").to_numpy(dtype=bool)
    except (ValueError, KeyError, AttributeError) as error:
        raise ValueError(
            f"its annotations {file.name} cannot be read ({error}); expected the columns channel, "
            "start_time, stop_time, label and confidence."
        ) from error
    if not len(table) or table["label"].isna().any():
        raise ValueError(f"its annotations {file.name} are empty or cut off.")
    if not (times[:, 0] <= times[:, 1]).all():  # NaN fails too
        raise ValueError(f"its annotations {file.name} have one that ends before it begins.")
    return times[is_seizure]


def overlap(start: np.ndarray, stop: np.ndarray, stretches: np.ndarray) -> np.ndarray:
    r"""For how long windows overlap with the union of stretches.

    .. math:: o_i = |[a_i, b_i] \cap \bigcup_j [s_j, e_j]| = F(b_i) - F(a_i)

    where F(t) is how much of the union lies before t.

    Parameters
    ----------
    start, stop : ndarray, shape (n_windows,)
        Seconds.
    stretches : array_like, shape (n_stretches, 2)
        Their starts and stops in seconds, in any order; they may overlap.

    Returns
    -------
    ndarray, shape (n_windows,)
        Seconds.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.datasets.tusz import overlap
    >>> start, stop = np.array([0.0, 30.0]), np.array([30.0, 60.0])
    >>> overlap(start, stop, [(28, 31), (25, 29), (28, 29)])
    array([5., 1.])
    """
    union: list[list[float]] = []
    for begin, end in sorted(map(tuple, stretches)):
        if union and begin <= union[-1][1]:
            union[-1][1] = max(union[-1][1], end)
        else:
            union.append([begin, end])
    if not union:
        return np.zeros(len(start))
    knots = np.array(union)  # (n_disjoint, 2)
    total = np.cumsum(knots[:, 1] - knots[:, 0])
    before = np.column_stack([np.r_[0.0, total[:-1]], total])
    return np.interp(stop, knots.ravel(), before.ravel()) - np.interp(
        start, knots.ravel(), before.ravel()
    )


def _read(recording: Recording, annotations: str, min_overlap: float) -> EEGWindowsDataset | None:
    # First, since it takes no time.
    seizures = read_seizures(recording.file.with_suffix(f".{annotations}"))

    def target(start: np.ndarray, stop: np.ndarray) -> np.ndarray:
        # A billionth of a second for rounding: 30.0001 - 30 is less than 0.0001.
        return (overlap(start, stop, seizures) >= min_overlap - 1e-9).astype(int)

    raw = temple.prepare(recording.file, COMMON_CHANNELS)
    return fixed_windows(raw, seconds=WINDOW_SECONDS, target=target)
