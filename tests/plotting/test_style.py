"""Styles that differ in more than colour, and the number of axes."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest

from braindecode_pars.plotting.style import (
    HATCHES,
    LINES,
    MARKERS,
    N_STYLES,
    axes_for,
    series_style,
)


def test_pairs_of_colour_and_marker_are_unique():
    styles = [series_style(i) for i in range(N_STYLES)]
    assert len({(style["color"], style["marker"]) for style in styles}) == N_STYLES


def test_the_first_series_differ_without_colour():
    for differ in (MARKERS, LINES, HATCHES):
        assert len(set(differ[:5])) == 5


def test_given_axes_are_counted():
    _, axes = plt.subplots(2, 2)
    assert list(axes_for(axes, 1, 4, (1, 1))) == list(axes.ravel())
    with pytest.raises(ValueError, match="needs 3 axes, got 4"):
        axes_for(axes, 1, 3, (1, 1))
