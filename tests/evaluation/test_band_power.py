"""Log band power matches the power of known signals."""

from __future__ import annotations

import mne
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from braindecode_pars.evaluation import LogBandPower
from braindecode_pars.evaluation.band_power import BANDS


@pytest.mark.parametrize(("band", "hz"), [("delta", 2), ("theta", 6), ("alpha", 10), ("sigma", 14)])
def test_a_sine_fills_its_band(band, hz):
    times = np.arange(3000) / 100
    sine = np.sqrt(2) * 7e-6 * np.sin(2 * np.pi * hz * times)
    powers = LogBandPower(sfreq=100, relative=False).transform(sine[None, None])[0]
    assert list(BANDS)[powers.argmax()] == band
    assert powers.max() == pytest.approx(np.log(49e-12), abs=0.05)  # volts squared


def test_relative_power_does_not_depend_on_the_gain(nights):
    window = np.array(nights[4][0])[None]
    features = LogBandPower(sfreq=100).transform(window)
    np.testing.assert_allclose(LogBandPower(sfreq=100).transform(7e3 * window), features, rtol=1e-4)
    np.testing.assert_allclose(np.exp(features).reshape(3, 5).sum(axis=1), 1, rtol=1e-6)


def test_channels_are_independent_and_flat_channels_finite(nights):
    features = LogBandPower().fit_transform(nights)
    assert features.shape == (96, 15)
    window = np.array(nights[4][0])
    window[1] = 0
    flat = LogBandPower(sfreq=100).transform(window[None])
    assert np.isfinite(flat).all()
    np.testing.assert_allclose(flat[0, :5], features[4, :5], rtol=1e-6)


def test_the_sampling_rate_must_be_known():
    with pytest.raises(ValueError, match=r"sampling rate of the windows is unknown; pass sfreq"):
        LogBandPower().transform(np.zeros((2, 1, 300)))


@pytest.mark.parametrize("n_times", [1, 2, 20])
def test_windows_that_cannot_resolve_a_band_raise(n_times):
    windows = np.random.default_rng(0).normal(size=(3, 2, n_times))
    with pytest.raises(ValueError, match=r"Segments of .* too little for delta \(0\.5 to 4 Hz\)"):
        LogBandPower(sfreq=100).transform(windows)
    with pytest.raises(ValueError, match="no windows"):
        LogBandPower(sfreq=100).transform([])


def test_windows_with_channel_names_need_a_fit():
    """Otherwise each call would pick its own channels, in the order of its windows."""
    rng = np.random.default_rng(0)
    info = mne.create_info(["C3", "C4"], 100.0, "eeg")
    epochs = mne.EpochsArray(1e-5 * rng.standard_normal((3, 2, 300)), info, verbose="error")
    swapped = epochs.copy().reorder_channels(["C4", "C3"])
    for windows in (epochs, swapped):
        with pytest.raises(NotFittedError, match="not fitted"):
            LogBandPower().transform(windows)
    fitted = LogBandPower().fit(epochs)
    np.testing.assert_array_equal(fitted.transform(swapped), fitted.transform(epochs))
