"""Metrics against those of scikit-learn; their means over subjects or seeds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import metrics

from braindecode_pars.evaluation import score_predictions, summarize
from braindecode_pars.evaluation.metrics import undefined_because

RNG = np.random.default_rng(0)
TRUE = RNG.choice(["W", "N1", "N2"], 200)
PREDICTED = np.where(RNG.random(200) < 0.6, TRUE, RNG.choice(["W", "N1", "N2"], 200))
#: Better than chance, with ties.
PROBABILITIES = RNG.dirichlet([1, 1, 1], 200).round(2) + (TRUE[:, None] == ["N1", "N2", "W"]) / 5
PROBABILITIES /= PROBABILITIES.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("kappa", metrics.cohen_kappa_score),
        ("balanced_accuracy", metrics.balanced_accuracy_score),
        ("accuracy", metrics.accuracy_score),
        ("f1", lambda true, predicted: metrics.f1_score(true, predicted, average="macro")),
        ("f1_weighted", lambda *labels: metrics.f1_score(*labels, average="weighted")),
    ],
)
def test_against_scikit_learn(name, reference):
    found = score_predictions(TRUE, PREDICTED, name)
    assert found == pytest.approx(reference(TRUE, PREDICTED), abs=1e-6)


def test_perfect_and_one_sided_predictions():
    assert score_predictions(TRUE, TRUE, "kappa") == pytest.approx(1)
    constant = np.full(200, "W")
    assert score_predictions(TRUE, constant, "kappa") == pytest.approx(0, abs=1e-6)
    assert score_predictions(TRUE, constant, "balanced_accuracy") == pytest.approx(1 / 3)
    only = np.full(10, "W")
    assert score_predictions(only, only, "balanced_accuracy") == pytest.approx(1)


def test_a_class_that_a_subject_lacks_does_not_count():
    """This is common with one held-out subject: a night may lack a sleep stage."""
    true, predicted = np.array([0, 0, 1, 1]), np.array([0, 2, 1, 1])
    assert score_predictions(true, predicted, "balanced_accuracy") == pytest.approx(0.75)


def test_the_kappa_of_one_class_is_not_defined():
    only = np.full(4, "W")
    for predicted in (only, np.array(["W", "N1", "W", "W"])):
        assert np.isnan(score_predictions(only, predicted, "kappa"))
    assert "all 4 true labels are 'W'" in undefined_because(only, "kappa")
    assert undefined_because(only, "balanced_accuracy") is None
    assert score_predictions(only, np.array(["W", "N1", "W", "W"]), "f1") == pytest.approx(3 / 7)


def test_scores_without_windows_are_undefined():
    empty = np.array([])
    assert np.isnan(score_predictions(empty, empty, "accuracy"))
    assert undefined_because(empty, "accuracy") == "there are no labelled windows"


def area_by_pairs(positive, negative):
    """Share of pairs in the right order (Mann and Whitney); ties count one half."""
    wins = [(p > n) + (p == n) / 2 for p in positive for n in negative]
    return sum(wins) / len(wins)


def test_auroc_is_the_share_of_pairs_in_the_right_order():
    of_columns = dict(probabilities=PROBABILITIES, classes=["N1", "N2", "W"])
    areas = [
        area_by_pairs(PROBABILITIES[label == TRUE, c], PROBABILITIES[label != TRUE, c])
        for c, label in enumerate(["N1", "N2", "W"])
    ]
    found = score_predictions(TRUE, PREDICTED, "auroc", **of_columns)
    assert found == pytest.approx(np.mean(areas), abs=1e-6)
    reference = metrics.roc_auc_score(TRUE, PROBABILITIES, multi_class="ovr")
    assert found == pytest.approx(reference, abs=1e-6)


def test_average_precision_against_scikit_learn():
    of_columns = dict(probabilities=PROBABILITIES, classes=["N1", "N2", "W"])
    of_classes = [
        metrics.average_precision_score(label == TRUE, PROBABILITIES[:, c])
        for c, label in enumerate(["N1", "N2", "W"])
    ]
    found = score_predictions(TRUE, PREDICTED, "average_precision", **of_columns)
    assert found == pytest.approx(np.mean(of_classes), abs=1e-6)


def test_of_two_classes_the_second_is_the_positive_one():
    true, seizure = (TRUE == "W").astype(int), PROBABILITIES[:, 2]
    of_columns = dict(probabilities=np.stack([1 - seizure, seizure], axis=1), classes=[0, 1])
    for name, reference in (
        ("auroc", metrics.roc_auc_score),
        ("average_precision", metrics.average_precision_score),
    ):
        found = score_predictions(true, true, name, **of_columns)
        assert found == pytest.approx(reference(true, seizure), abs=1e-6)


def test_a_class_that_a_subject_lacks_does_not_count_in_auroc():
    known = TRUE != "N1"
    of_columns = dict(probabilities=PROBABILITIES[known], classes=["N1", "N2", "W"])
    areas = [
        area_by_pairs(PROBABILITIES[label == TRUE, c], PROBABILITIES[(label != TRUE) & known, c])
        for c, label in ((1, "N2"), (2, "W"))
    ]
    found = score_predictions(TRUE[known], PREDICTED[known], "auroc", **of_columns)
    assert found == pytest.approx(np.mean(areas), abs=1e-6)


@pytest.mark.parametrize("name", ["auroc", "average_precision"])
def test_where_scores_of_probabilities_are_undefined(name):
    only = np.full(4, "W")
    of_columns = dict(probabilities=np.full((4, 2), 0.5), classes=["N1", "W"])
    assert np.isnan(score_predictions(only, only, name, **of_columns))
    assert "two classes" in undefined_because(only, name, ["N1", "W"])
    # A class that did not occur in training
    true = np.array(["W", "N2", "W", "N1"])
    assert np.isnan(score_predictions(true, true, name, **of_columns))
    assert "'N2'" in undefined_because(true, name, ["N1", "W"])


def test_probabilities_of_another_shape_raise():
    with pytest.raises(ValueError, match=r"auroc .* probabilities="):
        score_predictions(TRUE, PREDICTED, "auroc")
    with pytest.raises(ValueError, match=r"\(200, 3\).* \(200, 2\)"):
        score_predictions(
            TRUE, PREDICTED, "auroc", probabilities=PROBABILITIES, classes=["N1", "W"]
        )


@pytest.mark.parametrize("name", ["auroc", "average_precision"])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([np.nan, np.nan, np.nan], r"Row 7 .* nan"),
        ([np.inf, 0, 0], r"Row 7 .* inf"),
        ([2.5, -1.5, 0], r"Row 7 .*-1.5.*predict_proba"),  # logits, with the sum 1
        ([0.9, 0.9, 0.9], r"Row 7 .*0.9.*sum 1"),
    ],
)
def test_what_is_no_probability_is_refused(name, wrong, message):
    values = PROBABILITIES.copy()
    values[7] = wrong
    of_columns = dict(probabilities=values, classes=["N1", "N2", "W"])
    with pytest.raises(ValueError, match=message):
        score_predictions(TRUE, PREDICTED, name, **of_columns)


def test_probabilities_of_a_float32_softmax_are_accepted():
    logits = torch.from_numpy(RNG.normal(0, 30, (200, 3))).float()
    values = torch.softmax(logits, dim=1).numpy()
    assert (values.sum(axis=1, dtype=float) != 1).any()
    found = score_predictions(
        TRUE, PREDICTED, "auroc", probabilities=values, classes=["N1", "N2", "W"]
    )
    reference = metrics.roc_auc_score(TRUE, values.astype(float), multi_class="ovr")
    assert found == pytest.approx(reference, abs=1e-6)


@pytest.mark.parametrize("name", ["kappa", "accuracy", "f1"])
def test_what_is_no_label_is_refused(name):
    with pytest.raises(ValueError, match=r"true labels.*nan.*row 1"):
        score_predictions([0.0, np.nan], [0.0, 1.0], name)
    with pytest.raises(ValueError, match=r"predicted labels.*None.*row 2"):
        score_predictions(["W", "N1", "W"], ["W", "N1", None], name)
    with pytest.raises(ValueError, match=r"shape \(200, 3\)"):
        score_predictions(TRUE, PROBABILITIES, name)
    with pytest.raises(ValueError, match="continuous"):
        score_predictions([0, 1], [0.2, 0.9], name)
    with pytest.raises(ValueError, match=r"predicted labels.*None.*row 0"):
        score_predictions([0, 1], np.ma.array([1, 1], mask=[True, False]), name)
    with pytest.raises(ValueError, match="look the same"):
        score_predictions([1, "1"], [1, "1"], name)
    with pytest.raises(ValueError, match="cannot be sorted"):
        score_predictions([1, "W"], [1, "W"], name)
    with pytest.raises(ValueError, match="hashable"):
        score_predictions([{1}, {2}], [{1}, {2}], name)


ROWS = [
    # subject, seed, value
    (1, 0, 0.2),
    (1, 1, 0.4),
    (2, 0, 0.5),
    (2, 1, 0.7),
    (3, 0, np.nan),
    (3, 1, np.nan),
    ("all", 0, 0.1),
    ("all", 1, 0.5),
]
SCORES = pd.DataFrame(ROWS, columns=["subject", "seed", "value"]).assign(
    protocol="transfer", dataset="d", method="A", n_train_subjects=5, metric="kappa"
)


def test_over_subjects_seeds_are_averaged_first():
    (row,) = summarize(SCORES).to_dict("records")
    assert row["mean"] == pytest.approx(0.45)
    assert row["sd"] == pytest.approx(np.std([0.3, 0.6], ddof=1))
    assert row["n"] == 2
    assert (row["method"], row["n_train_subjects"], row["metric"]) == ("A", 5, "kappa")


def test_over_seeds_the_pooled_rows_count():
    (row,) = summarize(SCORES, over="seeds").to_dict("records")
    assert row["mean"] == pytest.approx(0.3)
    assert row["sd"] == pytest.approx(np.std([0.1, 0.5], ddof=1))
    assert row["n"] == 2


def test_methods_keep_their_order():
    both = pd.concat([SCORES.assign(method="Z"), SCORES])
    assert summarize(both)["method"].tolist() == ["Z", "A"]


def test_missing_rows_raise():
    with pytest.raises(ValueError, match="'all'"):
        summarize(SCORES[SCORES["subject"] != "all"], over="seeds")
    with pytest.raises(ValueError, match="over"):
        summarize(SCORES[SCORES["subject"] == "all"])
    with pytest.raises(ValueError, match=r"over .* 'folds'"):
        summarize(SCORES, over="folds")
