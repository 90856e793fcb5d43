"""Synthetic recordings to read; noise is enough, because speed does not depend on the values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import mne
import numpy as np
from braindecode.datasets import BaseConcatDataset, RawDataset

from braindecode_pars.signal_store import SignalStore

__all__ = ["N_TIMES", "fif_recordings", "synthetic_store"]

N_CHANS, SFREQ, SECONDS = 6, 200, 1800
#: Number of samples in a window of 30 s.
N_TIMES = 30 * SFREQ


def fif_recordings(folder: Path, n_recordings: int) -> BaseConcatDataset:
    """Write recordings of half an hour as FIF, and return them without loading their samples."""
    info = mne.create_info(N_CHANS, SFREQ, "eeg")
    rng = np.random.default_rng(0)
    datasets = []
    for subject in range(n_recordings):
        file = folder / f"{subject}_raw.fif"
        signals = 1e-5 * rng.standard_normal((N_CHANS, SFREQ * SECONDS))
        mne.io.RawArray(signals, info, verbose="error").save(file, verbose="error")
        raw = mne.io.read_raw_fif(file, preload=False, verbose="error")
        datasets.append(RawDataset(raw, dict(subject=subject)))
    return BaseConcatDataset(datasets)


@contextmanager
def synthetic_store(n_recordings: int = 4) -> Iterator[SignalStore]:
    """Make a store in a temporary folder."""
    with TemporaryDirectory(prefix="braindecode-pars-benchmark-") as folder:
        recordings = fif_recordings(Path(folder), n_recordings)
        yield SignalStore.create(Path(folder) / "store", recordings, verbose=0)
