"""Styles that differ in more than colour, and the number of axes."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from braindecode_pars.plotting.style import (
    HATCHES,
    LINES,
    MARKERS,
    axes_for,
    series_style,
    text_color,
)


def test_pairs_of_colour_and_marker_are_unique():
    styles = [series_style(i) for i in range(70)]
    assert len({(style["color"], style["marker"]) for style in styles}) == 70


def test_the_first_series_differ_without_colour():
    for differ in (MARKERS, LINES, HATCHES):
        assert len(set(differ[:5])) == 5


def test_given_axes_are_counted():
    _, axes = plt.subplots(2, 2)
    assert list(axes_for(axes, 1, 4, (1, 1))) == list(axes.ravel())
    with pytest.raises(ValueError, match="3 axes, got 4"):
        axes_for(axes, 1, 3, (1, 1))


def test_text_can_be_read_on_every_colour():
    def luminance(rgb):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb[:3]]
        return np.dot([0.2126, 0.7152, 0.0722], linear)

    text_colors = set()
    for rgba in mpl.colormaps["cividis"](np.linspace(0, 1, 50)):
        color = text_color(rgba)
        low, high = sorted([luminance(rgba), float(color == "white")])
        assert (high + 0.05) / (low + 0.05) > 4.5
        text_colors.add(color)
    assert text_colors == {"black", "white"}
