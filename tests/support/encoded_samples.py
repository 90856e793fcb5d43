"""Checks of encoded samples, for drawn signals of any shape."""

from __future__ import annotations

import numpy as np

from braindecode_pars.signal_store.sources import encode


def decoded(stored: np.ndarray, scale: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """Decode with the documented formula, in double precision."""
    return offset[:, None].astype(float) + scale[:, None].astype(float) * stored.astype(float)


def assert_error_of_int16_is_half_a_step(signals: np.ndarray) -> None:
    """Check that the error is at most half a step, and that no step is larger than necessary."""
    stored, scale, offset, *_ = encode(signals, ["E"] * len(signals), "int16")
    assert stored.dtype == np.int16
    error = np.abs(decoded(stored, scale, offset) - signals).max(axis=1)
    largest = np.abs(signals).max(axis=1)
    # A constant channel is exact in single precision, in which it is read. The other channels have
    # the rounding errors of double precision.
    rounding = largest * np.where(scale > 0, 1e-15, 2.0**-24)
    assert (error <= scale.astype(float) / 2 + rounding).all()
    # No step is larger than the range requires, apart from rounding to single precision.
    reach = np.ptp(signals, axis=1) / 65534
    assert (scale <= reach * 1.000001 + largest * 2.0**-23 / 32767).all()


def assert_float32_is_exact(signals: np.ndarray) -> None:
    """Check that values of single precision are stored as they are."""
    stored, scale, offset, *_ = encode(signals, ["E"] * len(signals), "float32")
    np.testing.assert_array_equal(stored, signals)
    assert (scale == 1).all()
    assert (offset == 0).all()
