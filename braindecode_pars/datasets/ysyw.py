"""YSYW: sleep stages ("You Snooze You Win", PhysioNet/CinC Challenge 2018, 1.0.0).

The length of a window is 30 seconds. As in braindecode, a stage lasts until the annotation of the
next stage, and the last stage lasts for one window. Segments before the first stage, and segments
annotated as "undefined", have no labeled windows. The stages of the subjects ``te...`` are not
published: ``load`` excludes these subjects, and raises an error if one of them is requested. To
pretrain on whole recordings, create a signal store (a folder of preprocessed recordings):
``braindecode-pars store --recipe ysyw=FOLDER STORE``. The store contains only the recordings of
unlabeled subjects (``te...``) and of training subjects.

Files are read with wfdb, which loads only the six EEG channels.
:class:`braindecode.datasets.SleepPhysionetChallenge2018` is not used because it downloads
missing files, beginning with its list of records, and numbers the subjects instead of using the
names of their records.

The numbers of subjects in the PARS paper are inconsistent. According to its appendix A.3, the 994
labeled subjects are divided 60/20/20, which results in 596, 199 and 199 subjects. However, the
paper fine-tunes on up to 657 subjects, tests on 117, and uses 200 validation subjects in the
ablation. The 989 unlabeled and 596 training subjects add up to 1,585, but the paper pretrains on
1,386 (table) or 1,396 (text). This module implements the description in appendix A.3.
"""

from pathlib import Path
from typing import Any

import mne
import numpy as np
import wfdb
from braindecode.datasets import EEGWindowsDataset
from wfdb.io.annotation import load_byte_pairs, proc_ann_bytes

from braindecode_pars._common import sleep_stages
from braindecode_pars._common.channel_names import electrode_name, template_montage
from braindecode_pars.recordings import cutting, loading, preparation, readers, recipe

__all__ = ["CARD", "CHANNELS", "cut", "load", "prepare", "recordings"]

#: Channels. In the files, they are referenced to the opposite mastoid: F3-M2, F4-M1 and so on.
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

#: Length of a window in seconds.
WINDOW_SECONDS = 30.0
_NAME = r"(?P<subject>(tr|te)\d\d-\d{4})\.mat"


def recordings(path: str | Path, *, split_seed: int = 0) -> list[loading.Recording]:
    """List the recordings in a folder and their splits, without opening the files.

    Parameters
    ----------
    path : path
        Folder that contains files such as ``training/tr03-0005/tr03-0005.mat`` in any subfolder,
        and the corresponding ``.hea`` and ``.arousal`` files.
    split_seed : int
        Seed of the random division of labeled subjects (``tr...``): 60 % of them are assigned to
        the split "train", 20 % to "valid" and 20 % to "test". The division also depends on which
        subjects are in the folder.

    Returns
    -------
    list of Recording
        The description of a recording contains ``subject``, ``corpus`` and ``split``. The subject
        is the name of the record, such as "tr03-0005"; there is one record per subject. The split
        of the records ``te...`` (the test set of the challenge) is "unlabeled", because their
        stages are not published.

    Raises
    ------
    FileNotFoundError
        If the folder contains no recording.
    ValueError
        If two files of a subject have the same name.

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
    example = "training/tr03-0005/tr03-0005.mat"
    all_recordings = loading.find_recordings(path, "ysyw", example, _NAME)
    # Only labeled subjects are divided; the other records are unlabeled.
    labeled = [r.subject for r in all_recordings if r.subject.startswith("tr")]
    splits = loading.split_subjects(labeled, {"train": 0.6, "valid": 0.2, "test": 0.2}, split_seed)
    all_recordings.sort(key=lambda r: r.subject.startswith("te"))
    return [r.described(split=splits.get(r.subject, "unlabeled")) for r in all_recordings]


def prepare(recording: loading.Recording) -> mne.io.BaseRaw:
    """Read and preprocess a recording: six channels, 200 Hz, band-pass 0.3-75 Hz, notch 60 Hz.

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
    >>> first = datasets.ysyw.recordings("challenge-2018/1.0.0")[0]  # doctest: +SKIP
    >>> raw = datasets.ysyw.prepare(first)  # doctest: +SKIP
    """
    raw = readers.read_wfdb(recording.file, lambda name: electrode_name(name) in CHANNELS)
    preparation.pick_electrodes(raw, CHANNELS).set_montage(template_montage(), verbose="error")
    return preparation.filter_and_resample(raw, mains=60.0)


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
        If the file is damaged, or a channel or the sleep stages are missing.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> first = datasets.ysyw.recordings("challenge-2018/1.0.0")[0]  # doctest: +SKIP
    >>> windows = datasets.ysyw.cut(first)  # doctest: +SKIP
    >>> datasets.ysyw.CARD["classes"]
    ('W', 'N1', 'N2', 'N3', 'R')
    """
    stages = _stages(recording.file)  # read the stages first, because reading the signals is slow
    raw = prepare(recording).set_annotations(stages, verbose="error")
    return cutting.event_windows(raw, sleep_stages.SLEEP_TARGETS, WINDOW_SECONDS)


def _stages(file: Path) -> mne.Annotations:
    """Read the sleep stages of a record, without annotations of arousals and breathing events."""
    # wfdb.rdann removes all notes at sample 0, because they may be definitions. Here, a note at
    # sample 0 may be a sleep stage. Therefore, the notes are read from the bytes of the file.
    record = str(file.with_suffix(""))
    sfreq = wfdb.rdann(record, "arousal").fs
    samples, *_, notes = proc_ann_bytes(load_byte_pairs(record, "arousal", None), None)
    names = [(note or "").strip("\x00 ") for note in notes]

    # "undefined" is included because it ends the previous stage; event_windows ignores it.
    is_stage = np.isin(names, [*sleep_stages.SLEEP_STAGES, "undefined"])
    if not is_stage.any():
        raise ValueError(
            f"the annotation file {file.stem}.arousal contains no sleep stages. Download it again, "
            "or exclude the recording."
        )
    onsets = np.array(samples)[is_stage] / sfreq
    durations = np.diff(onsets, append=onsets[-1:] + WINDOW_SECONDS)
    return mne.Annotations(onsets, durations, np.array(names)[is_stage])


RECIPE = recipe.Recipe("ysyw", CARD, recordings, prepare, cut)
load = RECIPE.load
