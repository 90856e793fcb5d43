"""UCDDB: sleep stages of patients with suspected apnoea (PhysioNet, 1.0.0).

The St. Vincent's University Hospital / University College Dublin Sleep Apnea Database. The paper
does not use this corpus. It is free, and :func:`datasets.sleep <braindecode_pars.datasets.sleep>`
is a sample of it in the package: the folder ``sample_data`` has its windows, and ``README.md``
their license and origin. ``docs/experiments/make_sample.py`` made them.

The files of PhysioNet are read as they are: signals from ``ucddb002.rec`` and so on, which are
EDF, and stages from ``ucddb002_stage.txt``, with a code for each 30 seconds. The stages 3 and 4
of Rechtschaffen and Kales are N3; the annotations of each recording keep their names. Artifacts and
indeterminate windows (codes 6 and more) are left out.
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
from braindecode_pars.recordings import (
    cutting,
    label_files,
    loading,
    preparation,
    readers,
    recipe,
    search,
)

__all__ = ["CARD", "CHANNELS", "cut", "load", "prepare", "recordings"]

#: Channels; in the files each is referenced to the opposite ear: C3A2 and C4A1.
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

#: The sample in the package, and its stages as in the file, in the order of the targets.
SAMPLE = Path(__file__).parent / "sample_data" / "sleep.npz"
SAMPLE_STAGES = ("W", "3", "4")

#: Name of the channel of all subjects, the usual derivation. Some may have C4-A1 instead, the
#: mirror image; it is not known which subjects.
SAMPLE_CHANNEL = "C3-A2"

WINDOW_SECONDS = 30.0
_NAME = re.compile(r"(ucddb\d{3})\.rec")

#: Stages of the AASM by code, which tells stages 3 and 4 apart; 6 is an artifact, and 7 or more is
#: indeterminate.
_CODES = {"0": "W", "1": "R", "2": "N1", "3": "N2", "4": "N3", "5": "N3"}

#: Volts of a signal whose unit is not named: with these it has the amplitude of EEG.
_UNIT = 100e-6


def recordings(path: str | Path, subjects: Iterable[str] | None = None) -> list[loading.Recording]:
    """Return the nights in a folder, without opening the files.

    Parameters
    ----------
    path : path
        Folder with files such as ``ucddb002.rec``, at any depth, and ``ucddb002_stage.txt`` beside
        them.
    subjects : iterable of str | None
        Subjects to return, for example ``["ucddb002"]``. None returns every subject in the folder.

    Returns
    -------
    list of Recording
        The description of a recording has ``subject`` (for example "ucddb002") and ``corpus``, but
        no ``split``. Each subject has one night.

    Raises
    ------
    FileNotFoundError
        When the folder contains no night.
    ValueError
        When two files have the same name.

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
    all_recordings = [
        loading.Recording(file, dict(subject=match[1], corpus="ucddb"))
        for file, match in search.find_named(path, _NAME, "no night of UCDDB", "ucddb002.rec")
    ]
    return loading.choose_subjects(all_recordings, subjects, path)


def prepare(recording: loading.Recording) -> mne.io.BaseRaw:
    """Read a night and prepare it: two channels, 128 Hz, high-pass 0.3 Hz, notch 50 Hz.

    Parameters
    ----------
    recording : Recording
        Recording, as returned by :func:`recordings`.

    Returns
    -------
    Raw
        Preloaded recording in volts, channels in the order of :data:`CHANNELS`. A signal without a
        unit is taken as 100 microvolts.

    Raises
    ------
    ValueError
        When the file is damaged, or lacks a channel.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> first = datasets.ucddb.recordings("ucddb/1.0.0")[0]  # doctest: +SKIP
    >>> raw = datasets.ucddb.prepare(first)  # doctest: +SKIP
    """
    # MNE opens EDF files by their ending only. Nothing is written beside the recordings.
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
    """Read a night and cut it into labeled windows.

    Parameters
    ----------
    recording : Recording
        Recording, as returned by :func:`recordings`.

    Returns
    -------
    EEGWindowsDataset | None
        Labeled windows without a description; None when the night has none.

    Raises
    ------
    ValueError
        When the file is damaged, or lacks a channel or its stages.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> first = datasets.ucddb.recordings("ucddb/1.0.0")[0]  # doctest: +SKIP
    >>> windows = datasets.ucddb.cut(first)  # doctest: +SKIP
    >>> datasets.ucddb.CARD["classes"]
    ('W', 'N1', 'N2', 'N3', 'R')
    """
    # A night without stages fails before its signals are read.
    scores = recording.file.with_name(f"{recording.file.stem}_stage.txt")
    if not scores.is_file():
        raise ValueError(f"it has no stages: {scores.name} does not exist.")
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
    """Return 30-second windows of wake and deep sleep, from real recordings in the package.

    Twelve subjects, one EEG channel at 128 Hz, and at most 60 windows each of wake and of the
    stages 3 and 4 of Rechtschaffen and Kales, spread over the night. The windows are a part of the
    St. Vincent's University Hospital / University College Dublin Sleep Apnea Database;
    :mod:`~braindecode_pars.datasets.ucddb` reads the whole.

    Parameters
    ----------
    subjects : iterable of str | None
        Subjects, among "ucddb002" to "ucddb024". If None, all subjects.
    classes : list of str | mapping of str to str | None
        Stages to classify, in the order of the targets, or the class of each stage. Windows of
        other stages are unlabeled: their target is -1, they are pretrained on and never scored. If
        None, "Sleep stage W", "Sleep stage 3" and "Sleep stage 4".

    Returns
    -------
    BaseConcatDataset of WindowsDataset
        Signals in volts. Without ``classes``, target 0 is wake, 1 is stage 3, 2 is stage 4.
        Descriptions have ``subject``. The metadata have ``position``, the number of the window in
        the night, and ``bad``, whether a later author judged it bad by eye: one in five windows of
        wake, one in forty of deep sleep.

    Raises
    ------
    FileNotFoundError
        When the sample does not have a subject.
    TypeError
        When ``subjects`` or ``classes`` is a string.
    ValueError
        When ``subjects`` or ``classes`` is empty, or a stage is not in the sample.

    Notes
    -----
    The channel is called C3-A2, the usual derivation, so that a model of the sample can stage sleep
    recordings. Some subjects may have C4-A1 instead, the mirror image: the files that the sample
    was made from contain one of the two and do not name it. To stage a recording that has C4-A1
    only, rename this channel to C3-A2.

    REM sleep and the stages 1 and 2 are missing, and a model of the sample never predicts them. The
    subjects are patients with suspected sleep apnea. Stages 3 and 4 together are today's N3, so a
    classifier of the two is a hard question of one stage. The unit of the recorder is not known:
    the signals are as if it were 100 microvolts. They clip in movements, and have steps of a tenth
    of a subject's median amplitude. 14 windows of wake are flat; all of them are ``bad``.

    License: ODC-BY 1.0. Cite https://doi.org/10.13026/C26C7D and Goldberger et al. 2000,
    Circulation 101(23).

    Examples
    --------
    >>> from braindecode_pars import as_sklearn, datasets
    >>> windows = datasets.sleep()
    >>> X, y, groups = as_sklearn(windows)
    >>> X[0].shape, len(set(groups)), sorted(set(y.tolist()))
    ((1, 3840), 12, [0, 1, 2])

    Stage 3 or stage 4, with wake for pretraining:

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
    for recording in loading.choose_subjects(sample_recordings, subjects, "The sample"):
        number = known.index(recording.subject)
        rows = sample["person"] == number
        # Differences compress better; their sum wraps around as they did.
        steps = np.cumsum(sample["differences"][rows], axis=1, dtype=np.int8)
        metadata = pd.DataFrame({name: sample[name][rows] for name in ("stage", "position", "bad")})
        metadata["stage"] = ("Sleep stage " + metadata["stage"]).map(class_of)
        volts = steps * sample["step"][number]
        parts.append(scored_epochs(volts, metadata, [*dict.fromkeys(class_of.values())], recording))
    return BaseConcatDataset(parts)


def scored_epochs(
    volts: np.ndarray, metadata: pd.DataFrame, stages: Sequence[str], recording: loading.Recording
) -> WindowsDataset:
    """Return scored windows of one channel at 128 Hz, which are not in a row.

    Parameters
    ----------
    volts : ndarray, shape (n_windows, n_times)
        Signals.
    metadata : DataFrame
        A row for each window, with ``stage``.
    stages : sequence of str
        Names of the targets 0, 1, ...; other stages have the target -1.
    recording : Recording
        The description of the windows.
    """
    targets = pd.Index(stages).get_indexer(metadata["stage"])
    info = mne.create_info([SAMPLE_CHANNEL], 128.0, "eeg")
    starts = metadata["position"].to_numpy() * volts.shape[1]
    events = np.column_stack([starts, np.zeros_like(starts), targets])
    crops = dict(
        i_window_in_trial=0, i_start_in_trial=starts, i_stop_in_trial=starts + volts.shape[1]
    )
    metadata = metadata.drop(columns="stage").assign(**crops, target=targets)
    epochs = mne.EpochsArray(
        volts[:, None], info, events, metadata=metadata.reset_index(drop=True), verbose="error"
    )
    return cutting.name_classes(WindowsDataset(epochs, recording.description), stages)
