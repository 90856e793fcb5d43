"""TUAB: normal or abnormal EEG (TUH Abnormal EEG Corpus, Temple University Hospital).

The length of a window is 30 seconds. The target of each window is the label of its recording: 0 for
normal, 1 for abnormal. Channels and splits follow appendix A.3 of the PARS paper.

Files are read with MNE. :class:`braindecode.datasets.TUHAbnormal` is not used because it opens
every file in its constructor, fails at the first damaged file, and writes the date of each
recording to a file next to the recording.
"""

from pathlib import Path
from typing import Any

import mne
from braindecode.datasets import EEGWindowsDataset

from braindecode_pars.datasets import temple
from braindecode_pars.recordings import cutting, loading, preparation, recipe

__all__ = ["CARD", "CHANNELS", "cut", "load", "prepare", "recordings"]

#: Channels: the 19 channels shared by all corpora of Temple University, and two ear electrodes.
CHANNELS = (*preparation.COMMON_CHANNELS, "A1", "A2")

#: Description of the corpus and of the windows.
CARD: dict[str, Any] = dict(
    name="TUAB",
    version="3.0.1",
    license="free of charge on request; redistribution is not allowed",
    address="https://isip.piconepress.com/projects/nedc/html/tuh_eeg/",
    subjects=2329,
    channels=len(CHANNELS),
    sfreq=200.0,
    classes=("normal", "abnormal"),
    reference="Lopez 2017, MS thesis, Temple University; Obeid & Picone 2016, "
    "Front Neurosci 10:196",
)

_EXAMPLE = "edf/train/normal/01_tcp_ar/aaaaaaaa_s001_t000.edf"
# In releases up to v2, the files are in additional subfolders for the subject and the session.
_LAYOUT = (
    r"(?P<folder>train|eval)/(?P<label>normal|abnormal)/(?P<montage>\d\d_tcp_\w+)/(?:[^/]+/){0,3}"
)


def recordings(path: str | Path, *, split_seed: int = 0) -> list[loading.Recording]:
    """List the recordings in a folder and their splits, without opening the files.

    Parameters
    ----------
    path : path
        Folder of the corpus, or one of its parent folders or subfolders.
    split_seed : int
        Seed of the random division of the subjects in the folder ``train``: 80 % of them are
        assigned to the split "train", and 20 % to "valid". All subjects in the folder ``eval`` are
        assigned to "test".

    Returns
    -------
    list of Recording
        The description of a recording contains ``subject``, ``corpus``, ``folder`` ("train" or
        "eval"), ``label`` ("normal" or "abnormal"), ``montage`` (such as "01_tcp_ar"), ``session``,
        ``token`` (number of the file within the session) and ``split``. A subject in ``train`` may
        have recordings with both labels; all recordings of a subject are in the same split.

    Raises
    ------
    FileNotFoundError
        If the folder contains no recording.
    ValueError
        If a subject is in both ``train`` and ``eval``. The message contains the subject.

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
    all_recordings = temple.find(path, "tuab", _EXAMPLE, _LAYOUT)
    return temple.divide(all_recordings, {"eval": "test"}, split_seed)


def prepare(recording: loading.Recording) -> mne.io.BaseRaw:
    """Read and preprocess a recording: 21 channels, 200 Hz, band-pass 0.3-75 Hz, notch 60 Hz.

    Parameters
    ----------
    recording : Recording
        Recording, as returned by :func:`recordings`.

    Returns
    -------
    Raw
        Preloaded recording in volts, with the channels in the order of :data:`CHANNELS`.

    Raises
    ------
    ValueError
        If the file is damaged, or a channel is missing.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> first = datasets.tuab.recordings("tuh_eeg_abnormal/v3.0.1")[0]  # doctest: +SKIP
    >>> raw = datasets.tuab.prepare(first)  # doctest: +SKIP
    """
    return temple.prepare(recording.file, CHANNELS)


def cut(recording: loading.Recording) -> EEGWindowsDataset | None:
    """Read a recording, preprocess it, and cut it into labeled windows.

    Parameters
    ----------
    recording : Recording
        Recording, as returned by :func:`recordings`.

    Returns
    -------
    EEGWindowsDataset | None
        Labeled windows, or None if the recording has no windows. The entries of
        ``recording.description`` are not stored with the windows; ``load`` adds them.

    Raises
    ------
    ValueError
        If the file is damaged, or a channel is missing.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> first = datasets.tuab.recordings("tuh_eeg_abnormal/v3.0.1")[0]  # doctest: +SKIP
    >>> windows = datasets.tuab.cut(first)  # doctest: +SKIP
    >>> datasets.tuab.CARD["classes"]
    ('normal', 'abnormal')
    """
    target = CARD["classes"].index(recording.description["label"])
    return cutting.fixed_windows(prepare(recording), target=target)


RECIPE = recipe.Recipe("tuab", CARD, recordings, prepare, cut)
load = RECIPE.load
