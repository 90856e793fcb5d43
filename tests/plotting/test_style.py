"""Series that differ in more than colour, and axes that are counted."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest

from braindecode_pars.plotting._style import HATCHES, LINES, MARKERS, N_LOOKS, axes_for, look


def test_no_pair_of_colour_and_marker_comes_twice():
    assert len({(look(i)["color"], look(i)["marker"]) for i in range(N_LOOKS)}) == N_LOOKS


def test_the_first_series_differ_without_colour():
    for differ in (MARKERS, LINES, HATCHES):
        assert len(set(differ[:5])) == 5


def test_given_axes_are_counted():
    _, axes = plt.subplots(2, 2)
    assert list(axes_for(axes, 1, 4, (1, 1))) == list(axes.ravel())
    with pytest.raises(ValueError, match="needs 3 axes, 4 came"):
        axes_for(axes, 1, 3, (1, 1))
