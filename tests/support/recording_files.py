"""Reader of a synthetic corpus, in a module that worker processes can import."""

from __future__ import annotations

import mne
import numpy as np

from braindecode_pars.recordings.cutting import fixed_windows
from braindecode_pars.recordings.loading import Recording


def read(recording: Recording):
    """Create windows from a text file with a seed and a duration in seconds.

    An empty file raises an OSError.
    """
    content = recording.file.read_text()
    if not content:
        raise OSError("it is empty")
    seed, seconds = map(int, content.split())
    signal = 1e-5 * np.random.default_rng(seed).normal(size=(2, 100 * seconds))
    raw = mne.io.RawArray(signal, mne.create_info(["C3", "C4"], 100.0, "eeg"), verbose="error")
    return fixed_windows(raw, 2.0, target=lambda start, stop: (start >= 4).astype(int))


def windows_of(dataset):
    """Return all windows of a dataset as one array."""
    return np.stack([dataset[i][0] for i in range(len(dataset))])
