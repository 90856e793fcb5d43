"""EEGMAT: published recordings and damaged files."""

from __future__ import annotations

import mne
import numpy as np
import pytest
from scipy.signal import welch

from braindecode_pars import as_sklearn
from braindecode_pars.datasets import eegmat
from braindecode_pars.recordings.preparation import COMMON_CHANNELS


def test_published_recordings(eeg_folder):
    windows = eegmat.load(eeg_folder / "eegmat", ["Subject00", "Subject01"], verbose=0)
    assert windows[0][0].shape == (19, 2000)
    assert windows.datasets[0].raw.ch_names == list(COMMON_CHANNELS)
    assert 1e-6 < windows[3][0].std() < 1e-4  # volts
    _, y, groups = as_sklearn(windows)
    assert set(groups) == {"Subject00", "Subject01"}
    # The number of windows is the number of whole 10 s in each recording.
    first_subject = y[groups == "Subject00"]
    seconds = [
        mne.io.read_raw_edf(eeg_folder / "eegmat" / f"Subject00_{i}.edf", verbose="error").times[-1]
        for i in (1, 2)
    ]
    assert np.bincount(first_subject).tolist() == [int(s // 10) for s in seconds]
    assert set(windows.description["condition"]) == {"rest", "arithmetic"}


def test_resampling_keeps_the_signal(eeg_folder):
    """Between 2 and 30 Hz, filters and resampling do not change the spectrum."""
    (rest, _) = eegmat.load(eeg_folder / "eegmat", ["Subject02"], verbose=0).datasets
    raw = mne.io.read_raw_edf(eeg_folder / "eegmat/Subject02_1.edf", verbose="error").load_data()
    (published,) = raw.copy().pick(["EEG O1"]).get_data()
    (loaded,) = rest.raw.copy().pick(["O1"]).get_data()
    f, before = welch(published, 500, nperseg=2000)
    g, after = welch(loaded, 200, nperseg=800)
    band = slice(8, 120)  # 2 to 30 Hz
    np.testing.assert_allclose(f[band], g[band])
    np.testing.assert_allclose(after[band], before[band], rtol=0.1)


def test_a_missing_channel_is_named_with_the_file(eeg_folder, tmp_path):
    raw = mne.io.read_raw_edf(eeg_folder / "eegmat/Subject00_2.edf", preload=True, verbose="error")
    raw.drop_channels(["EEG Pz"]).crop(0, 20)
    mne.export.export_raw(tmp_path / "Subject00_2.edf", raw, verbose="error")
    with pytest.raises(
        ValueError, match=r"Subject00_2\.edf cannot be used: channel Pz missing; the recording"
    ):
        eegmat.load(tmp_path, verbose=0)


def test_invalid_arguments_raise(tmp_path):
    (tmp_path / "Subject00_1.edf").touch()
    for name in ("sfreq", "window_seconds"):
        with pytest.raises(ValueError, match=f"{name} must be a positive number, got 0"):
            eegmat.load(tmp_path, **{name: 0})


def test_missing_recordings_and_subjects_raise(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"contains no recording .*Subject00_1\.edf"):
        eegmat.load(tmp_path)
    (tmp_path / "Subject00_1.edf").touch()
    with pytest.raises(FileNotFoundError, match="of subject Subject07; it has Subject00"):
        eegmat.load(tmp_path, ["Subject07"])
