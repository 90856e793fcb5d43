"""Windows of subjects that differ in the numbers of recordings, windows, classes and labels.

In these data, unweighted and weighted means differ, as do statistics over recordings and over
windows, and over labeled windows and all windows. They would be equal in a balanced dataset.
"""

from __future__ import annotations

import mne
import numpy as np
from braindecode.datasets import BaseConcatDataset

from support.montages import N_TIMES, NAMES, SFREQ, windows_of

#: Number of windows of the classes 0 and 1 in each recording, by subject. P4 has one recording,
#: P1, P3 and P6 have a recording of a single window, and P2 has 8 windows of class 1.
RECORDINGS = {
    "P1": [(60, 6), (30, 3), (0, 1)],
    "P2": [(48, 5), (24, 3)],
    "P3": [(18, 2), (8, 1), (1, 0)],
    "P4": [(45, 5)],
    "P5": [(18, 2), (9, 1)],
    "P6": [(17, 2), (1, 0)],
}
#: In the first recording of P5, all windows of class 1 and half of class 0 are labeled; in the
#: second recording, no window is labeled.
PARTLY_LABELED = "P5"
UNLABELED = "P6"


def uneven_subjects(seed: int = 0) -> BaseConcatDataset:
    """Return windows of 3 s of six subjects, four channels at 100 Hz; class 1 has 10 Hz in C3.

    The target of unlabeled windows is -1. Amplitudes differ between subjects and recordings.
    """
    rng = np.random.default_rng(seed)
    info = mne.create_info([*NAMES], SFREQ, "eeg")
    tone = np.sin(2 * np.pi * 10 * np.arange(N_TIMES) / SFREQ)
    parts = []
    for subject, recordings in RECORDINGS.items():
        amplitudes = rng.uniform(5e-6, 4e-5, len(NAMES))
        for number, counts in enumerate(recordings):
            y = rng.permutation(np.repeat([0, 1], counts))
            signals = rng.standard_normal((len(NAMES), len(y), N_TIMES))
            signals[0, y == 1] += tone
            signals *= (amplitudes * rng.uniform(0.8, 1.2))[:, None, None]
            raw = mne.io.RawArray(signals.reshape(len(NAMES), -1), info, verbose="error")
            if subject == UNLABELED or (subject == PARTLY_LABELED and number):
                y[:] = -1
            elif subject == PARTLY_LABELED:
                y[np.flatnonzero(y == 0)[1::2]] = -1
            part = windows_of(raw, y, subject)
            part.set_description({"run": number})
            parts.append(part)
    return BaseConcatDataset(parts)
