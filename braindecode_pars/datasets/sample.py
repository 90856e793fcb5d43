"""A sample of real recordings in the package: rest and mental arithmetic of 24 subjects.

``recordings.npz`` has the samples, ``README.md`` their licence and origin, and ``make`` made them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import mne
import numpy as np
from braindecode.datasets import BaseConcatDataset

from braindecode_pars._common.channel_names import template_montage
from braindecode_pars._common.checks import checked, positive
from braindecode_pars.recordings.cutting import fixed_windows, name_classes
from braindecode_pars.recordings.loading import Recording, choose_subjects
from braindecode_pars.recordings.preparation import COMMON_CHANNELS
from braindecode_pars.recordings.preprocessing import remember_steps

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
    ("set_eeg_reference", dict(ref_channels=list(COMMON_CHANNELS))),
)

#: A step of the stored integers in volts.
STEP = 0.5e-6

FILE = Path(__file__).parent / "sample_data" / "recordings.npz"


@checked(window_seconds=positive(most=SECONDS))
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
    with np.load(FILE, allow_pickle=False) as archive:
        sample = {name: archive[name] for name in archive.files}
    known = sample["subjects"].tolist()
    recordings = (
        Recording(FILE, dict(subject=s, corpus="eegmat", condition=c, age=age))
        for s, age in zip(known, AGES, strict=True)
        for c in CONDITIONS
    )
    chosen = choose_subjects(recordings, subjects, "The sample")
    info = mne.create_info(sample["ch_names"].tolist(), float(sample["sfreq"]), "eeg")
    info.set_montage(template_montage())
    datasets = []
    for recording in chosen:
        target = CONDITIONS.index(recording.description["condition"])
        of_subject = sample["samples"][known.index(recording.subject)]
        raw = mne.io.RawArray(STEP * of_subject[target], info, verbose="error")
        remember_steps(raw, PREPARATION)
        windows = fixed_windows(raw, window_seconds, target)
        assert windows is not None  # the sample is minutes long
        windows.set_description(recording.description)
        datasets.append(name_classes(windows, CONDITIONS))
    return BaseConcatDataset(datasets)
