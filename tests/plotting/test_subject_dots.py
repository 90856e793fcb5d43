"""Dots for each subject, method and number of training subjects."""

from __future__ import annotations

import numpy as np
import pytest

from braindecode_pars import plotting

VALUES = {
    "PARS": {"S1": 0.5, "S2": 0.7, "S3": np.nan},
    "scratch": {"S1": 0.3, "S2": 0.8, "S3": 0.1},
}


@pytest.fixture
def scores(make_scores):
    return make_scores(
        lambda row: (
            VALUES[row["method"]][row["subject"]]
            + 0.01 * row["n_train_subjects"]
            + 0.1 * (row["seed"] - 1)
        ),
        subject=["S1", "S2", "S3"],
        n_train_subjects=[8, 2],
    )


def dots(ax):
    return [line.get_ydata() for line in ax.lines if line.get_marker() != "None"]


def test_a_dot_is_the_mean_over_seeds_of_a_subject(scores):
    drawn = dots(plotting.subject_dots(scores))
    expected = [
        np.array(list(VALUES[method].values())) + 0.01 * n
        for n in (2, 8)
        for method in ("PARS", "scratch")
    ]
    np.testing.assert_allclose(drawn, expected)


def test_scores_of_scikit_learn_have_no_number_of_training_subjects(scores):
    own = scores[scores["n_train_subjects"] == 2]
    ax = plotting.subject_dots(own[["method", "subject", "metric", "value"]])
    np.testing.assert_allclose(dots(ax), dots(plotting.subject_dots(own)))
    assert [tick.get_text() for tick in ax.get_xticklabels()] == [""]
    assert ax.get_xlabel() == "(a dot is a held-out subject, a black bar the mean)"


def test_lines_join_the_dots_of_one_subject(scores):
    ax = plotting.subject_dots(scores)
    lines = [line.get_ydata() for line in ax.lines if line.get_marker() == "None"]
    np.testing.assert_allclose(lines[:3], np.array([[0.5, 0.3], [0.7, 0.8], [np.nan, 0.1]]) + 0.02)


def test_bars_are_means_over_the_subjects_that_have_a_value(scores):
    ax = plotting.subject_dots(scores)
    means = [bars.get_segments()[0][0, 1] for bars in ax.collections]
    np.testing.assert_allclose(means, [0.62, 0.42, 0.68, 0.48])


def test_groups_are_in_the_order_of_their_numbers_and_methods_are_named_once(scores):
    ax = plotting.subject_dots(scores, label="Cohen's kappa")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["2", "8"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["PARS", "scratch"]
    assert ax.get_ylabel() == "Cohen's kappa"


def test_pooled_scores_alone_are_refused(make_scores):
    with pytest.raises(ValueError, match="pooled"):
        plotting.subject_dots(make_scores(lambda row: 0.5))
