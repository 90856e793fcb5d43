"""UCDDB: sleep stages of patients with suspected sleep apnea (PhysioNet, 1.0.0).

The corpus is the St. Vincent's University Hospital / University College Dublin Sleep Apnea
Database. The PARS paper does not use this corpus. The corpus is freely available, and
:func:`datasets.sleep <braindecode_pars.datasets.sleep>` loads a bundled sample of it. The folder
``sample_data`` contains the windows of the sample, and a file ``README.md`` with their license and
origin. The sample was created by ``docs/experiments/make_sample.py``.

The original files from PhysioNet are read: signals from EDF files such as ``ucddb002.rec``, and
sleep stages from files such as ``ucddb002_stage.txt``, with one code per 30 seconds. Stages 3 and 4
of Rechtschaffen and Kales are merged into N3. Windows with codes of 6 or more (artifact or
indeterminate) are excluded.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mne
import numpy as np
import pandas as pd
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset, WindowsDataset

from braindecode_pars._common import sleep_stages
from braindecode_pars._common.channel_names import template_montage
from braindecode_pars.recordings import cutting, label_files, loading, preparation, readers, recipe

__all__ = ["CARD", "CHANNELS", "cut", "load", "prepare", "recordings"]

#: Channels. In the files, they are referenced to the opposite ear: C3A2 and C4A1.
CHANNELS = ("C3", "C4")

#: Description of the corpus and of the windows.
CARD: dict[str, Any] = dict(
    name="UCDDB",
    version="1.0.0",
    license="ODC-BY-1.0",
    address="https://physionet.org/content/ucddb/1.0.0/",
    subjects=25,
    channels=len(CHANNELS),
    sfreq=128.0,
    classes=sleep_stages.SLEEP_STAGES,
    reference="https://doi.org/10.13026/C26C7D; Goldberger et al. 2000, Circulation 101(23)",
)

#: File of the bundled sample dataset.
SAMPLE = Path(__file__).parent / "sample_data" / "sleep.npz"
#: Names of the stages in this file, in the order of the targets.
SAMPLE_STAGES = ("W", "3", "4")

#: Name of the channel for all subjects: the usual derivation. In some subjects, the channel may be
#: C4-A1 instead, the corresponding derivation of the other hemisphere. It is unknown in which
#: subjects.
SAMPLE_CHANNEL = "C3-A2"

#: Length of a window in seconds.
WINDOW_SECONDS = 30.0
_NAME = r"(?P<subject>ucddb\d{3})\.rec"

#: AASM stage of each code. Codes 4 and 5 are the stages 3 and 4 of Rechtschaffen and Kales. Code 6
#: is an artifact, and codes of 7 or more are indeterminate; they are not used.
_CODES = {"0": "W", "1": "R", "2": "N1", "3": "N2", "4": "N3", "5": "N3"}

#: Assumed unit of signals without a unit, in volts. It results in plausible EEG amplitudes.
_UNIT = 100e-6


def recordings(path: str | Path) -> list[loading.Recording]:
    """List the recordings in a folder, without opening the files.

    Parameters
    ----------
    path : path
        Folder that contains files such as ``ucddb002.rec`` in any subfolder, each with a file such
        as ``ucddb002_stage.txt`` in the same subfolder.

    Returns
    -------
    list of Recording
        The description of a recording contains ``subject`` (for example "ucddb002") and ``corpus``,
        but no ``split``. There is one recording per subject.

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
    ...     Path(folder, "ucddb002.rec").touch()
    ...     [recording] = datasets.ucddb.recordings(folder)
    >>> recording.description
    {'subject': 'ucddb002', 'corpus': 'ucddb'}
    """
    return loading.find_recordings(path, "ucddb", "ucddb002.rec", _NAME)


def prepare(recording: loading.Recording) -> mne.io.BaseRaw:
    """Read and preprocess a recording: two channels, 128 Hz, high-pass 0.3 Hz, notch 50 Hz.

    Parameters
    ----------
    recording : Recording
        Recording, as returned by :func:`recordings`.

    Returns
    -------
    Raw
        Preloaded recording in volts, with the channels in the order of :data:`CHANNELS`. If the
        file contains no unit for a signal, the unit is assumed to be 100 microvolts.

    Raises
    ------
    ValueError
        If the file is damaged, or a channel is missing.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> first = datasets.ucddb.recordings("ucddb/1.0.0")[0]  # doctest: +SKIP
    >>> raw = datasets.ucddb.prepare(first)  # doctest: +SKIP
    """
    # MNE recognizes EDF files by their extension. Therefore, it reads a link with the extension
    # .edf, which is in a temporary folder.
    with TemporaryDirectory() as folder:
        link = Path(folder, recording.file.stem + ".edf")
        link.symlink_to(recording.file.resolve())
        raw = readers.read_edf(link, lambda name: False)
        units = readers.edf_signals(link)[0]["unit"]
    unknown = [n for n, u in zip(raw.ch_names, units, strict=True) if not u.endswith("V")]
    raw.apply_function(lambda signal: _UNIT * signal, unknown)
    raw.rename_channels(lambda name: re.sub(r"(?<=C[34])(?=A[12])", "-", name))
    preparation.pick_electrodes(raw, CHANNELS).set_montage(template_montage(), verbose="error")
    return preparation.filter_and_resample(raw, sfreq=CARD["sfreq"], mains=50.0)


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
    FileNotFoundError
        If the file of sleep stages is missing.
    ValueError
        If the file is damaged, or a channel is missing.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> first = datasets.ucddb.recordings("ucddb/1.0.0")[0]  # doctest: +SKIP
    >>> windows = datasets.ucddb.cut(first)  # doctest: +SKIP
    >>> datasets.ucddb.CARD["classes"]
    ('W', 'N1', 'N2', 'N3', 'R')
    """
    # Read the stages first, because reading the signals is slow.
    scores = recording.file.with_name(f"{recording.file.stem}_stage.txt")
    names = [_CODES.get(code, "unscored") for code in scores.read_text(encoding="utf-8").split()]
    onsets = WINDOW_SECONDS * np.arange(len(names))
    raw = prepare(recording)
    raw.set_annotations(mne.Annotations(onsets, WINDOW_SECONDS, names), verbose="error")
    return cutting.event_windows(raw, sleep_stages.SLEEP_TARGETS, WINDOW_SECONDS)


RECIPE = recipe.Recipe("ucddb", CARD, recordings, prepare, cut)
load = RECIPE.load


def sleep(
    subjects: Iterable[str] | None = None,
    *,
    classes: Sequence[str] | Mapping[str, str] | None = None,
) -> BaseConcatDataset:
    """Load the bundled sample dataset of wake and deep sleep (12 subjects, one EEG channel).

    The dataset contains 30-second windows of one EEG channel at 128 Hz. For each subject, it
    contains at most 60 windows each of wake, stage 3 and stage 4 (Rechtschaffen and Kales), evenly
    distributed over all windows of the stage. The windows are a subset of the St. Vincent's
    University Hospital / University College Dublin Sleep Apnea Database;
    :mod:`~braindecode_pars.datasets.ucddb` loads the full corpus.

    Parameters
    ----------
    subjects : iterable of str | None
        Subjects to load, among "ucddb002" to "ucddb024". If None, load all subjects.
    classes : list of str | mapping of str to str | None
        List of stages to classify, in the order of the targets, or a mapping of stages to class
        names. The stages are "Sleep stage W", "Sleep stage 3" and "Sleep stage 4". Windows of other
        stages are unlabeled: their target is -1, and they are used for pretraining, but not for
        scoring. If None, each stage is a class.

    Returns
    -------
    BaseConcatDataset of WindowsDataset
        Windows with signals in volts. By default, target 0 is wake, 1 is stage 3, and 2 is stage 4.
        The description of each recording contains ``subject``. The metadata contain two additional
        columns: ``position`` is the index of the window in the recording, and ``bad`` is True if
        the author of a later study rated the window as bad by visual inspection (one in five
        windows of wake, and one in forty windows of deep sleep).

    Raises
    ------
    FileNotFoundError
        If the sample dataset does not contain a requested subject, or if ``subjects`` is empty.
    TypeError
        If ``subjects`` or ``classes`` is a string.
    ValueError
        If ``classes`` is empty, or contains a stage that is not in the dataset.

    Notes
    -----
    For all subjects, the channel is named C3-A2, the usual derivation, so that a model trained on
    this dataset can be applied to other sleep recordings. In some subjects, it may be C4-A1
    instead, the corresponding derivation of the other hemisphere: the source files contain one of
    the two channels, but not its name. To predict a recording that contains C4-A1 but not C3-A2,
    rename C4-A1 to C3-A2.

    The dataset contains neither REM sleep nor the stages 1 and 2, so a model trained on this
    dataset never predicts these stages. The subjects are patients with suspected sleep apnea.
    Stages 3 and 4 together correspond to N3 of the AASM rules, so stage 3 vs. stage 4 is a
    difficult classification task. The physical unit of the source files is unknown; it is assumed
    to be 100 microvolts. Signals are clipped during movements. They are quantized in steps of one
    tenth of the median amplitude of the windows of the subject. 14 windows of wake are flat; all of
    them are marked as ``bad``.

    License: ODC-BY 1.0. Cite https://doi.org/10.13026/C26C7D and Goldberger et al. 2000,
    Circulation 101(23).

    Examples
    --------
    Windows of 30 s at 128 Hz contain 3840 samples:

    >>> from braindecode_pars import as_sklearn, datasets
    >>> windows = datasets.sleep()
    >>> X, y, groups = as_sklearn(windows)
    >>> X[0].shape, len(set(groups)), sorted(set(y.tolist()))
    ((1, 3840), 12, [0, 1, 2])

    Stage 3 vs. stage 4, with unlabeled windows of wake for pretraining:

    >>> windows = datasets.sleep(classes=["Sleep stage 3", "Sleep stage 4"])
    >>> sorted(set(as_sklearn(windows)[1].tolist()))
    [-1, 0, 1]
    """
    stages = [f"Sleep stage {stage}" for stage in SAMPLE_STAGES]
    class_of = label_files.classes_of_labels(stages, stages if classes is None else classes)
    with np.load(SAMPLE, allow_pickle=False) as archive:
        sample = dict(archive)
    known = sample["subjects"].tolist()
    sample_recordings = (loading.Recording(SAMPLE, dict(subject=s, corpus="ucddb")) for s in known)
    parts = []
    for recording in loading.choose_subjects(sample_recordings, subjects, "The sample dataset"):
        number = known.index(recording.subject)
        rows = sample["person"] == number
        # The file contains differences between consecutive samples, because they compress better.
        # The cumulative sum intentionally wraps around in int8.
        steps = np.cumsum(sample["differences"][rows], axis=1, dtype=np.int8)
        metadata = pd.DataFrame({name: sample[name][rows] for name in ("stage", "position", "bad")})
        metadata["stage"] = ("Sleep stage " + metadata["stage"]).map(class_of)
        volts = steps * sample["step"][number]
        parts.append(scored_epochs(volts, metadata, [*dict.fromkeys(class_of.values())], recording))
    return BaseConcatDataset(parts)


def scored_epochs(
    volts: np.ndarray, metadata: pd.DataFrame, stages: Sequence[str], recording: loading.Recording
) -> WindowsDataset:
    """Create a dataset of windows (not necessarily consecutive) of one channel at 128 Hz.

    Parameters
    ----------
    volts : ndarray, shape (n_windows, n_times)
        Signals in volts.
    metadata : DataFrame
        One row per window, with the columns ``stage`` and ``position`` (index of the window in the
        recording).
    stages : sequence of str
        Class names in the order of the targets 0, 1, .... Windows of other stages have the target
        -1.
    recording : Recording
        Recording whose description becomes the description of the windows.

    Returns
    -------
    WindowsDataset
        The windows with their targets and the description of the recording.
    """
    targets = pd.Index(stages).get_indexer(metadata["stage"])
    info = mne.create_info([SAMPLE_CHANNEL], 128.0, "eeg")
    n_times = volts.shape[1]
    starts = metadata["position"].to_numpy() * n_times
    events = np.column_stack([starts, np.zeros_like(starts), targets])
    samples = dict(i_window_in_trial=0, i_start_in_trial=starts, i_stop_in_trial=starts + n_times)
    metadata = metadata.drop(columns="stage").assign(**samples, target=targets)
    epochs = mne.EpochsArray(
        volts[:, None], info, events, metadata=metadata.reset_index(drop=True), verbose="error"
    )
    return cutting.name_classes(WindowsDataset(epochs, recording.description), stages)
