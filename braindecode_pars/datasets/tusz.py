"""TUSZ: seizure detection (TUH EEG Seizure Corpus, Temple University Hospital).

The length of a window is 30 seconds. The target is 1 for seizure and 0 for background; segments
without an annotation count as background. Channels, filters and the division of subjects into 80 %
training and 20 % validation follow appendix A.3 of the PARS paper. The appendix does not specify
the minimum total duration of seizures in a window with the target 1, nor how the folder ``dev`` is
used; the arguments ``min_overlap`` and ``dev`` set both. Files are read with MNE; braindecode has
no class for this corpus.
"""

from pathlib import Path
from typing import Any

import mne
import numpy as np
import pandas as pd
from braindecode.datasets import EEGWindowsDataset

from braindecode_pars._common.checks import check_parameters, choice, positive
from braindecode_pars._common.tables import check_table
from braindecode_pars.datasets import temple
from braindecode_pars.recordings import cutting, loading, preparation, recipe

__all__ = ["CARD", "cut", "load", "overlap", "prepare", "read_seizures", "recordings"]

#: Description of the corpus and of the windows.
CARD: dict[str, Any] = dict(
    name="TUSZ",
    version="2.0.3",
    license="free of charge on request; redistribution is not allowed",
    address="https://isip.piconepress.com/projects/nedc/html/tuh_eeg/",
    subjects=675,
    channels=len(preparation.COMMON_CHANNELS),
    sfreq=200.0,
    classes=("background", "seizure"),
    reference="Shah et al. 2018, Front Neuroinform 12:83; Obeid & Picone 2016, "
    "Front Neurosci 10:196",
)

#: Length of a window in seconds.
WINDOW_SECONDS = 30.0

_EXAMPLE = "edf/train/aaaaaaaa/s001_2003/02_tcp_le/aaaaaaaa_s001_t000.edf"
_LAYOUT = r"(?P<folder>train|dev|eval)/(?:[a-z]{8}|\d{8})/s\d+_\d{4}\w*/(?P<montage>\d\d_tcp_\w+)/"

#: For each value of ``dev``: split of each folder. Subjects in folders without an entry are divided
#: randomly.
_FIXED_SPLITS = {
    "train": {"eval": "test"},
    "valid": {"eval": "test", "dev": "valid", "train": "train"},
}


def recordings(
    path: str | Path, *, dev: str = "train", split_seed: int = 0
) -> list[loading.Recording]:
    """List the recordings in a folder and their splits, without opening the files.

    Parameters
    ----------
    path : path
        Folder of the corpus, or one of its parent folders or subfolders.
    dev : "train" | "valid"
        Use of the folder ``dev`` (the folder ``eval`` is always the split "test"):

        - "train": the subjects of the folders ``train`` and ``dev`` are pooled and randomly
          divided. This agrees with the PARS paper, which reports 675 subjects in all three folders,
          and divides the subjects outside the test set into 80 % and 20 %.
        - "valid": the folder ``dev`` is the validation set, the folder ``train`` is the training
          set, and no subjects are randomly divided.
    split_seed : int
        Seed of the random division if ``dev`` is "train"; otherwise ignored. 80 % of the subjects
        in the folders ``train`` and ``dev`` are assigned to the split "train", and 20 % to "valid".

    Returns
    -------
    list of Recording
        The description of a recording contains ``subject``, ``corpus``, ``folder`` ("train", "dev"
        or "eval"), ``montage`` (such as "01_tcp_ar"), ``session``, ``token`` (number of the file
        within the session) and ``split``.

    Raises
    ------
    FileNotFoundError
        If the folder contains no recording.
    ValueError
        If a subject is in two splits (the message contains the subject), or ``dev`` is invalid.

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
    choice(*_FIXED_SPLITS).check("dev", dev)
    all_recordings = temple.find(path, "tusz", _EXAMPLE, _LAYOUT)
    return temple.divide(all_recordings, _FIXED_SPLITS[dev], split_seed)


def prepare(recording: loading.Recording) -> mne.io.BaseRaw:
    """Read and preprocess a recording: 19 channels, 200 Hz, band-pass 0.3-75 Hz, notch 60 Hz.

    Parameters
    ----------
    recording : Recording
        Recording, as returned by :func:`recordings`.

    Returns
    -------
    Raw
        Preloaded recording in volts, with the channels in the order of
        :data:`~braindecode_pars.recordings.preparation.COMMON_CHANNELS`.

    Raises
    ------
    ValueError
        If the file is damaged, or a channel is missing.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> first = datasets.tusz.recordings("tuh_eeg_seizure/v2.0.3")[0]  # doctest: +SKIP
    >>> raw = datasets.tusz.prepare(first)  # doctest: +SKIP
    """
    return temple.prepare(recording.file, preparation.COMMON_CHANNELS)


def cut(
    recording: loading.Recording, *, annotations: str = "csv_bi", min_overlap: float = 1e-4
) -> EEGWindowsDataset | None:
    """Read a recording, preprocess it, and cut it into labeled windows.

    Parameters
    ----------
    recording : Recording
        Recording, as returned by :func:`recordings`.
    annotations : "csv_bi" | "csv"
        Extension of the annotation file. A ``.csv_bi`` file contains seizures for all channels
        together. A ``.csv`` file contains the seizures in each channel with their type; seizures in
        any channel and of any type are used.
    min_overlap : float
        A window has the target 1 (seizure) if the total duration of seizures in it is at least this
        number of seconds, and otherwise the target 0 (background). The default is 0.0001 s, the
        resolution of the annotations, so any overlap with a seizure results in the target 1.

    Returns
    -------
    EEGWindowsDataset | None
        Labeled windows, or None if the recording has no windows. The entries of
        ``recording.description`` are not stored with the windows; ``load`` adds them.

    Raises
    ------
    ValueError
        If the file is damaged or discontinuous, or a channel or the annotation file is missing.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> first = datasets.tusz.recordings("tuh_eeg_seizure/v2.0.3")[0]  # doctest: +SKIP
    >>> windows = datasets.tusz.cut(first)  # doctest: +SKIP
    """
    _check(annotations=annotations, min_overlap=min_overlap)
    # Read the annotations first, because reading the signals is slow.
    seizures = read_seizures(recording.file.with_suffix(f".{annotations}"))

    def target(start: np.ndarray, stop: np.ndarray) -> np.ndarray:
        # A tolerance of 1e-9 s for rounding: in floats, 30.0001 - 30 is less than 0.0001.
        return (overlap(start, stop, seizures) >= min_overlap - 1e-9).astype(int)

    return cutting.fixed_windows(prepare(recording), seconds=WINDOW_SECONDS, target=target)


def _check(**settings: Any) -> None:
    rules = dict(annotations=choice("csv_bi", "csv"), min_overlap=positive(maximum=WINDOW_SECONDS))
    check_parameters(settings, rules)


def read_seizures(file: Path) -> np.ndarray:
    """Read the start and stop times of seizures from a ``.csv_bi`` or ``.csv`` file.

    Annotations of any channel count as seizures if their label is not ``bckg`` (background).

    Parameters
    ----------
    file : Path
        Annotation file, in the same folder as its recording.

    Returns
    -------
    ndarray, shape (n_seizures, 2)
        Start and stop in seconds, in the order of the file. Seizures may overlap.

    Raises
    ------
    FileNotFoundError
        If the file is missing.
    ValueError
        If the file contains no annotation, or an annotation that stops before it starts.

    Examples
    --------
    A file with one segment of background and one seizure:

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
    table = pd.read_csv(file, comment="#", skipinitialspace=True)
    check_table(table, file.name, ["start_time", "stop_time", "label"])
    times = table[["start_time", "stop_time"]].to_numpy(dtype=float)
    if not (times[:, 0] <= times[:, 1]).all() or table["label"].isna().any():  # also for NaN
        raise ValueError(
            f"{file.name} is truncated, or contains an annotation that stops before it starts. "
            "Correct the file or download it again."
        )
    return times[table["label"].str.strip() != "bckg"]


def overlap(start: np.ndarray, stop: np.ndarray, segments: np.ndarray) -> np.ndarray:
    r"""Compute the duration of the overlap between windows and the union of segments.

    .. math:: o_i = |[a_i, b_i] \cap \bigcup_j [s_j, e_j]|

    Parameters
    ----------
    start, stop : ndarray, shape (n_windows,)
        Start and stop of each window in seconds.
    segments : array_like, shape (n_segments, 2)
        Start and stop of each segment in seconds, in any order. Segments may overlap.

    Returns
    -------
    ndarray, shape (n_windows,)
        Duration of the overlap of each window in seconds.

    Examples
    --------
    Three overlapping segments, which together cover 25 s to 31 s:

    >>> import numpy as np
    >>> from braindecode_pars.datasets.tusz import overlap
    >>> start, stop = np.array([0.0, 30.0]), np.array([30.0, 60.0])
    >>> overlap(start, stop, [(28, 31), (25, 29), (28, 29)])
    array([5., 1.])
    """
    # Shorten each segment so that it begins after the end of all previous segments.
    ordered = np.array(sorted(map(tuple, segments)), dtype=float).reshape(-1, 2)
    ends = np.r_[-np.inf, np.maximum.accumulate(ordered[:, 1])]
    begins = np.maximum(ordered[:, 0], ends[:-1])
    # Overlap of each window with each segment, shape (n_windows, n_segments).
    overlaps = np.minimum(stop[:, None], ordered[:, 1]) - np.maximum(start[:, None], begins)
    return overlaps.clip(0).sum(axis=1)


RECIPE = recipe.Recipe("tusz", CARD, recordings, prepare, cut, check=_check)
load = RECIPE.load
