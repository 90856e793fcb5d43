"""Metrics against those of scikit-learn; their means over subjects or seeds."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import metrics

from braindecode_pars.evaluation import score_predictions, summarize
from braindecode_pars.evaluation.metrics import undefined_because

RNG = np.random.default_rng(0)
CLASSES = ["N1", "N2", "W"]
TRUE = RNG.choice(["W", "N1", "N2"], 200)
PREDICTED = np.where(RNG.random(200) < 0.6, TRUE, RNG.choice(["W", "N1", "N2"], 200))
#: Better than chance, with ties.
PROBABILITIES = RNG.dirichlet([1, 1, 1], 200).round(2) + (TRUE[:, None] == CLASSES) / 5
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
    """Also where a class is never predicted, or the subject lacks it: a night may lack a stage."""
    lacks = TRUE != "N1"
    for true, predicted in (
        (TRUE, PREDICTED),
        (TRUE, TRUE),
        (TRUE, np.full(200, "W")),
        (TRUE[lacks], PREDICTED[lacks]),
    ):
        found = score_predictions(true, predicted, name)
        with warnings.catch_warnings(action="ignore"):
            assert found == pytest.approx(reference(true, predicted), abs=1e-6)


def test_of_one_class_only_kappa_is_not_defined():
    only = np.full(4, "W")
    assert score_predictions(only, only, "balanced_accuracy") == pytest.approx(1)
    for predicted in (only, np.array(["W", "N1", "W", "W"])):
        assert np.isnan(score_predictions(only, predicted, "kappa"))
    assert "all 4 true labels are 'W'" in undefined_because(only, "kappa")
    assert undefined_because(only, "balanced_accuracy") is None
    assert score_predictions(only, np.array(["W", "N1", "W", "W"]), "f1") == pytest.approx(3 / 7)

    empty = np.array([])
    assert np.isnan(score_predictions(empty, empty, "accuracy"))
    assert undefined_because(empty, "accuracy") == "there are no labelled windows"


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("auroc", metrics.roc_auc_score),
        ("average_precision", metrics.average_precision_score),
    ],
)
def test_scores_of_probabilities_against_scikit_learn(name, reference):
    """The mean over the classes that a subject has; of two classes, the second is positive."""
    of_columns = dict(probabilities=PROBABILITIES, classes=CLASSES)
    for labels in (CLASSES, ["N2", "W"]):
        known = np.isin(TRUE, labels)
        of_columns["probabilities"] = PROBABILITIES[known]
        of_classes = [
            reference(label == TRUE[known], PROBABILITIES[known, CLASSES.index(label)])
            for label in labels
        ]
        found = score_predictions(TRUE[known], PREDICTED[known], name, **of_columns)
        assert found == pytest.approx(np.mean(of_classes), abs=1e-6)
    true, seizure = (TRUE == "W").astype(int), PROBABILITIES[:, 2]
    of_columns = dict(probabilities=np.stack([1 - seizure, seizure], axis=1), classes=[0, 1])
    found = score_predictions(true, true, name, **of_columns)
    assert found == pytest.approx(reference(true, seizure), abs=1e-6)


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


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([np.nan, np.nan, np.nan], r"Row 7 .* nan"),
        ([np.inf, 0, 0], r"Row 7 .* inf"),
        ([2.5, -1.5, 0], r"Row 7 .*-1.5.*predict_proba"),  # logits, with the sum 1
        ([0.9, 0.9, 0.9], r"Row 7 .*0.9.*sum 1"),
    ],
)
def test_what_is_no_probability_is_refused(wrong, message):
    values = PROBABILITIES.copy()
    values[7] = wrong
    of_columns = dict(probabilities=values, classes=CLASSES)
    with pytest.raises(ValueError, match=message):
        score_predictions(TRUE, PREDICTED, "auroc", **of_columns)


def test_probabilities_of_a_float32_softmax_are_accepted():
    logits = torch.from_numpy(RNG.normal(0, 30, (200, 3))).float()
    values = torch.softmax(logits, dim=1).numpy()
    assert (values.sum(axis=1, dtype=float) != 1).any()
    found = score_predictions(TRUE, PREDICTED, "auroc", probabilities=values, classes=CLASSES)
    reference = metrics.roc_auc_score(TRUE, values.astype(float), multi_class="ovr")
    assert found == pytest.approx(reference, abs=1e-6)


@pytest.mark.parametrize(
    ("true", "predicted", "message"),
    [
        ([0.0, np.nan], [0.0, 1.0], r"true labels.*nan.*row 1"),
        (["W", "N1", "W"], ["W", "N1", None], r"predicted labels.*None.*row 2"),
        (TRUE, PROBABILITIES, r"shape \(200, 3\)"),
        ([0, 1], [0.2, 0.9], "continuous"),
        ([0, 1], np.ma.array([1, 1], mask=[True, False]), r"predicted labels.*None.*row 0"),
        ([1, "1"], [1, "1"], "look the same"),
        ([1, "W"], [1, "W"], "cannot be sorted"),
        ([{1}, {2}], [{1}, {2}], "hashable"),
    ],
)
def test_what_is_no_label_is_refused(true, predicted, message):
    with pytest.raises(ValueError, match=message):
        score_predictions(true, predicted, "kappa")


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


@pytest.mark.parametrize(("over", "means"), [("subjects", [0.3, 0.6]), ("seeds", [0.1, 0.5])])
def test_over_subjects_seeds_are_averaged_and_over_seeds_the_pooled_rows_count(over, means):
    summary = summarize(pd.concat([SCORES.assign(method="Z"), SCORES]), over=over)
    assert summary["method"].tolist() == ["Z", "A"]
    for row in summary.to_dict("records"):
        assert row["mean"] == pytest.approx(np.mean(means))
        assert row["sd"] == pytest.approx(np.std(means, ddof=1))
        assert (row["n"], row["n_train_subjects"], row["metric"]) == (2, 5, "kappa")


def test_missing_rows_raise():
    with pytest.raises(ValueError, match="'all'"):
        summarize(SCORES[SCORES["subject"] != "all"], over="seeds")
    with pytest.raises(ValueError, match="over"):
        summarize(SCORES[SCORES["subject"] == "all"])
    with pytest.raises(ValueError, match=r"over .* 'folds'"):
        summarize(SCORES, over="folds")
