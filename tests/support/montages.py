"""Synthetic recordings in which the class is encoded in one channel, and their windows."""

from __future__ import annotations

from collections.abc import Sequence

import mne
import numpy as np
import pandas as pd
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset

__all__ = ["NAMES", "concatenated", "recording", "windows_of"]

NAMES = ("C3", "Cz", "C4", "Pz")
SFREQ, N_TIMES = 100.0, 300


def recording(seed: int, n_windows: int = 40) -> tuple[mne.io.RawArray, np.ndarray]:
    """Return noise in volts, with 10 Hz in C3 (target 0) or C4 (target 1), and the targets."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n_windows) % 2)
    signals = rng.normal(size=(len(NAMES), n_windows, N_TIMES))
    tone = 3 * np.sin(2 * np.pi * 10 * np.arange(N_TIMES) / SFREQ)
    signals[0, y == 0] += tone
    signals[2, y == 1] += tone
    signals *= (
        1e-5 * np.array([1, 2, 3, 4])[:, None, None]
    )  # each channel has a different amplitude
    info = mne.create_info(list(NAMES), SFREQ, "eeg")
    return mne.io.RawArray(signals.reshape(len(NAMES), -1), info, verbose="error"), y


def windows_of(raw: mne.io.BaseRaw, y: Sequence[int], subject: int | str = 1) -> EEGWindowsDataset:
    """Create consecutive windows of a recording, with the targets ``y``."""
    start = np.arange(len(y)) * N_TIMES
    metadata = pd.DataFrame(
        {
            "i_window_in_trial": np.arange(len(y)),
            "i_start_in_trial": start,
            "i_stop_in_trial": start + N_TIMES,
            "target": y,
        }
    )
    return EEGWindowsDataset(raw, metadata, {"subject": subject})


def concatenated(*seeds: int) -> BaseConcatDataset:
    """Return windows of several recordings, each with a different subject."""
    return BaseConcatDataset([windows_of(*recording(seed), subject=seed) for seed in seeds])
