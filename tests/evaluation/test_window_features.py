"""Baseline features read windows like the estimators: channels by name, no NaN, one shape."""

from __future__ import annotations

import mne
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from braindecode_pars.evaluation import LogBandPower, SpatialCovariance

FEATURES = [LogBandPower, SpatialCovariance]


@pytest.fixture
def epochs():
    signals = 1e-5 * np.random.default_rng(0).standard_normal((3, 3, 300))
    info = mne.create_info(["C3", "C4", "Pz"], 100.0, "eeg")
    return mne.EpochsArray(signals, info, verbose="error")


@pytest.mark.parametrize("features", FEATURES)
def test_windows_with_channel_names_need_a_fit(features, epochs):
    """Otherwise each call would pick its own channels, in the order of its windows."""
    swapped = epochs.copy().reorder_channels(["C4", "Pz", "C3"])
    for windows in (epochs, swapped):
        with pytest.raises(NotFittedError, match="not fitted"):
            features().transform(windows)
    fitted = features().fit(epochs)
    np.testing.assert_array_equal(fitted.transform(swapped), fitted.transform(epochs))
    with pytest.raises(ValueError, match="Channel C4"):
        fitted.transform(epochs.copy().drop_channels(["C4"]))


@pytest.mark.parametrize("features", FEATURES)
def test_channels_are_picked(features, epochs):
    picked = features(channels=["Pz", "C3"]).fit_transform(epochs)
    array = features(sfreq=100).transform(epochs.get_data()[:, [2, 0]])
    np.testing.assert_array_equal(picked, array)


@pytest.mark.parametrize("features", FEATURES)
def test_windows_without_features_raise(features, epochs):
    array = epochs.get_data()
    with pytest.raises(ValueError, match="no windows"):
        features(sfreq=100).transform([])
    with pytest.raises(ValueError, match=r"Window 1 .* \(3, 299\)"):
        features(sfreq=100).transform([array[0], array[1, :, 1:]])
    array[2, 1, 5] = np.nan
    with pytest.raises(ValueError, match=r"Window 2 .* channel 1"):
        features(sfreq=100).transform(array)
