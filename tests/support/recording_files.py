"""Reader of a synthetic corpus, in a module that worker processes can import."""

from __future__ import annotations

from pathlib import Path

import mne
import numpy as np

from braindecode_pars.recordings.cutting import fixed_windows
from braindecode_pars.recordings.loading import Recording

SETTINGS = dict(corpus="synthetic", sfreq=100.0)


def read(recording: Recording, log: Path | None = None):
    """Read a text file with a seed and a duration in seconds; an empty file raises an error."""
    if log is not None:
        with log.open("a") as f:
            f.write(f"{recording.file.name}\n")
    content = recording.file.read_text()
    if not content:
        raise OSError("it is empty")
    seed, seconds = map(int, content.split())
    signal = 1e-5 * np.random.default_rng(seed).normal(size=(2, 100 * seconds))
    raw = mne.io.RawArray(signal, mne.create_info(["C3", "C4"], 100.0, "eeg"), verbose="error")
    return fixed_windows(raw, 2.0, target=lambda start, stop: (start >= 4).astype(int))


def windows_of(dataset):
    return np.stack([dataset[i][0] for i in range(len(dataset))])
