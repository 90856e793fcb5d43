"""Encoding of drawn signals. ``tests/signal_store/test_samples.py`` has fixed ones."""

from __future__ import annotations

import numpy as np
import pytest
from support.encoded_samples import (
    assert_error_of_int16_is_half_a_step,
    assert_float32_is_exact,
)

pytestmark = [pytest.mark.slow, pytest.mark.nightly]


def test_errors_of_drawn_signals():
    """Shapes, units and drifts are drawn; half of the signals have few different values."""
    rng = np.random.default_rng(0)
    for _ in range(500):
        largest = rng.choice([1, 10**6])
        millionths = rng.integers(-largest, largest, rng.integers(1, 7, 2), endpoint=True)
        signals = np.float32(millionths / 1e6).astype(float)
        unit, drift = 10 ** rng.uniform(-9, 3), rng.choice([0, rng.uniform(-1, 1)])
        assert_error_of_int16_is_half_a_step(np.float32(drift) + unit * signals)
        assert_float32_is_exact(signals)
