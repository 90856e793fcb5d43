"""Encoding and decoding of samples, and the size of the errors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from support.encoded_samples import (
    assert_error_of_int16_is_half_a_step,
    assert_float32_is_exact,
    decoded,
)

from braindecode_pars.signal_store.index import DTYPES, SampleFile
from braindecode_pars.signal_store.sources import SkippedError, encode


def drawn_signals(n_times: int) -> np.ndarray:
    """Return six channels of multiples of 1e-6 up to 1, of which one is constant."""
    signals = np.random.default_rng(n_times).integers(-(10**6), 10**6, (6, n_times)) / 1e6
    signals[0] = signals[0, 0]
    return signals.astype("float32").astype(float)


@pytest.mark.parametrize("n_times", [1, 2, 6, 500])
def test_the_error_of_int16_is_at_most_half_a_step(n_times):
    """``tests/fuzz/test_samples.py`` draws more signals."""
    for unit in (1e-9, 1e-6, 1.0, 1e3):
        for drift in (-1.0, 0.0, 0.3):
            assert_error_of_int16_is_half_a_step(drift + unit * drawn_signals(n_times))


@pytest.mark.parametrize("n_times", [1, 2, 6, 500])
def test_float32_is_exact(n_times):
    assert_float32_is_exact(drawn_signals(n_times))


@pytest.mark.parametrize("dtype", ["int16", "float32"])
def test_a_constant_channel_is_exact(dtype):
    value = 0.123456789
    stored, scale, offset, *_ = encode(np.full((1, 7), value), ["C3"], dtype)
    np.testing.assert_array_equal(decoded(stored, scale, offset), np.float32(value))


def eeg(n_times=30_000):
    """EEG of 20 microvolts with slow waves and blinks."""
    rng = np.random.default_rng(0)
    slow = 60e-6 * np.sin(np.arange(n_times) / 70)
    blinks = np.zeros(n_times)
    blinks[::3000] = 500e-6
    return 20e-6 * rng.standard_normal(n_times) + slow + np.convolve(blinks, np.hanning(30), "same")


def test_one_artifact_does_not_take_the_resolution_of_the_signal():
    signal = eeg()
    with_artifact = signal.copy()
    with_artifact[1000:1050] = np.linspace(-1, 1, 50)
    signals = np.stack([signal, with_artifact])
    *encoded, n_clipped, coarse = encode(signals, ["C3", "C4"], "int16")
    assert n_clipped.tolist() == [0, 48]  # the two in the middle are within the range
    assert not coarse.any()
    found = decoded(*encoded)
    rest = np.r_[0:1000, 1050:30_000]
    assert np.abs(found - signal)[:, rest].max() < 20e-6 / 20
    # The artifact is still by far the largest value.
    assert np.abs(found[1]).max() > 10 * np.abs(signal).max()


@pytest.mark.parametrize("kind", ["drift", "offset", "seizure", "mostly flat", "spike"])
def test_an_ordinary_channel_spans_its_whole_range(kind):
    signal = eeg()
    if kind == "drift":  # 20 mV in five minutes, without a high-pass filter
        signal += np.linspace(0, 20e-3, len(signal))
    elif kind == "offset":
        signal += 0.3
    elif kind == "seizure":
        signal[5000:6000] *= 30
    elif kind == "mostly flat":
        signal[:20_000] = 0
    elif kind == "spike":
        signal[:] = 0
        signal[7] = 1
    stored, scale, _, n_clipped, coarse = encode(signal[None], ["C3"], "int16")
    assert n_clipped[0] == 0
    assert not coarse[0]
    assert stored.max() == 32767
    assert scale[0] == pytest.approx(np.ptp(signal) / 65534, rel=1e-5)


def test_a_saturated_amplifier_is_clipped():
    """A third of the recording is at the end of the amplifier's range, 187 mV."""
    signal = eeg()
    signal[10_000:20_000] = 0.187
    stored, scale, offset, n_clipped, coarse = encode(signal[None], ["C3"], "int16")
    assert n_clipped[0] == 10_000
    assert not coarse[0]
    error = np.abs(decoded(stored, scale, offset)[0] - signal)
    assert error[:10_000].max() < 20e-6 / 20


@pytest.mark.parametrize(("peak", "is_coarse"), [(4000, False), (5000, True)])
def test_the_spread_of_a_short_signal_is_its_median_deviation(peak, is_coarse):
    """It is 1.4826 here, and 65,534 steps of its twentieth are 4858."""
    signal = np.resize([-1.0, 0.0, 1.0], 999)
    signal[0] = peak
    assert encode(signal[None], ["C3"], "int16")[-1].tolist() == [is_coarse]


def test_a_signal_that_stays_coarse_is_reported():
    signal = eeg()
    signal[:3000] = np.resize([-1.0, 1.0], 3000)  # a tenth of the recording
    *_, n_clipped, coarse = encode(signal[None], ["C3"], "int16")
    assert (n_clipped[0], coarse[0]) == (0, True)
    *encoded, n_clipped, coarse = encode(signal[None], ["C3"], "float32")
    assert (n_clipped[0], coarse[0]) == (0, False)
    assert np.abs(decoded(*encoded)[0] - signal).max() < 1e-7


@pytest.mark.parametrize("dtype", ["int16", "float32"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_channels_that_are_not_finite_are_named(dtype, bad):
    signals = np.zeros((3, 10))
    signals[1, 4] = bad
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SkippedError, match="C4"):
            encode(signals, ["C3", "C4", "Cz"], dtype)


@pytest.mark.parametrize("dtype", ["int16", "float16"])  # float16 of version 0.2.0
@pytest.mark.parametrize("n_times", [1, 7, 60_000])  # many crops, some crops and one crop per block
def test_each_crop_has_its_own_scale_and_offset(tmp_path, n_times, dtype):
    values = np.random.default_rng(0).integers(-9, 9, 200_000).astype(DTYPES[dtype])
    values.tofile(tmp_path / "samples.bin")
    samples = SampleFile(tmp_path / "samples.bin", dtype, len(values))
    firsts = np.array([3, 0, 100_000, 200_000 - n_times, 3])
    scale, offset = np.arange(1, 6, dtype=np.float32), np.arange(5, dtype=np.float32)
    crops = samples.crops(firsts, n_times, scale, offset)
    assert crops.dtype == np.float32
    for i, first in enumerate(firsts):
        expected = values[first : first + n_times] * scale[i] + offset[i]
        np.testing.assert_array_equal(crops[i], expected)


@pytest.mark.parametrize("n_times", [1000, 100_000])
def test_eeg_beside_an_artifact_keeps_its_digits_or_is_reported(n_times):
    signals = 1e-8 * np.random.default_rng(0).standard_normal((1, n_times))
    signals[0, 17] = 1.0
    stored, scale, offset, _, coarse = encode(signals, ["C3"], "int16")
    error = np.delete(np.abs(decoded(stored, scale, offset) - signals)[0], 17).max()
    assert coarse[0] or error < 0.05 * 1e-8
