"""Any score of scikit-learn, of the labelled windows only."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score, log_loss, make_scorer, roc_auc_score
from support.small_estimators import classifier

from braindecode_pars import as_sklearn

SCORES = ["accuracy", "balanced_accuracy", "neg_log_loss", "roc_auc", "f1_macro"]


@pytest.fixture(scope="module")
def awake(nights):
    """A classifier of awake and asleep, and labels of which some are missing."""
    X, y, _ = as_sklearn(nights)
    names = np.where(y == 0, "awake", "asleep").astype(object)
    clf = classifier(pretext=None, unlabeled_label="?").fit(X, names)
    names[::7] = "?"
    return clf, X, names, names != "?"


def expected(clf, X, y, weights=None):
    """Each score by its own function of scikit-learn."""
    p, predicted = clf.predict_proba(X).astype(float), clf.predict(X)
    p /= p.sum(axis=1, keepdims=True)
    y = y.astype(str)
    return {
        "accuracy": np.average(predicted == y, weights=weights),
        "balanced_accuracy": balanced_accuracy_score(y, predicted, sample_weight=weights),
        "neg_log_loss": -log_loss(y, p, sample_weight=weights),
        "roc_auc": roc_auc_score(y, p[:, 1], sample_weight=weights),
        "f1_macro": f1_score(y, predicted, average="macro", sample_weight=weights),
    }


@pytest.mark.parametrize("scoring", SCORES)
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_by_name(awake, scoring, weighted):
    clf, X, y, labelled = awake
    weights = np.linspace(0.5, 2, 96) if weighted else None
    kept = np.flatnonzero(labelled)
    value = expected(clf, X[kept], y[kept], None if weights is None else weights[kept])[scoring]
    assert clf.score(X, y, weights, scoring=scoring) == pytest.approx(value, rel=1e-5)


def test_several_scores_and_a_function(awake):
    clf, X, y, _ = awake
    several = clf.score(X, y, scoring=SCORES)
    assert several == {name: clf.score(X, y, scoring=name) for name in SCORES}
    assert (
        clf.score(X, y, scoring=make_scorer(balanced_accuracy_score))
        == several["balanced_accuracy"]
    )
    assert clf.score(X, y) == several["accuracy"]


def test_the_labels_of_a_dataset(nights):
    clf = classifier(pretext=None).fit(nights)
    y = as_sklearn(nights)[1]
    value = balanced_accuracy_score(y, clf.predict(nights))
    assert clf.score(nights, scoring="balanced_accuracy") == value
    assert 0 <= clf.score(nights, scoring="roc_auc_ovr") <= 1


def test_recentring_uses_the_unlabelled_windows_too(nights):
    X, y, _ = as_sklearn(nights)
    clf = classifier(pretext=None, recenter="subject", unlabeled_label=-1).fit(X, y % 2)
    half = np.where(np.arange(96) % 2, y % 2, -1)
    predicted = clf.predict(nights)[1::2]
    value = balanced_accuracy_score(half[1::2], predicted)
    assert clf.score(nights, half, scoring="balanced_accuracy") == value


def test_weights_of_unlabelled_windows_only(awake):
    clf, X, y, labelled = awake
    with pytest.raises(ValueError, match="All numbers in sample_weight are zero"):
        clf.score(X, y, 1.0 * ~labelled)


def test_an_unknown_score(awake):
    clf, X, y, _ = awake
    with pytest.raises(ValueError, match=r"scoring.*'kappa'"):
        clf.score(X, y, scoring="kappa")
