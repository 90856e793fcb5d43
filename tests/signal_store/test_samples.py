"""Samples there and back: what is lost, and what is not."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from braindecode_pars.signal_store._samples import DTYPES, NotFiniteError, SampleFile, encode

#: Of the size that microvolts and drifting electrodes have; not what doubles can hold at most.
MILLIONTHS = st.integers(-(10**6), 10**6).map(lambda millionths: np.float32(millionths / 1e6))
SIGNALS = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=20), elements=MILLIONTHS)


def decoded(stored, scale, offset):
    """As the documentation says, in double precision."""
    return offset[:, None].astype(float) + scale[:, None].astype(float) * stored.astype(float)


@settings(max_examples=150, deadline=None)
@given(SIGNALS, st.floats(1e-9, 1e3), MILLIONTHS)
def test_int16_is_off_by_half_a_step_at_most(signals, unit, drift):
    signals = drift + unit * signals
    stored, scale, offset = encode(signals, ["E"] * len(signals), "int16")
    assert stored.dtype == np.int16
    error = np.abs(decoded(stored, scale, offset) - signals).max(axis=1)
    largest = np.abs(signals).max(axis=1)
    # A channel of one value is exact in single precision, in which it is read; the arithmetic
    # above rounds to double precision.
    rounding = largest * np.where(scale > 0, 1e-15, 2.0**-24)
    assert (error <= scale.astype(float) / 2 + rounding).all()
    # And no step is larger than the range asks for, but for what single precision rounds.
    reach = np.ptp(signals, axis=1) / 65534
    assert (scale <= reach * 1.000001 + largest * 2.0**-23 / 32767).all()


@settings(max_examples=50, deadline=None)
@given(SIGNALS)
def test_float32_is_exact(signals):
    stored, scale, offset = encode(signals, ["E"] * len(signals), "float32")
    np.testing.assert_array_equal(stored, signals)
    assert (scale == 1).all()
    assert (offset == 0).all()


def test_float16_keeps_three_digits_of_volts():
    signals = 3e-6 * np.random.default_rng(0).standard_normal((2, 5000)) + 1e-3
    stored, scale, offset = encode(signals, ["C3", "C4"], "float16")
    assert np.abs(stored).max() < 10
    error = np.abs(decoded(stored, scale, offset) - signals)
    assert error.max() < 3e-6 * 5 / 1000


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_constant_channel_is_exact(dtype):
    value = 0.123456789
    stored, scale, offset = encode(np.full((1, 7), value), ["C3"], dtype)
    np.testing.assert_array_equal(decoded(stored, scale, offset), np.float32(value))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_what_is_not_finite_is_named(dtype, bad):
    signals = np.zeros((3, 10))
    signals[1, 4] = bad
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(NotFiniteError, match="channel C4 holds NaN or infinite samples"):
            encode(signals, ["C3", "C4", "Cz"], dtype)


def test_a_map_does_not_travel(tmp_path):
    np.arange(100, dtype="<i2").tofile(tmp_path / "samples.bin")
    samples = SampleFile(tmp_path / "samples.bin", "int16", 90)
    assert samples._map is None  # opening a store maps nothing yet
    np.testing.assert_array_equal(samples.flat, np.arange(90))
    assert samples.flat is samples.flat
    pickled = pickle.dumps(samples)
    assert len(pickled) < 500
    np.testing.assert_array_equal(pickle.loads(pickled).flat, samples.flat)
    with pytest.raises(ValueError, match="read-only"):
        samples.flat[0] = 1


@pytest.mark.parametrize("n_times", [1, 7, 60_000])  # many, some and one crop at a time
def test_crops_are_scaled_each_for_itself(tmp_path, n_times):
    values = np.random.default_rng(0).integers(-9, 9, 200_000).astype("<i2")
    values.tofile(tmp_path / "samples.bin")
    samples = SampleFile(tmp_path / "samples.bin", "int16", len(values))
    firsts = np.array([3, 0, 100_000, 200_000 - n_times, 3])
    scale, offset = np.arange(1, 6, dtype=np.float32), np.arange(5, dtype=np.float32)
    crops = samples.crops(firsts, n_times, scale, offset)
    assert crops.dtype == np.float32
    for i, first in enumerate(firsts):
        expected = values[first : first + n_times] * scale[i] + offset[i]
        np.testing.assert_array_equal(crops[i], expected)
