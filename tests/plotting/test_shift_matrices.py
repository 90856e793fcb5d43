"""Shift matrices in chronological order, blank for patches without a masked position."""

from __future__ import annotations

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


MASKED = [2, 0, 4]
EXPECTED = SHIFTS.copy()
EXPECTED[[1, 3]] = EXPECTED[:, [1, 3]] = np.nan
EXPECTED = EXPECTED[np.ix_(BY_TIME, BY_TIME)]


@pytest.mark.parametrize("masked", [MASKED, np.array([True, False, True, False, True])])
def test_patches_are_sorted_and_those_not_masked_are_blank(masked):
    order = MASKED if isinstance(masked, list) else [0, 2, 4]
    target = SHIFTS[np.ix_(order, order)]
    axes = plotting.shift_matrices(0.5 * target, target, starts=STARTS, masked=masked)
    np.testing.assert_allclose(drawn(axes[0]), 0.5 * EXPECTED)
    np.testing.assert_allclose(drawn(axes[1]), EXPECTED)
    np.testing.assert_allclose(drawn(axes[2]), 0.5 * np.abs(EXPECTED))
    assert len(axes[3].collections[0].get_offsets()) == 9


def test_matrices_of_all_patches_are_blanked_too():
    axes = plotting.shift_matrices(SHIFTS, SHIFTS, starts=STARTS, masked=MASKED)
    np.testing.assert_allclose(drawn(axes[0]), EXPECTED)


def test_the_first_patches_are_the_masked_ones_by_default():
    first = SHIFTS[:3, :3]
    default = plotting.shift_matrices(first, first, starts=STARTS)
    explicit = plotting.shift_matrices(first, first, starts=STARTS, masked=[0, 1, 2])
    np.testing.assert_array_equal(drawn(default[0]), drawn(explicit[0]))


def test_axes_may_be_given():
    _, axes = plt.subplots(1, 4)
    assert list(plotting.shift_matrices(SHIFTS, SHIFTS, axes)) == list(axes)


@pytest.mark.parametrize(
    ("shape", "given", "message"),
    [
        ((2, 3, 3), {}, "pass the matrix of one window"),
        ((3, 3), dict(masked=[0]), "masked requires starts"),
        ((3, 3), dict(starts=STARTS, masked=[0, 0, 1]), "contains an index twice"),
        ((3, 3), dict(starts=STARTS, masked=[0, 1, 5]), "outside 0 to 4"),
        ((3, 3), dict(starts=STARTS, masked=[0, 1]), "3 rows; accepted are 2"),
        ((3, 3), dict(starts=STARTS, masked=[True]), "masked has 1 entries and starts has 5"),
        ((3, 3), dict(starts=STARTS[None]), "pass the starts of one window"),
        ((6, 6), dict(starts=STARTS), "6 rows"),
    ],
)
def test_invalid_input_raises(shape, given, message):
    with pytest.raises(ValueError, match=message):
        plotting.shift_matrices(np.zeros(shape), np.zeros(shape), **given)
    assert plt.get_fignums() == []
