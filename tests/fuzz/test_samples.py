"""Encoding of drawn signals. ``tests/signal_store/test_samples.py`` has fixed ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from support.encoded_samples import (
    assert_error_of_int16_is_half_a_step,
    assert_float32_is_exact,
)

pytestmark = pytest.mark.slow

#: Multiples of 1e-6; the range of float64 is much wider than that of EEG.
MILLIONTHS = st.integers(-(10**6), 10**6).map(lambda i: np.float32(i / 1e6))
SIGNALS = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=MILLIONTHS)


@settings(max_examples=60, deadline=None)
@given(SIGNALS, st.floats(1e-9, 1e3), MILLIONTHS)
def test_the_error_of_int16_is_at_most_half_a_step(signals, unit, drift):
    assert_error_of_int16_is_half_a_step(drift + unit * signals)


@settings(max_examples=25, deadline=None)
@given(SIGNALS)
def test_float32_is_exact(signals):
    assert_float32_is_exact(signals)
