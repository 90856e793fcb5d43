"""The script that creates the sample dataset, applied to the recordings of the corpus."""

from __future__ import annotations

from pathlib import Path

import mne
import numpy as np
import pytest
from make_sample import CHANNELS, samples_of

from braindecode_pars.datasets.eegmat import SAMPLE


def plain_samples(folder: Path, subject: str) -> np.ndarray:
    """Return one minute of rest and of arithmetic, computed with MNE only, in steps of 0.5 µV."""
    parts = []
    for number, part in ((1, np.s_[:, -7680:]), (2, np.s_[:, :7680])):
        (file,) = folder.rglob(f"{subject}_{number}.edf")
        raw = mne.io.read_raw_edf(file, preload=True, verbose="error")
        raw.drop_channels([name for name in ("EEG A2-A1", "ECG ECG") if name in raw.ch_names])
        raw.resample(128).filter(0.5, 45, verbose="error")
        signals = raw.get_data() - raw.get_data().mean(axis=0)
        rows = [raw.ch_names.index(f"EEG {name}") for name in CHANNELS]
        parts.append(np.rint(signals[rows][part] / 0.5e-6))
    return np.stack(parts)


@pytest.mark.parametrize("subject", ["Subject00", "Subject08"])
def test_the_sample_dataset_agrees_with_the_recordings(eeg_folder, subject):
    with np.load(SAMPLE, allow_pickle=False) as archive:
        stored = archive["samples"][archive["subjects"].tolist().index(subject)].astype(int)
    (created,) = samples_of(eeg_folder, [subject])
    for expected in (created, plain_samples(eeg_folder, subject)):
        # Rounding of values between two steps depends on the processor.
        assert np.abs(stored - expected).max() <= 1
        assert (stored != expected).mean() < 1e-4
