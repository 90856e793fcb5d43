"""Samples of real recordings in the package: mental arithmetic of 24 people, sleep of 12.

The folder ``sample_data`` has the samples, and ``README.md`` their licences and origins.
``docs/experiments/make_sample.py`` made them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import mne
import numpy as np
import pandas as pd
from braindecode.datasets import BaseConcatDataset, WindowsDataset

from braindecode_pars._common import channel_names, checks
from braindecode_pars.recordings import cutting, loading, preparation

#: Conditions, in the order of the targets.
CONDITIONS = ("rest", "arithmetic")

#: Age of each subject in years, in the table of the corpus.
AGES = (
    *(21, 18, 19, 17, 17, 16, 18, 18, 26, 16, 17, 18),
    *(17, 24, 17, 17, 17, 17, 17, 22, 17, 20, 19, 16),
)

#: Length of a recording in seconds.
SECONDS = 60.0

#: What ``make`` did with the recordings before the channels were picked.
PREPARATION = (
    ("filter", dict(l_freq=0.5, h_freq=45.0)),
    ("set_eeg_reference", dict(ref_channels=list(preparation.COMMON_CHANNELS))),
)

#: A step of the stored integers in volts.
STEP = 0.5e-6

FILE = Path(__file__).parent / "sample_data" / "recordings.npz"

#: Stages of the sample of sleep, in the order of the targets.
STAGES = ("W", "3", "4")

SLEEP_FILE = FILE.with_name("sleep.npz")


def mental_arithmetic(
    subjects: Iterable[str] | None = None, *, window_seconds: float = 10.0
) -> BaseConcatDataset:
    """Return windows of rest and mental arithmetic, from real recordings in the package.

    24 subjects, one minute of each condition, eight channels (F3, Fz, F4, T5, P3, Pz, P4, T6) at
    128 Hz, filtered to 0.5-45 Hz and with the average of 19 channels as reference. The channels are
    over frontal, parietal and posterior temporal cortex, which work in mental arithmetic, and away
    from the eyes and the muscles of jaw and temples. The recordings are a part of EEGMAT;
    :mod:`~braindecode_pars.datasets.eegmat` reads the whole.

    Parameters
    ----------
    subjects : iterable of str | None
        Subjects, among "Subject00" to "Subject23". None returns all.
    window_seconds : float
        Length of a window in seconds, at most 60. Windows are adjacent and do not overlap.

    Returns
    -------
    BaseConcatDataset of EEGWindowsDataset
        Signals in volts. Target 0 is rest, target 1 is arithmetic. Descriptions have ``subject``
        and ``condition``, as those of EEGMAT, and ``age`` in years.

    Raises
    ------
    FileNotFoundError
        When the sample does not have a subject.
    TypeError
        When ``subjects`` is a string, or ``window_seconds`` is not a number.
    ValueError
        When ``subjects`` is empty, or ``window_seconds`` is not positive or more than 60.

    Notes
    -----
    Rest is the minute before the end of its recording, arithmetic the first minute of its own: the
    two that are nearest in time. Rest still comes first in every subject, so a part of the
    difference may be an effect of time.

    Samples have steps of 0.5 microvolts. Licence: ODC-BY 1.0. Cite Zyma et al. 2019, Data 4(1), and
    Goldberger et al. 2000, Circulation 101(23).

    Examples
    --------
    >>> from braindecode_pars import as_sklearn, datasets
    >>> windows = datasets.mental_arithmetic()
    >>> len(windows), windows[0][0].shape
    (288, (8, 1280))
    >>> X, y, groups = as_sklearn(windows)
    >>> int(y.sum()), len(set(groups))
    (144, 24)
    """
    checks.check_parameters(
        locals(), dict(window_seconds=checks.positive(most=SECONDS)), "mental_arithmetic"
    )
    with np.load(FILE, allow_pickle=False) as archive:
        sample = {name: archive[name] for name in archive.files}
    known = sample["subjects"].tolist()
    recordings = (
        loading.Recording(FILE, dict(subject=s, corpus="eegmat", condition=c, age=age))
        for s, age in zip(known, AGES, strict=True)
        for c in CONDITIONS
    )
    chosen = loading.choose_subjects(recordings, subjects, "The sample")
    info = mne.create_info(sample["ch_names"].tolist(), float(sample["sfreq"]), "eeg")
    info.set_montage(channel_names.template_montage())
    datasets = []
    for recording in chosen:
        target = CONDITIONS.index(recording.description["condition"])
        of_subject = sample["samples"][known.index(recording.subject)]
        raw = mne.io.RawArray(STEP * of_subject[target], info, verbose="error")
        preparation.remember_steps(raw, PREPARATION)
        windows = cutting.fixed_windows(raw, window_seconds, target)
        assert windows is not None  # the sample is minutes long
        windows.set_description(recording.description)
        datasets.append(cutting.name_classes(windows, CONDITIONS))
    return BaseConcatDataset(datasets)


def sleep(subjects: Iterable[str] | None = None) -> BaseConcatDataset:
    """Return 30-second windows of wake and deep sleep, from real nights in the package.

    Twelve people, one channel (C3-A2 or C4-A1) at 128 Hz, and at most 60 windows each of wake and
    of the stages 3 and 4 of Rechtschaffen and Kales, spread over the night. The windows are a part
    of the St. Vincent's University Hospital / University College Dublin Sleep Apnea Database;
    :mod:`~braindecode_pars.datasets.ucddb` reads the whole.

    Parameters
    ----------
    subjects : iterable of str | None
        People, among "ucddb002" to "ucddb024". None returns all.

    Returns
    -------
    BaseConcatDataset of WindowsDataset
        Signals in volts. Target 0 is wake, 1 is stage 3, 2 is stage 4. Descriptions have
        ``subject``. The metadata have ``position``, the number of the window in the night, and
        ``bad``, whether a later author judged it bad by eye: one in five windows of wake, one in
        forty of deep sleep.

    Raises
    ------
    FileNotFoundError
        When the sample does not have a subject.
    TypeError
        When ``subjects`` is a string.
    ValueError
        When ``subjects`` is empty.

    Notes
    -----
    REM sleep and the stages 1 and 2 are missing. The people are patients with suspected sleep
    apnoea. Stages 3 and 4 together are today's N3, so a classifier of the two is a hard question
    of one stage. The unit of the recorder is not known: the signals are as if it were 100
    microvolts. They clip in movements, and have steps of a tenth of a person's median amplitude.
    14 windows of wake are flat; all of them are ``bad``.

    Licence: ODC-BY 1.0. Cite https://doi.org/10.13026/C26C7D and Goldberger et al. 2000,
    Circulation 101(23).

    Examples
    --------
    >>> from braindecode_pars import as_sklearn, datasets
    >>> windows = datasets.sleep()
    >>> X, y, groups = as_sklearn(windows)
    >>> X[0].shape, len(set(groups)), sorted(set(y.tolist()))
    ((1, 3840), 12, [0, 1, 2])
    """
    with np.load(SLEEP_FILE, allow_pickle=False) as archive:
        sample = {name: archive[name] for name in archive.files}
    known = sample["subjects"].tolist()
    people = (loading.Recording(SLEEP_FILE, dict(subject=s, corpus="ucddb")) for s in known)
    datasets = []
    for person in loading.choose_subjects(people, subjects, "The sample"):
        number = known.index(person.subject)
        own = sample["person"] == number
        # Differences compress better; their sum wraps around as they did.
        steps = np.cumsum(sample["differences"][own], axis=1, dtype=np.int8)
        metadata = pd.DataFrame({name: sample[name][own] for name in ("stage", "position", "bad")})
        datasets.append(scored_epochs(steps * sample["step"][number], metadata, STAGES, person))
    return BaseConcatDataset(datasets)


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
    info = mne.create_info(["EEG"], 128.0, "eeg")
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
