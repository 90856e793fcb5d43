"""What is kept of a fold: scores, probabilities and losses."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import accuracy_score, average_precision_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from braindecode_pars import as_sklearn
from braindecode_pars.evaluation import LogBandPower, leave_one_subject_out
from braindecode_pars.evaluation.folds import Fold, scored, warn_of_undefined
from braindecode_pars.evaluation.metrics import saved_probabilities

RNG = np.random.default_rng(0)
TRUE = RNG.integers(2, size=60)
ABNORMAL = RNG.random(60)
RESULT = dict(
    true=TRUE.tolist(),
    predicted=(ABNORMAL > 0.5).astype(int).tolist(),
    probabilities=dict(classes=[0, 1], columns=[(1 - ABNORMAL).tolist(), ABNORMAL.tolist()]),
    subjects=["7"] * 30 + ["8"] * 30,
    seen={},
    access="none",
)
FOLD = Fold("p", "d", "A", 3, 0, LogisticRegression(), TRUE, TRUE, [7, 8])


@pytest.mark.parametrize("pooled", [False, True])
def test_every_subject_and_all_together(pooled):
    rows = scored(replace(FOLD, pooled=pooled), RESULT, ["accuracy", "auroc"])["rows"]
    expected = []
    for subject, windows in ((7, slice(30)), (8, slice(30, None)), ("all", slice(None))):
        true, predicted = TRUE[windows], ABNORMAL[windows]
        expected.append((subject, "accuracy", accuracy_score(true, predicted > 0.5)))
        expected.append((subject, "auroc", roc_auc_score(true, predicted)))
    expected = expected if pooled else expected[:4]
    assert [(row["subject"], row["metric"]) for row in rows] == [key[:2] for key in expected]
    assert [row["value"] for row in rows] == pytest.approx([value for *_, value in expected])


def test_each_reason_is_said_once():
    undefined = [
        dict(metric=metric, subject=subject, reason=reason)
        for metric, reason in (("auroc", "no probabilities"), ("kappa", "one class"))
        for subject in (range(1, 8) if metric == "auroc" else [3, 3])
    ]
    text = "9 scores .*auroc of 5 and 2 more: no probabilities; kappa of 3: one class"
    with pytest.warns(UserWarning, match=text):
        warn_of_undefined(undefined)


def saved(model, n_windows):
    """What is saved of the probabilities that a model predicts."""
    predict = getattr(model, "predict_proba", None)
    found = None if predict is None else np.asarray(predict(range(n_windows)))
    return saved_probabilities(model, found, n_windows)


def band_power(classifier):
    return make_pipeline(LogBandPower(), StandardScaler(), classifier)


def test_a_fold_keeps_probabilities_and_later_metrics_use_them(nights, tmp_path):
    methods = {"A": band_power(LogisticRegression())}
    arguments = dict(test_subjects=[2], out=tmp_path, verbose=0)
    leave_one_subject_out(methods, nights, metrics=["kappa"], **arguments)
    (file,) = (tmp_path / "cache").glob("*_*.json")
    saved = json.loads(file.read_text())
    before = file.stat().st_mtime_ns
    # The probabilities are those of the same fit outside of a protocol.
    X, y, groups = as_sklearn(nights)
    fitted = methods["A"].fit(X[np.flatnonzero(groups != 2)], y[groups != 2])
    expected = fitted.predict_proba(X[np.flatnonzero(groups == 2)])
    assert saved["probabilities"]["classes"] == fitted.classes_.tolist()
    found = np.array(saved["probabilities"]["columns"]).T
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    # Other metrics are computed from the saved fold, which is not run again.
    metrics = ["auroc", "average_precision"]
    scores = leave_one_subject_out(methods, nights, metrics=metrics, **arguments)
    assert file.stat().st_mtime_ns == before
    true = y[groups == 2]
    of_classes = [
        (roc_auc_score(true == label, p), average_precision_score(true == label, p))
        for label, p in zip(fitted.classes_, expected.T, strict=True)
        if label in true
    ]
    assert scores["value"].tolist() == pytest.approx(np.mean(of_classes, axis=0), abs=1e-5)


def test_a_method_without_probabilities_has_a_reason_that_is_said_once(nights):
    methods = {"ridge": band_power(RidgeClassifier())}
    with pytest.warns(UserWarning, match="undefined") as caught:
        scores = leave_one_subject_out(methods, nights, metrics=["auroc", "accuracy"], verbose=0)
    values = scores.pivot(index="subject", columns="metric", values="value")
    assert values["auroc"].isna().all()
    assert values["accuracy"].notna().all()
    (message,) = [str(w.message) for w in caught if "undefined" in str(w.message)]
    assert message.startswith("4 scores ")
    assert message.count("Pipeline has no predict_proba") == 1


def test_probabilities_are_saved_to_the_last_bit():
    for dtype in (np.float32, np.float64):
        values = np.random.default_rng(0).dirichlet([1, 1], 50).astype(dtype)
        model = SimpleNamespace(classes_=np.array(["a", "b"]), predict_proba=lambda X, v=values: v)
        classes, columns = saved(model, 50)
        assert classes == ["a", "b"]
        again = np.array(json.loads(json.dumps(columns))["columns"]).T
        assert np.array_equal(again.astype(dtype), values)


@pytest.mark.parametrize(
    ("probabilities", "classes", "reason"),
    [
        (np.full((3, 2), np.nan), [0, 1], "Row 0 of the probabilities is nan, nan"),
        (np.array([[0.5, 0.5], [3.0, -2.0], [0.5, 0.5]]), [0, 1], "Row 1"),  # logits
        (np.ones((3, 2)) / 2, None, "classes_"),
    ],
)
def test_probabilities_that_are_of_no_use(probabilities, classes, reason):
    model = SimpleNamespace(predict_proba=lambda X: probabilities)
    if classes is not None:
        model.classes_ = classes
    assert reason in saved(model, 3)[1]["missing"]


def test_probabilities_of_another_number_of_windows_raise():
    model = SimpleNamespace(classes_=[0, 1], predict_proba=lambda X: np.ones((2, 2)) / 2)
    with pytest.raises(ValueError, match=r"\(2, 2\) .* 3 windows"):
        saved(model, 3)


def test_probabilities_of_another_number_of_classes_are_missing():
    model = SimpleNamespace(classes_=[0, 1], predict_proba=lambda X: np.ones((3, 5)) / 5)
    assert saved(model, 3)[0] == []
    assert "(3, 5) for 3 windows and 2 classes" in saved(model, 3)[1]["missing"]
