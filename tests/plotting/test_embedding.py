"""Embedded windows as points with the colour and marker of their label."""

from __future__ import annotations

import numpy as np
import pytest

from braindecode_pars import plotting

POINTS = np.random.default_rng(0).normal(size=(140, 2))


def test_every_point_is_drawn_under_its_label():
    labels = np.array(["W", "N2", "R"])[np.arange(140) % 3]
    ax = plotting.embedding(POINTS, labels)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["N2", "R", "W"]
    for dots in ax.collections:
        np.testing.assert_array_equal(dots.get_offsets(), POINTS[labels == dots.get_label()])


def test_more_labels_than_colours_differ_in_their_markers():
    ax = plotting.embedding(POINTS, np.arange(140) % 70)
    styles = {
        (tuple(dots.get_facecolor()[0]), dots.get_paths()[0].vertices.tobytes())
        for dots in ax.collections
    }
    assert len(styles) == 70
    assert [dots.get_label() for dots in ax.collections][:11] == [str(i) for i in range(11)]


def test_labels_of_several_kinds_are_drawn():
    ax = plotting.embedding(POINTS[:3], np.array(["a", 1, None], object))
    assert [len(dots.get_offsets()) for dots in ax.collections] == [1, 1, 1]


@pytest.mark.parametrize(
    ("points", "labels", "message"),
    [
        (np.ones((5, 64)), np.ones(5), r"\(5, 64\)"),
        (np.ones(5), np.ones(5), r"\(5,\)"),
        (POINTS, np.ones(5), "140 points and 5 labels"),
        (np.ones((0, 2)), [], r"\(0, 2\)"),
        (POINTS, np.arange(140), "140 different labels.*70"),
    ],
)
def test_invalid_points_raise(points, labels, message):
    with pytest.raises(ValueError, match=message):
        plotting.embedding(points, labels)
