"""The windows of a recording for a model, and their average on a grid, against plain loops."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from braindecode_pars.predictions.recording import (
    grid_average,
    usable_starts,
)


@pytest.mark.parametrize("overlap", [0.0, 0.3, 0.5, 0.8])
def test_average(overlap):
    rng = np.random.default_rng(0)
    starts = np.union1d(np.arange(0, 48, 10), np.arange(0, 48, round((1 - overlap) * 10)))
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


@pytest.mark.parametrize(("n_times", "last"), [(749, 250), (750, 500), (751, 500)])
def test_the_last_window_ends_at_most_at_the_end_of_the_recording(n_times, last):
    recording = SimpleNamespace(
        signals=np.zeros((2, n_times)), may_use=lambda starts, length: starts >= 0
    )
    assert usable_starts(recording, 250).tolist() == [*range(0, last + 1, 250)]
    overlapping = usable_starts(recording, 250, overlap=0.6)
    stop = n_times - 250 + 1
    assert overlapping.tolist() == sorted({*range(0, stop, 250), *range(0, stop, 100)})
