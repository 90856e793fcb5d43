"""Bars for each subject and method."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from braindecode_pars import plotting

VALUES = {
    ("PARS", "S1"): 0.5,
    ("PARS", "S2"): 0.7,
    ("PARS", "S3"): 0.4,
    ("PARS", "S4"): -0.1,
    ("scratch", "S1"): 0.3,
    ("scratch", "S2"): 0.8,
    ("scratch", "S3"): 0.4,
    ("scratch", "S4"): np.nan,
}


@pytest.fixture
def scores(make_scores):
    return make_scores(
        lambda row: VALUES[row["method"], row["subject"]],
        subject=["S1", "S2", "S3", "S4"],
        seed=[0, 1],
    )


def heights(ax):
    return sorted(bar.get_height() for bar in ax.patches)


def test_long_names_fit_above_the_figure(make_scores):
    names = [f"{name}, subject-centred (transductive)" for name in ("band power", "tangent space")]
    scores = make_scores(lambda row: 0.5, method=names, subject=["S1", "S2", "S3"], seed=[0])
    ax = plotting.paired_bars(scores)
    ax.figure.draw_without_rendering()  # warns when there is no room for the axes
    legend, figure = ax.get_legend().get_window_extent(), ax.figure.bbox
    assert figure.x0 <= legend.x0 <= legend.x1 <= figure.x1


def test_bars_have_the_height_of_the_values_and_undefined_ones_are_absent(scores):
    ax = plotting.paired_bars(scores, "kappa", "Cohen's kappa")
    means = [np.mean([0.5, 0.7, 0.4, -0.1]), 0.5]
    np.testing.assert_allclose(heights(ax), sorted([0.5, 0.7, 0.4, -0.1, 0.3, 0.8, 0.4, *means]))
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["PARS", "scratch"]
    ticks = [t.get_text() for t in ax.get_xticklabels()]
    assert ticks == ["S1", "S2", "S3", "S4", "mean ± SD"]
    assert ax.get_ylabel() == "Cohen's kappa"


def test_columns_that_are_not_needed_may_be_absent(scores):
    needed = scores[["method", "subject", "metric", "value"]]
    assert heights(plotting.paired_bars(needed)) == heights(plotting.paired_bars(scores))


def test_pooled_rows_are_ignored(scores):
    pooled = scores.iloc[[0]].assign(subject="all", value=0.99)
    assert 0.99 not in heights(plotting.paired_bars(pd.concat([scores, pooled])))
    with pytest.raises(ValueError, match="pooled"):
        plotting.paired_bars(pooled)


def test_the_spread_over_subjects_is_drawn_at_the_mean(scores):
    ax = plotting.paired_bars(scores)
    segment = ax.collections[0].get_segments()[-1]  # the others are over seeds
    values = [0.5, 0.7, 0.4, -0.1]
    spread = np.std(values, ddof=1)
    np.testing.assert_allclose(segment[:, 1], [np.mean(values) - spread, np.mean(values) + spread])


def test_bars_differ_without_colour(scores):
    ax = plotting.paired_bars(scores)
    by_color = {bar.get_facecolor(): bar.get_hatch() for bar in ax.patches}
    assert len(set(by_color.values())) == 2
