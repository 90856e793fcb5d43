"""Shift matrices in chronological order, blank for patches without a masked position."""

from __future__ import annotations

import re

import matplotlib.pyplot as plt
import numpy as np
import pytest

from braindecode_pars import plotting

STARTS = np.array([900, 100, 500, 300, 700])
SHIFTS = (STARTS[:, None] - STARTS[None]) / 1000
BY_TIME = [1, 3, 2, 4, 0]


def drawn(ax):
    return np.ma.filled(ax.images[0].get_array(), np.nan)


def test_matrices_without_starts_are_not_sorted():
    target = np.linspace(-1, 1, 5)[:, None] - np.linspace(-1, 1, 5)[None] / 2
    prediction = target + np.where(np.eye(5), 0.1, -0.1)
    axes = plotting.shift_matrices(prediction, target)
    np.testing.assert_array_equal(drawn(axes[0]), prediction)
    np.testing.assert_array_equal(drawn(axes[1]), target)
    np.testing.assert_allclose(drawn(axes[2]), 0.1)
    assert "RMSE 0.10" in axes[3].get_title()
    points = axes[3].collections[0].get_offsets()
    np.testing.assert_allclose(points, np.c_[target.ravel(), prediction.ravel()])


def test_patches_are_sorted_and_those_not_masked_are_blank():
    target = SHIFTS[:3, :3]  # the positions of the first three are masked
    expected = SHIFTS.copy()
    expected[3:] = expected[:, 3:] = np.nan
    expected = expected[np.ix_(BY_TIME, BY_TIME)]
    axes = plotting.shift_matrices(0.5 * target, target, starts=STARTS)
    np.testing.assert_allclose(drawn(axes[0]), 0.5 * expected)
    np.testing.assert_allclose(drawn(axes[1]), expected)
    np.testing.assert_allclose(drawn(axes[2]), 0.5 * np.abs(expected))
    assert len(axes[3].collections[0].get_offsets()) == 9


def test_axes_may_be_given():
    _, axes = plt.subplots(1, 4)
    assert list(plotting.shift_matrices(SHIFTS, SHIFTS, axes)) == list(axes)


@pytest.mark.parametrize(
    ("shape", "given"),
    [
        ((2, 3, 3), {}),
        ((2, 3), {}),
        ((3, 3), dict(starts=STARTS[None])),
        ((6, 6), dict(starts=STARTS)),
    ],
)
def test_invalid_input_raises(shape, given):
    with pytest.raises(ValueError, match=re.escape(str(given["starts"].shape if given else shape))):
        plotting.shift_matrices(np.zeros(shape), np.zeros(shape), **given)
    assert plt.get_fignums() == []
