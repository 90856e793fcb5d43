"""Log band power matches the power of known signals."""

from __future__ import annotations

import numpy as np
import pytest

from braindecode_pars.estimators.transformers import BANDS
from braindecode_pars.evaluation import LogBandPower


@pytest.mark.parametrize(
    ("band", "hz"),
    [
        *(("delta", 2), ("theta", 6), ("alpha", 10), ("sigma", 14), ("low beta", 18)),
        *(("high beta", 25), ("gamma", 40)),
    ],
)
def test_a_sine_fills_its_band(band, hz):
    times = np.arange(3000) / 100
    sine = np.sqrt(2) * 7e-6 * np.sin(2 * np.pi * hz * times)
    powers = LogBandPower(sfreq=100, power="absolute").transform(sine[None, None])[0]
    assert list(BANDS)[powers.argmax()] == band
    assert powers.max() == pytest.approx(np.log(49e-12), abs=0.05)  # volts squared


def plain_welch(signal: np.ndarray, sfreq: int) -> np.ndarray:
    """Return the mean of periodograms of 2 s, half overlapping, with Hann windows."""
    n = 2 * sfreq
    hann = np.sin(np.pi * np.arange(n) / n) ** 2
    density = np.zeros(n // 2 + 1)
    starts = range(0, len(signal) - n + 1, n // 2)
    for start in starts:
        segment = signal[start : start + n]
        spectrum = np.abs(np.fft.rfft((segment - segment.mean()) * hann)) ** 2
        spectrum[1:-1] *= 2  # negative frequencies
        density += spectrum / (sfreq * (hann**2).sum()) / len(starts)
    return density


def test_bands_against_a_plain_recomputation(nights):
    window = np.array(nights[4][0], dtype=float)
    absolute, relative = [], []
    for signal in window:
        density = plain_welch(signal, 100)  # in steps of 0.5 Hz
        powers = []
        for low, high in BANDS.values():
            values = density[int(2 * low) : int(2 * high) + 1]
            powers.append(0.5 * (values.sum() - (values[0] + values[-1]) / 2))
        absolute += powers
        relative += [power / sum(powers) for power in powers]
    for power, expected in (("absolute", absolute), ("relative", relative)):
        features = LogBandPower(sfreq=100, power=power).transform(window[None])
        np.testing.assert_allclose(features[0], np.log(expected), rtol=1e-6)
    both = LogBandPower(sfreq=100).transform(window[None]).reshape(3, 2, 7)
    np.testing.assert_allclose(both[:, 0].ravel(), np.log(absolute), rtol=1e-6)
    np.testing.assert_allclose(both[:, 1].ravel(), np.log(relative), rtol=1e-6)


def test_relative_power_does_not_depend_on_the_gain(nights):
    window = np.array(nights[4][0])[None]
    relative = LogBandPower(sfreq=100, power="relative")
    features = relative.transform(window)
    np.testing.assert_allclose(relative.transform(7e3 * window), features, rtol=1e-4)
    np.testing.assert_allclose(np.exp(features).reshape(3, 7).sum(axis=1), 1, rtol=1e-6)


def test_channels_are_independent_and_flat_channels_finite(nights):
    features = LogBandPower().fit_transform(nights)
    assert features.shape == (96, 3 * 14)
    window = np.array(nights[4][0])
    window[1] = 0
    flat = LogBandPower(sfreq=100).transform(window[None])
    assert np.isfinite(flat).all()
    np.testing.assert_allclose(flat[0, :14], features[4, :14], rtol=1e-6)
    np.testing.assert_allclose(flat[0, 21:28], np.log(1 / 7))  # relative power of the flat channel


def test_bands_beyond_half_the_sampling_rate_are_left_out():
    windows = np.random.default_rng(0).normal(size=(3, 2, 640))
    with pytest.warns(UserWarning, match=r"gamma.* 64 Hz"):
        low = LogBandPower(sfreq=64).fit(windows)
    assert list(low.bands_) == list(BANDS)[:6]
    assert low.transform(windows).shape == (3, 2 * 12)
    with pytest.warns(UserWarning, match="high beta and gamma"):
        LogBandPower(sfreq=50).fit(windows)
    with pytest.raises(ValueError, match=r"6 Hz .* 3 Hz"):
        LogBandPower(sfreq=6).fit(windows)
    # Windows at another rate have the bands of fit, or are refused.
    assert low.set_params(sfreq=128).transform(windows).shape == (3, 2 * 12)
    full = LogBandPower(sfreq=128).fit(windows)
    with pytest.raises(ValueError, match=r"64 Hz.* gamma \(30 to 45 Hz\)"):
        full.set_params(sfreq=64).transform(windows)


def test_the_sampling_rate_must_be_known():
    with pytest.raises(ValueError, match="sfreq"):
        LogBandPower().transform(np.zeros((2, 1, 300)))


@pytest.mark.parametrize("n_times", [1, 2, 20])
def test_windows_that_cannot_resolve_a_band_raise(n_times):
    windows = np.random.default_rng(0).normal(size=(3, 2, n_times))
    with pytest.raises(ValueError, match=r"delta \(0\.5 to 4 Hz\)"):
        LogBandPower(sfreq=100).transform(windows)
