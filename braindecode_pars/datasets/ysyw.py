"""YSYW: sleep stages ("You Snooze You Win", PhysioNet/CinC Challenge 2018, 1.0.0).

Windows last 30 seconds. As in braindecode, a stage lasts until the annotation of the next stage,
and the last stage lasts for one window. Time before the first stage, and stages annotated as
"undefined", give no labeled window. The stages of the subjects ``te...`` are not published:
``load`` leaves them out, and requesting one is an error. To pretrain on whole nights, store them:
``braindecode-pars store --recipe ysyw=FOLDER STORE`` takes those of unlabeled and training
subjects only.

Files are read with wfdb, which loads only the six channels.
:class:`braindecode.datasets.SleepPhysionetChallenge2018` is not used because it downloads
missing files, first of all its list of records, and numbers subjects instead of using the
names of their records.

The subject counts in the paper are inconsistent. A 60/20/20 division of 994 labeled subjects
gives 596, 199 and 199 subjects. The paper fine-tunes on up to 657 subjects, tests on 117, and
has 200 validation subjects in the ablation. The 989 unlabeled and 596 training subjects add up
to 1,585; the paper pretrains on 1,386 (table) or 1,396 (text). This recipe implements the
description in appendix A.3.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import mne
import numpy as np
import wfdb
from braindecode.datasets import EEGWindowsDataset
from wfdb.io.annotation import load_byte_pairs, proc_ann_bytes

from braindecode_pars._common import sleep_stages
from braindecode_pars._common.channel_names import electrode_name, template_montage
from braindecode_pars.recordings import cutting, loading, preparation, readers, recipe, search

__all__ = ["CARD", "CHANNELS", "cut", "load", "prepare", "recordings"]

#: Channels; in the files each is referenced to the contralateral mastoid: F3-M2, F4-M1 and so on.
CHANNELS = ("F3", "F4", "C3", "C4", "O1", "O2")

#: Description of the corpus and of the windows.
CARD: dict[str, Any] = dict(
    name="YSYW",
    version="1.0.0",
    license="ODC-BY-1.0",
    address="https://physionet.org/content/challenge-2018/1.0.0/",
    subjects=1983,
    channels=len(CHANNELS),
    sfreq=preparation.SFREQ,
    classes=sleep_stages.SLEEP_STAGES,
    reference="Ghassemi et al. 2018, Computing in Cardiology 45; "
    "Goldberger et al. 2000, Circulation 101(23)",
)

WINDOW_SECONDS = 30.0
_NAME = re.compile(r"(tr|te)\d\d-\d{4}\.mat")


def recordings(
    path: str | Path, subjects: Iterable[str] | None = None, *, split_seed: int = 0
) -> list[loading.Recording]:
    """Return the recordings in a folder and their splits, without opening the files.

    Parameters
    ----------
    path : path
        Folder with files such as ``training/tr03-0005/tr03-0005.mat``, at any depth, and the files
        ``.hea`` and ``.arousal`` beside them.
    subjects : iterable of str | None
        Subjects to return, such as "tr03-0005". None returns every subject in the folder.
    split_seed : int
        Seed that divides the labeled subjects (``tr...``): 60 % become "train", 20 % "valid" and
        20 % "test". The division depends on which subjects are in the folder.

    Returns
    -------
    list of Recording
        The description of a recording has ``subject``, ``corpus`` and ``split``. The subject is the
        name of the record, such as "tr03-0005"; each subject has one record. The split of the
        records ``te...``, the test set of the challenge, is "unlabeled": their stages are not
        published.

    Raises
    ------
    FileNotFoundError
        When the folder contains no recording.
    ValueError
        When two files have the same name.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "test", "te03-0094", "te03-0094.mat")
    ...     file.parent.mkdir(parents=True)
    ...     file.touch()
    ...     [recording] = datasets.ysyw.recordings(folder)
    >>> recording.description
    {'subject': 'te03-0094', 'corpus': 'ysyw', 'split': 'unlabeled'}
    """
    named_files = search.find_named(
        path, _NAME, "no recording of YSYW", "training/tr03-0005/tr03-0005.mat"
    )
    files = sorted((file for file, _ in named_files), key=lambda file: file.stem[:2], reverse=True)
    # Only labeled subjects are divided; the other records are unlabeled.
    labeled = [file.stem for file in files if file.stem.startswith("tr")]
    splits = loading.split_subjects(labeled, {"train": 0.6, "valid": 0.2, "test": 0.2}, split_seed)
    divided = [
        loading.Recording(
            file, dict(subject=file.stem, corpus="ysyw", split=splits.get(file.stem, "unlabeled"))
        )
        for file in files
    ]
    return loading.choose_subjects(divided, subjects, path)


def prepare(recording: loading.Recording) -> mne.io.BaseRaw:
    """Read a recording and prepare it: six channels, 200 Hz, band-pass 0.3-75 Hz, notch 60 Hz.

    Parameters
    ----------
    recording : Recording
        Recording, as returned by :func:`recordings`.

    Returns
    -------
    Raw
        Preloaded recording in volts, channels in the order of :data:`CHANNELS`.

    Raises
    ------
    ValueError
        When the file is damaged, or lacks a channel.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> first = datasets.ysyw.recordings("challenge-2018/1.0.0")[0]  # doctest: +SKIP
    >>> raw = datasets.ysyw.prepare(first)  # doctest: +SKIP
    """
    raw = readers.read_wfdb(recording.file, lambda name: electrode_name(name) in CHANNELS)
    preparation.pick_electrodes(raw, CHANNELS).set_montage(template_montage(), verbose="error")
    return preparation.filter_and_resample(raw, mains=60.0)


def cut(recording: loading.Recording) -> EEGWindowsDataset | None:
    """Read a recording and cut it into labeled windows.

    Parameters
    ----------
    recording : Recording
        Recording, as returned by :func:`recordings`.

    Returns
    -------
    EEGWindowsDataset | None
        Labeled windows without a description; None when the recording has none.

    Raises
    ------
    ValueError
        When the file is damaged, or lacks a channel or its stages.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> first = datasets.ysyw.recordings("challenge-2018/1.0.0")[0]  # doctest: +SKIP
    >>> windows = datasets.ysyw.cut(first)  # doctest: +SKIP
    >>> datasets.ysyw.CARD["classes"]
    ('W', 'N1', 'N2', 'N3', 'R')
    """
    stages = _stages(recording.file)  # a record without stages fails before its signals are read
    raw = prepare(recording).set_annotations(stages, verbose="error")
    return cutting.event_windows(raw, sleep_stages.SLEEP_TARGETS, WINDOW_SECONDS)


def _stages(file: Path) -> mne.Annotations:
    """Return the sleep stages of a record, without the annotations of arousals and breathing."""
    # Notes and samples are not those of rdann, which removes every note at sample 0, because it may
    # be a definition. A stage at sample 0 is none.
    record = str(file.with_suffix(""))
    sfreq = wfdb.rdann(record, "arousal").fs
    samples, *_, notes = proc_ann_bytes(load_byte_pairs(record, "arousal", None), None)
    names = [(note or "").strip("\x00 ") for note in notes]

    # "undefined" is kept here because it ends the stage before it; event_windows drops it.
    is_stage = np.array(
        [name in (*sleep_stages.SLEEP_STAGES, "undefined") for name in names], dtype=bool
    )
    if not is_stage.any():
        raise ValueError(f"it has no stages: {file.stem}.arousal contains no sleep stage.")
    onsets = np.array(samples)[is_stage] / sfreq
    durations = np.diff(onsets, append=onsets[-1:] + WINDOW_SECONDS)
    return mne.Annotations(onsets, durations, np.array(names)[is_stage])


RECIPE = recipe.Recipe("ysyw", CARD, recordings, prepare, cut)
load = RECIPE.load
