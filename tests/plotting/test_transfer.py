"""Dots for each method in a row for each dataset."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from braindecode_pars import plotting

BASE = {"TUAB": 0.8, "EESM17": 0.6}


@pytest.fixture
def scores(make_scores):
    return make_scores(
        lambda row: BASE[row["dataset"]] - 0.1 * (row["method"] == "scratch") + 0.02 * row["seed"],
        dataset=list(BASE),
    )


def test_a_dot_is_the_mean_and_its_bar_the_spread_over_seeds(scores):
    ax = plotting.transfer(scores)
    for container, method in zip(ax.containers, (0, 1), strict=True):
        line, _, [bars] = container.lines
        means = np.array([0.82, 0.62]) - 0.1 * method
        np.testing.assert_allclose(line.get_xdata(), means)
        np.testing.assert_array_equal(np.round(line.get_ydata()), [0, 1])
        ends = [sorted(segment[:, 0]) for segment in bars.get_segments()]
        np.testing.assert_allclose(ends, np.c_[means - 0.02, means + 0.02])
    assert "mean ± SD over 3 seeds" in ax.get_xlabel()


def test_each_seed_is_a_faint_dot_in_its_row(scores):
    ax = plotting.transfer(scores)
    dots = [c for c in ax.collections if len(c.get_offsets()) == 6]
    assert len(dots) == 2
    np.testing.assert_allclose(dots[0].get_offsets()[:, 0], [0.8, 0.82, 0.84, 0.6, 0.62, 0.64])
    np.testing.assert_array_equal(np.round(dots[0].get_offsets()[:, 1]), [0, 0, 0, 1, 1, 1])
    assert dots[0].get_alpha() < 0.6


def test_the_first_data_set_is_at_the_top(scores):
    ax = plotting.transfer(scores)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["TUAB", "EESM17"]
    bottom, top = ax.get_ylim()
    assert bottom > top


def test_one_data_set_may_be_pooled_and_another_not(make_scores, scores):
    single = make_scores(
        lambda row: {"S1": 0.3, "S2": 0.5}[row["subject"]], dataset="EESM17", subject=["S1", "S2"]
    )
    both = pd.concat([scores[scores["dataset"] == "TUAB"], single])
    line = plotting.transfer(both).containers[0].lines[0]
    np.testing.assert_allclose(line.get_xdata(), [0.82, 0.4])


def test_a_method_that_a_data_set_lacks_leaves_a_gap(scores):
    lacking = scores[(scores["dataset"] == "TUAB") | (scores["method"] == "PARS")]
    line = plotting.transfer(lacking).containers[1].lines[0]
    np.testing.assert_allclose(line.get_xdata(), [0.72, np.nan])


def test_one_seed_has_no_interval(scores):
    ax = plotting.transfer(scores[scores["seed"] == 0])
    assert "one seed" in ax.get_xlabel()
    assert not any(len(segment) for segment in ax.containers[0].lines[2][0].get_segments())
