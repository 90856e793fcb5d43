"""TUEG: unlabeled EEG for pretraining (TUH EEG Corpus, Temple University Hospital).

The PARS paper excludes the subjects of TUAB and TUSZ from pretraining (appendix A.3). To exclude
them, pass ``exclude`` to ``load``. The length of a window is 30 seconds, and all targets are -1,
which means unlabeled. The corpus does not fit into memory: load a subset of the ``subjects``, or
create a signal store (a folder of preprocessed recordings) as shown in
:meth:`SignalStore.create <braindecode_pars.signal_store.SignalStore.create>`. Some recordings lack
a channel; to skip them, pass ``on_error="warn"``.

Files are read with MNE. :class:`braindecode.datasets.TUH` is not used because it opens every
file in its constructor, fails at the first damaged file, and cannot exclude subjects.
"""

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import mne

from braindecode_pars._common.subjects import subject_key
from braindecode_pars.datasets import temple
from braindecode_pars.recordings import loading, preparation, recipe

__all__ = ["CARD", "OVERLAP", "leave_out", "load", "prepare", "recordings"]

#: Description of the corpus and of the windows.
CARD: dict[str, Any] = dict(
    name="TUEG",
    version="2.0.1",
    license="free of charge on request; redistribution is not allowed",
    address="https://isip.piconepress.com/projects/nedc/html/tuh_eeg/",
    subjects=14987,
    channels=len(preparation.COMMON_CHANNELS),
    sfreq=200.0,
    classes=(),
    reference="Obeid & Picone 2016, Front Neurosci 10:196",
)

#: Warning that is issued if no subject is excluded.
OVERLAP = (
    "Possible data leakage: TUEG contains the subjects of TUAB and TUSZ, including their test "
    "subjects. If you will evaluate on TUAB or TUSZ, exclude their subjects from pretraining with "
    "exclude=[TUAB_FOLDER, TUSZ_FOLDER]."
)

#: Corpora in the result of :func:`subject_key` for subjects of this hospital, and for subjects
#: whose corpus is unknown.
_FAMILY = ("tuh", "")

_EXAMPLE = "edf/000/aaaaaaaa/s001_2015_12_30/01_tcp_ar/aaaaaaaa_s001_t000.edf"
_SUBJECT = r"\d{3}/(?:[a-z]{8}|\d{8})/s\d+_\d{4}\w*/"
_LAYOUTS = (
    rf"{_SUBJECT}(?P<montage>\d\d_tcp_\w+)/",
    # Releases up to v1.2. Paths in TUAB v2 are similar, but not directly below the folder edf.
    rf"edf/(?P<montage>\d\d_tcp_\w+)/{_SUBJECT}",
)


def recordings(path: str | Path) -> list[loading.Recording]:
    """List the recordings in a folder (layout of v2.0 or v1), without opening the files.

    Parameters
    ----------
    path : path
        Folder of the corpus, or one of its parent folders or subfolders.

    Returns
    -------
    list of Recording
        The description of a recording contains ``subject``, ``corpus``, ``montage`` (such as
        "01_tcp_ar"), ``session`` and ``token`` (number of the file within the session).

    Raises
    ------
    FileNotFoundError
        If the folder contains no recording.

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
    {'subject': 'aaaaaaaa', 'corpus': 'tueg', 'montage': '01_tcp_ar', 'session': 1, 'token': 0}
    """
    return temple.find(path, "tueg", _EXAMPLE, *_LAYOUTS)


def leave_out(
    recordings: Iterable[loading.Recording], exclude: Sequence[str | PathLike | Iterable[str]]
) -> tuple[list[loading.Recording], list[loading.Recording]]:
    """Separate the recordings of excluded subjects from the other recordings.

    Parameters
    ----------
    recordings : iterable of Recording
        Recordings, as returned by :func:`recordings`.
    exclude : sequence
        Subjects to exclude, as folders or as lists. The subjects in a folder, such as the folder of
        another corpus, are derived from the file names. Examples: two folders,
        ``["tuh_eeg_abnormal/v3.0.1", "tuh_eeg_seizure/v2.0.3"]``, or one list,
        ``[["aaaaaaaa", "tuab:aaaaaaab"]]``. A subject may begin with the name of its corpus, as in
        "tuab:aaaaaaab". Subjects have the same identifiers in TUAB, TUSZ and TUEG. Subjects of
        other hospitals, such as "eegmat:5", match no subject of TUEG.

    Returns
    -------
    included : list of Recording
        Recordings for pretraining.
    excluded : list of Recording
        Recordings of excluded subjects.

    Raises
    ------
    FileNotFoundError
        If a folder does not exist or contains no recording.
    ValueError
        If subjects in ``exclude`` are identified by numbers and subjects in ``recordings`` by
        letters, or vice versa, so that subjects cannot be matched.
    TypeError
        If ``exclude`` is a path instead of a list, or contains a subject outside a list.

    Examples
    --------
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings.loading import Recording
    >>> from braindecode_pars.datasets.tueg import leave_out
    >>> names = "aaaaaaaa", "aaaaaaab"
    >>> recordings = [Recording(Path(f"{name}.edf"), {"subject": name}) for name in names]
    >>> included, excluded = leave_out(recordings, exclude=[["aaaaaaab"]])
    >>> [recording.subject for recording in included]
    ['aaaaaaaa']
    """
    recordings = list(recordings)
    folders, lists = recipe.folders_and_lists(exclude)
    sources = [(str(folder), temple.subjects_in(Path(folder))) for folder in folders]
    sources += [("a list in exclude", set(subjects)) for subjects in lists]
    for source, subjects in sources:
        _check_naming(recordings, subjects, source)
    # Subjects are compared by subject_key, because a list may contain the subject 00000254 as 254.
    return recipe.separate_subjects(recordings, [s for _, subjects in sources for s in subjects])


def _check_naming(recordings: list[loading.Recording], subjects: set[str], source: str) -> None:
    # One example for each kind of identifier: digits (True) or letters (False).
    recorded = {recording.subject.isdigit(): recording.subject for recording in recordings}
    excluded = {}
    for subject in subjects:
        corpus, _, name = subject_key(subject).rpartition(":")
        if corpus in _FAMILY:  # identifiers of other hospitals follow other rules
            excluded[name.isdigit()] = subject
    if recorded and excluded and recorded.keys() != excluded.keys():
        raise ValueError(
            f"{source} contains identifiers such as {', '.join(map(str, excluded.values()))}, but "
            f"TUEG contains identifiers such as {', '.join(recorded.values())}, so some subjects "
            "would not be excluded. In 2022, the subject identifiers of Temple University were "
            "changed from numbers to letters. Use releases of the corpora with the same kind of "
            "identifiers. If the subjects are from another hospital, begin each subject with the "
            "name of its corpus, as in physionet_mi:7."
        )


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
    >>> first = datasets.tueg.recordings("tuh_eeg/v2.0.1")[0]  # doctest: +SKIP
    >>> raw = datasets.tueg.prepare(first)  # doctest: +SKIP
    >>> windows = datasets.tueg.load(  # doctest: +SKIP
    ...     "tuh_eeg/v2.0.1",
    ...     exclude=["tuh_eeg_abnormal/v3.0.1", "tuh_eeg_seizure/v2.0.3"],
    ...     on_error="warn",
    ... )
    """
    return temple.prepare(recording.file, preparation.COMMON_CHANNELS)


RECIPE = recipe.Recipe("tueg", CARD, recordings, prepare, leave_out=leave_out, overlap=OVERLAP)
load = RECIPE.load
