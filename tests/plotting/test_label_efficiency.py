"""Curves over the number of training subjects."""

from __future__ import annotations

import numpy as np
import pytest

from braindecode_pars import plotting

SIZES = [10, 50, 657]


def value(row):
    slope = {"PARS": 0.1, "scratch": 0.05}[row["method"]]
    return slope * np.log(row["n_train_subjects"]) + 0.02 * row["seed"]


def test_a_curve_is_the_mean_over_seeds_and_the_band_their_spread(make_scores):
    ax = plotting.label_efficiency(make_scores(value, n_train_subjects=SIZES[::-1]))
    for line, band, slope in zip(ax.lines[:2], ax.collections, (0.1, 0.05), strict=True):
        mean = slope * np.log(SIZES) + 0.02
        np.testing.assert_array_equal(line.get_xdata(), SIZES)
        np.testing.assert_allclose(line.get_ydata(), mean)
        corners = band.get_paths()[0].vertices
        for x, y in zip(SIZES, mean, strict=True):
            at = corners[np.isclose(corners[:, 0], x), 1]
            np.testing.assert_allclose([at.min(), at.max()], [y - 0.02, y + 0.02])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["PARS", "scratch"]
    assert "mean ± SD over 3 seeds" in ax.get_ylabel()


def test_curves_differ_without_colour(make_scores):
    ax = plotting.label_efficiency(make_scores(value, n_train_subjects=SIZES))
    first, second, _ = ax.lines  # and the chance level
    assert first.get_marker() != second.get_marker()
    assert first.get_linestyle() != second.get_linestyle()


def test_subjects_are_averaged_where_nothing_is_pooled(make_scores):
    scores = make_scores(
        lambda row: {"S1": 0.2, "S2": 0.6}[row["subject"]],
        subject=["S1", "S2"],
        n_train_subjects=SIZES,
    )
    np.testing.assert_allclose(plotting.label_efficiency(scores).lines[0].get_ydata(), 0.4)


@pytest.mark.parametrize(
    ("sizes", "scale"), [(SIZES, "log"), ([10, 20, 30], "linear"), ([0, 100], "linear")]
)
def test_a_wide_range_of_sizes_is_drawn_logarithmically(make_scores, sizes, scale):
    ax = plotting.label_efficiency(make_scores(lambda row: 0.5, n_train_subjects=sizes))
    assert ax.get_xscale() == scale
    assert [text.get_text() for text in ax.get_xticklabels()] == [str(s) for s in sizes[::-1]]


def test_ticks_that_would_overlap_are_thinned(make_scores):
    sizes = [10, 100, 640, 650, 657]
    ax = plotting.label_efficiency(make_scores(lambda row: 0.5, n_train_subjects=sizes))
    assert sorted(ax.get_xticks()) == [10, 100, 657]


def test_a_method_without_any_defined_value_stays_in_the_legend(make_scores):
    scores = make_scores(lambda row: np.nan if row["method"] == "PARS" else 0.5)
    ax = plotting.label_efficiency(scores)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["PARS", "scratch"]
    assert len(ax.lines[0].get_xdata()) == 0
