"""Resampling against MNE."""

from __future__ import annotations

import tracemalloc

import mne
import numpy as np
import pytest

from braindecode_pars.recordings.as_trained import resampled


@pytest.mark.parametrize("n_times", [3, 50, 99, 300, 1000, 1023, 1024, 25_601])
@pytest.mark.parametrize(
    ("old", "new"), [(256, 100), (200, 100), (100, 128), (127.3, 100), (64, 100)]
)
def test_it_is_the_resampling_of_mne(n_times, old, new):
    signal = 5000 + np.random.default_rng(0).standard_normal(n_times).cumsum()
    expected = mne.filter.resample(signal, new, old, npad="auto", pad="auto", verbose="error")
    np.testing.assert_allclose(
        resampled(signal, new, old), expected, rtol=0, atol=3e-6 * signal.std()
    )


@pytest.mark.parametrize(("old", "new"), [(256, 100), (128, 100), (100, 128)])
def test_it_takes_less_than_half_of_the_memory(old, new):
    signal = np.random.default_rng(0).standard_normal(2**18 - 300)
    peaks = []
    for resample in (resampled, mne.filter.resample):
        tracemalloc.start()
        resample(signal, new, old)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[0] < peaks[1] / 2
