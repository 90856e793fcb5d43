"""Metrics compared with scikit-learn, scores of a fold, means over subjects or seeds."""

import json
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from braindecode_pars import as_sklearn
from braindecode_pars.evaluation import (
    LogBandPower,
    leave_one_subject_out,
    score_predictions,
    score_table,
    summarize,
)
from braindecode_pars.evaluation.folds import Fold, scored
from braindecode_pars.evaluation.metrics import saved_probabilities, undefined_because

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
    """Also if a class is never predicted, or has no window of the subject."""
    lacks = TRUE != "N1"
    for true, predicted in (
        (TRUE, PREDICTED),
        (TRUE, TRUE),
        (TRUE, np.full(200, "W")),
        (TRUE[lacks], PREDICTED[lacks]),
    ):
        result = score_predictions(true, predicted, name)
        with warnings.catch_warnings(action="ignore"):
            assert result == pytest.approx(reference(true, predicted), abs=1e-6)


@pytest.mark.parametrize(
    ("name", "true", "reason"),
    [
        ("kappa", "WWWW", "all 4 true labels are 'W'"),
        ("auroc", "WWWW", "all 4 true labels are 'W'"),
        ("auroc", "WNWA", "'N'"),  # a class that did not occur in training
        ("accuracy", "", "no labeled windows"),
    ],
)
def test_undefined_scores_have_a_reason(name, true, reason):
    true, probabilities = np.array(list(true)), np.full((len(true), 2), 0.5)
    for predicted in (true, np.roll(true, 1)):
        score = score_predictions(
            true, predicted, name, probabilities=probabilities, classes=["A", "W"]
        )
        assert np.isnan(score)
    assert reason in undefined_because(true, name, ["A", "W"])
    only = np.full(4, "W")
    assert score_predictions(only, only, "balanced_accuracy") == pytest.approx(1)


@pytest.mark.parametrize(
    ("name", "reference"),
    [("auroc", metrics.roc_auc_score), ("average_precision", metrics.average_precision_score)],
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
        result = score_predictions(TRUE[known], PREDICTED[known], name, **of_columns)
        assert result == pytest.approx(np.mean(of_classes), abs=1e-6)
    true, seizure = (TRUE == "W").astype(int), PROBABILITIES[:, 2]
    of_columns = dict(probabilities=np.stack([1 - seizure, seizure], axis=1), classes=[0, 1])
    result = score_predictions(true, true, name, **of_columns)
    assert result == pytest.approx(reference(true, seizure), abs=1e-6)


def with_row(values):
    return np.where(np.arange(200)[:, None] == 7, values, PROBABILITIES)


@pytest.mark.parametrize(
    ("probabilities", "classes", "message"),
    [
        (None, None, r"auroc.* argument probabilities"),
        (PROBABILITIES, ["N1", "W"], r"\(200, 2\).* \(200, 3\)"),
        (with_row([np.nan, np.nan, np.nan]), CLASSES, r"Row 7 .* nan"),
        (with_row([2.5, -1.5, 0]), CLASSES, r"Row 7 .*-1.5.*predict_proba"),  # logits, sum 1
        (with_row([0.9, 0.9, 0.9]), CLASSES, r"Row 7 .*0.9.*sum to 1"),
    ],
)
def test_invalid_probabilities_raise(probabilities, classes, message):
    with pytest.raises(ValueError, match=message):
        score_predictions(TRUE, PREDICTED, "auroc", probabilities=probabilities, classes=classes)


@pytest.mark.parametrize(
    ("true", "predicted", "message"),
    [
        ([0.0, np.nan], [0.0, 1.0], "1 of 2 rows of true labels"),
        (["W", "N1", "W"], ["W", "N1", None], r"1 of \d rows of predicted labels"),
        (TRUE, PROBABILITIES, r"shape \(200, 3\)"),
        ([0, 1], [0.2, 0.9], "continuous"),
        ([1, "1"], [1, "1"], "look the same"),
    ],
)
def test_invalid_labels_raise(true, predicted, message):
    with pytest.raises(ValueError, match=message):
        score_predictions(true, predicted, "kappa")


VALUES = [0.2, 0.4, 0.5, 0.7, np.nan, np.nan, 0.1, 0.5]
SCORES = pd.DataFrame(
    dict(subject=[1, 1, 2, 2, 3, 3, "all", "all"], seed=[0, 1] * 4, value=VALUES)
).assign(protocol="transfer", dataset="d", method="A", n_train_subjects=5, metric="kappa")


@pytest.mark.parametrize(("over", "means"), [("subjects", [0.3, 0.6]), ("seeds", [0.1, 0.5])])
def test_over_subjects_seeds_are_averaged_and_over_seeds_the_pooled_rows_count(over, means):
    summary = summarize(pd.concat([SCORES.assign(method="Z"), SCORES]), over=over)
    assert summary["method"].tolist() == ["Z", "A"]
    for row in summary.to_dict("records"):
        assert row["mean"] == pytest.approx(np.mean(means))
        assert row["sd"] == pytest.approx(np.std(means, ddof=1))
        assert (row["n"], row["n_train_subjects"], row["metric"]) == (2, 5, "kappa")
    is_pooled = SCORES["subject"] == "all"
    with pytest.raises(ValueError, match="over"):
        summarize(SCORES[is_pooled if over == "subjects" else ~is_pooled], over=over)


def test_a_single_value_has_no_deviation_in_a_table():
    one = SCORES[SCORES["subject"] == 2].assign(method="one")
    table = score_table(pd.concat([SCORES, one]))
    assert table["kappa"].tolist() == ["0.450 ± 0.212", "0.600"]


@pytest.mark.parametrize(("over", "row"), [("subjects", 0), ("seeds", -1)])
def test_a_score_with_two_values_is_refused(over, row):
    with pytest.raises(ValueError, match=r"same key: subject .*seed"):
        summarize(pd.concat([SCORES, SCORES.iloc[[row]].assign(value=0.99)]), over=over)
    summary = summarize(pd.concat([SCORES, SCORES.iloc[[row]]]), over=over)
    pd.testing.assert_frame_equal(summary, summarize(SCORES, over=over))


# Results of a fold --------------------------------------------------------------------------------

IS_ABNORMAL = RNG.integers(2, size=60)
ABNORMAL = RNG.random(60)
RESULT = dict(
    true=IS_ABNORMAL.tolist(),
    predicted=(ABNORMAL > 0.5).astype(int).tolist(),
    probabilities=dict(classes=[0, 1], columns=[(1 - ABNORMAL).tolist(), ABNORMAL.tolist()]),
    subjects=["7"] * 30 + ["8"] * 30,
    seen={},
    test_subject_data="none",
)
FOLD = Fold("p", "d", "A", 3, 0, LogisticRegression(), IS_ABNORMAL, IS_ABNORMAL, [7, 8])


@pytest.mark.parametrize("pooled", [False, True])
def test_every_subject_and_all_together(pooled):
    rows = scored(replace(FOLD, pooled=pooled), RESULT, ["accuracy", "auroc"], 2)
    expected = []
    for subject, windows in ((7, slice(30)), (8, slice(30, None)), ("all", slice(None))):
        true, predicted = IS_ABNORMAL[windows], ABNORMAL[windows]
        expected.append((subject, "accuracy", metrics.accuracy_score(true, predicted > 0.5)))
        expected.append((subject, "auroc", metrics.roc_auc_score(true, predicted)))
    expected = expected if pooled else expected[:4]
    assert [(row["subject"], row["metric"]) for row in rows] == [key[:2] for key in expected]
    assert [row["value"] for row in rows] == pytest.approx([value for *_, value in expected])


def test_a_fold_keeps_probabilities_and_later_metrics_use_them(short_nights, tmp_path):
    methods = {"A": make_pipeline(LogBandPower(), GaussianNB())}
    arguments = dict(test_subjects=[2], out=tmp_path, verbose=0)
    leave_one_subject_out(methods, short_nights, metrics=["kappa"], **arguments)
    (file,) = (tmp_path / "cache").glob("*_*.json")
    saved = json.loads(file.read_text())["probabilities"]
    before = file.stat().st_mtime_ns
    # The probabilities are those of the same fit outside of a protocol.
    X, y, groups = as_sklearn(short_nights)
    fitted = methods["A"].fit(X[np.flatnonzero(groups != 2)], y[groups != 2])
    expected = fitted.predict_proba(X[np.flatnonzero(groups == 2)])
    assert saved["classes"] == fitted.classes_.tolist()
    np.testing.assert_allclose(np.array(saved["columns"]).T, expected, rtol=1e-6)
    # Other metrics are computed from the saved fold, which is not run again.
    both = ["auroc", "average_precision"]
    scores = leave_one_subject_out(methods, short_nights, metrics=both, **arguments)
    assert file.stat().st_mtime_ns == before
    true = y[groups == 2]
    of_classes = [
        (metrics.roc_auc_score(true == label, p), metrics.average_precision_score(true == label, p))
        for label, p in zip(fitted.classes_, expected.T, strict=True)
        if label in true
    ]
    assert scores["value"].tolist() == pytest.approx(np.mean(of_classes, axis=0), abs=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_probabilities_are_saved_to_the_last_bit(dtype):
    values = np.random.default_rng(0).dirichlet([1, 1], 50).astype(dtype)
    model = SimpleNamespace(classes_=np.array(["a", "b"]))
    classes, columns = saved_probabilities(model, values, 50)
    assert classes == ["a", "b"]
    again = np.array(json.loads(json.dumps(columns))["columns"]).T
    assert np.array_equal(again.astype(dtype), values)


@pytest.mark.parametrize(
    ("probabilities", "classes", "reason"),
    [
        (None, [0, 1], "no predict_proba"),
        (np.array([[0.5, 0.5], [3.0, -2.0], [0.5, 0.5]]), [0, 1], "Row 1"),  # logits
        (np.ones((3, 2)) / 2, [], "classes_"),
        (np.ones((3, 5)) / 5, [0, 1], "(3, 5) for 3 windows and 2 classes"),
        (np.ones((2, 2)) / 2, [0, 1], "(2, 2) for 3 windows"),
    ],
)
def test_unusable_probabilities_have_a_reason(probabilities, classes, reason):
    names, saved = saved_probabilities(SimpleNamespace(classes_=classes), probabilities, 3)
    assert names == []
    assert reason in saved["missing"]
