"""Labels, probabilities and scores from logits; any score of scikit-learn, of labelled windows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import balanced_accuracy_score, f1_score, log_loss, make_scorer, roc_auc_score
from support.small_estimators import classifier

from braindecode_pars import as_sklearn
from braindecode_pars.estimators.windows_classifier import WindowsClassifier
from braindecode_pars.windows.door import as_windows


class Fixed(WindowsClassifier):
    """Logits are the first samples of each window."""

    unlabeled_label = -1

    def __init__(self, classes):
        self.classes_ = np.asarray(classes)

    def fit(self, X, y=None):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def _outputs(self, X, groups=None):
        windows = as_windows(X)
        return torch.tensor(
            np.stack([windows[i][0, : len(self.classes_)] for i in range(len(windows))])
        )


WINDOWS = np.array([[[3.0, 0, 0]], [[0, 2, 1]], [[1, 2, 4]]])


def test_predictions_are_the_labels_of_the_largest_logits():
    clf = Fixed(["N", "R", "W"])
    assert clf.predict(WINDOWS).tolist() == ["N", "R", "W"]
    expected = np.exp(WINDOWS[:, 0]) / np.exp(WINDOWS[:, 0]).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(clf.predict_proba(WINDOWS), expected, rtol=1e-6)
    np.testing.assert_array_equal(clf.decision_function(WINDOWS), WINDOWS[:, 0])


def test_the_decision_between_two_classes_is_one_number():
    np.testing.assert_allclose(Fixed([0, 1]).decision_function(WINDOWS), [-3, 2, 1])


def test_the_score_is_the_accuracy_on_labelled_windows():
    clf = Fixed([0, 1, 2])
    assert clf.score(WINDOWS, [0, 1, 1]) == pytest.approx(2 / 3)
    assert clf.score(WINDOWS, [0, -1, 1]) == 0.5
    assert clf.score(WINDOWS, [0, 1, 1], sample_weight=[1, 1, 2]) == 0.5
    with pytest.warns(UserWarning, match="7"):
        assert clf.score(WINDOWS, [0, 1, 7]) == pytest.approx(2 / 3)


@pytest.mark.parametrize("weights", [[1, 1], [1, 1, 1, 1], [[1, 1, 1]], [1, 1, float("nan")]])
def test_weights_that_do_not_fit_the_windows_raise(weights):
    with pytest.raises(ValueError, match="sample_weight"):
        Fixed([0, 1, 2]).score(WINDOWS, [0, 1, 1], sample_weight=weights)


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


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_by_name(awake, weighted):
    clf, X, y, labelled = awake
    weights = np.linspace(0.5, 2, 96) if weighted else None
    kept = np.flatnonzero(labelled)
    values = expected(clf, X[kept], y[kept], None if weights is None else weights[kept])
    found = {name: clf.score(X, y, weights, scoring=name) for name in SCORES}
    assert found == pytest.approx(values, rel=1e-5)


def test_several_scores_and_a_function(awake):
    clf, X, y, _ = awake
    several = clf.score(X, y, scoring=SCORES)
    assert several == {name: clf.score(X, y, scoring=name) for name in SCORES}
    assert (
        clf.score(X, y, scoring=make_scorer(balanced_accuracy_score))
        == several["balanced_accuracy"]
    )
    assert clf.score(X, y) == several["accuracy"]
    own = clf.score(X, y, scoring=lambda clf, X, y: np.mean(clf.predict(X) == y))
    assert own == several["accuracy"]
    assert clf.score(X, y, scoring=lambda clf, X, y: len(X)) == np.sum(y != "?")


def test_the_labels_of_a_dataset(nights):
    clf = classifier(pretext=None).fit(nights)
    y = as_sklearn(nights)[1]
    value = balanced_accuracy_score(y, clf.predict(nights))
    assert clf.score(nights, scoring="balanced_accuracy") == value
    assert 0 <= clf.score(nights, scoring="roc_auc_ovr") <= 1


def test_weights_of_unlabelled_windows_only(awake):
    clf, X, y, labelled = awake
    with pytest.raises(ValueError, match="sample_weight"):
        clf.score(X, y, 1.0 * ~labelled)


def test_an_unknown_score(awake):
    clf, X, y, _ = awake
    with pytest.raises(ValueError, match="kappa"):
        clf.score(X, y, scoring="kappa")
