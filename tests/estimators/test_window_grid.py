"""Windows in between the windows of a grid, and their average, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from braindecode_pars.estimators.predict_raw import grid_average, window_starts


@pytest.mark.parametrize("overlap", [0.0, 0.25, 0.3, 0.5, 0.8, 0.99])
@pytest.mark.parametrize("n_times", [10, 19, 20, 57])
def test_starts(overlap, n_times):
    step = max(1, round((1 - overlap) * 10))
    expected = [s for s in range(n_times) if s + 10 <= n_times and (s % 10 == 0 or s % step == 0)]
    assert window_starts(n_times, 10, overlap).tolist() == expected


@pytest.mark.parametrize("overlap", [0.0, 0.3, 0.5, 0.8])
def test_average(overlap):
    rng = np.random.default_rng(0)
    starts = window_starts(57, 10, overlap)
    starts = starts[(starts < 22) | (starts >= 40)]  # a gap
    values = rng.random((len(starts), 3))
    found = grid_average(values, starts, 10, 5)
    for row in range(5):
        total, weight = np.zeros(3), 0
        for sample in range(row * 10, row * 10 + 10):
            for start, value in zip(starts, values, strict=True):
                if start <= sample < start + 10:
                    total += value
                    weight += 1
        if weight:
            np.testing.assert_allclose(found[row], total / weight)
        else:
            assert np.isnan(found[row]).all()


def test_without_overlap_the_values_stay_the_same():
    values = np.random.default_rng(0).random((4, 2)).astype("float32")
    np.testing.assert_array_equal(grid_average(values, np.arange(4) * 10, 10, 4), values)
