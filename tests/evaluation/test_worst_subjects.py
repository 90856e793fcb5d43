"""Scores on the worst subjects, against a plain computation."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from braindecode_pars.evaluation import worst_subjects


def rows_of(values, **columns):
    """Scores of one method: subject -> values of the seeds."""
    same = dict(protocol="compare", dataset="d", n_train_subjects=4, metric="kappa") | columns
    return [
        dict(same, subject=subject, seed=seed, value=value)
        for subject, of_seeds in values.items()
        for seed, value in enumerate(of_seeds)
    ]


def random_scores(n_subjects, seed=0, methods=("reference", "A", "B"), **columns):
    rng = np.random.default_rng(seed)
    rows = []
    for method in methods:
        values = {f"P{i:02d}": rng.random(3).tolist() for i in range(n_subjects)}
        rows += rows_of(values, method=method, **columns)
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("n_subjects", "proportion", "n_worst"),
    [(10, 0.2, 2), (11, 0.2, 3), (3, 0.1, 1), (25, 0.28, 7)],
)
def test_against_a_plain_computation(n_subjects, proportion, n_worst):
    scores = random_scores(n_subjects)
    result = worst_subjects(scores, "reference", proportion=proportion)
    means: dict = {}
    for row in scores.itertuples():
        means.setdefault((row.method, row.subject), []).append(row.value)
    means = {key: sum(values) / 3 for key, values in means.items()}
    subjects = sorted({subject for _, subject in means}, key=lambda s: means["reference", s])
    worst, others = subjects[:n_worst], subjects[n_worst:]
    assert result["method"].tolist() == ["reference", "A", "B"]
    for row in result.itertuples():
        assert (row.n_worst, row.n_others) == (n_worst, len(others))
        assert row.subjects == ", ".join(worst)
        assert row.worst == pytest.approx(sum(means[row.method, s] for s in worst) / n_worst)
        assert row.others == pytest.approx(sum(means[row.method, s] for s in others) / len(others))


def test_the_subjects_of_a_dataset_are_the_same_for_all_numbers_of_training_subjects():
    """Selected by the mean over numbers."""
    few = pd.DataFrame(rows_of({"a": [0.0], "b": [0.3], "c": [0.4]}, method="reference"))
    many = few.assign(n_train_subjects=8, value=[0.9, 0.1, 0.8])
    result = worst_subjects(pd.concat([few, many]), "reference")
    assert result["subjects"].tolist() == ["b", "b"]
    assert result["worst"].tolist() == [0.3, 0.1]


def test_pooled_scores_and_subjects_without_a_score_of_each_method_are_excluded():
    """The amount of labeled data, NaN here for one method, distinguishes rows."""
    scores = random_scores(6).assign(n_windows=np.nan, test_subject_data="none")
    pooled = scores[scores["subject"] == "P00"].assign(subject="all", value=-1.0)
    is_missing = (scores["method"] == "A") & (scores["subject"] == "P03")
    missing = scores[~is_missing | (scores["seed"] > 5)]
    result = worst_subjects(pd.concat([missing, pooled]), "reference", proportion=0.5)
    expected = worst_subjects(scores[scores["subject"] != "P03"], "reference", proportion=0.5)
    pd.testing.assert_frame_equal(result, expected)


def test_what_cannot_be_compared_is_refused():
    scores = random_scores(4)
    with pytest.raises(ValueError, match="tangent space"):
        worst_subjects(scores, "tangent space")
    with pytest.raises(ValueError, match="mae"):
        worst_subjects(scores.assign(metric="mae"), "reference")
    with pytest.raises(ValueError, match="dataset"):
        worst_subjects(pd.concat([scores, scores.assign(dataset="e")]), "reference")
    for proportion in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match="proportion"):
            worst_subjects(scores, "reference", proportion=proportion)
