"""Styles that differ in more than color, and the number of axes."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from braindecode_pars.plotting.style import axes_for, draw_cells, series_style


def test_pairs_of_color_and_marker_are_unique():
    styles = [series_style(i) for i in range(70)]
    assert len({(style["color"], style["marker"]) for style in styles}) == 70


def test_given_axes_are_counted():
    _, axes = plt.subplots(2, 2)
    assert list(axes_for(axes, 1, 4, (1, 1))) == list(axes.ravel())
    with pytest.raises(ValueError, match="3 axes, got 4"):
        axes_for(axes, 1, 3, (1, 1))


def test_text_can_be_read_on_every_color():
    def luminance(rgb):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb[:3]]
        return np.dot([0.2126, 0.7152, 0.0722], linear)

    _, ax = plt.subplots()
    values = np.linspace(0, 1, 50)[None]
    draw_cells(ax, values, values.round(2), ["a"], list(map(str, range(50))), label="share")
    for text, rgba in zip(ax.texts, ax.images[0].to_rgba(values)[0], strict=True):
        low, high = sorted([luminance(rgba), float(text.get_color() == "white")])
        assert (high + 0.05) / (low + 0.05) > 4.5
    assert {text.get_color() for text in ax.texts} == {"black", "white"}
