"""Labels, probabilities and scores from logits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import get_scorer, roc_auc_score
from support.small_estimators import classifier

from braindecode_pars import as_sklearn
from braindecode_pars.estimators.windows_classifier import WindowsClassifier
from braindecode_pars.windows.convert import as_windows


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


def test_the_score_is_the_accuracy_on_labeled_windows():
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


def test_other_scores_are_those_of_scikit_learn(few_windows):
    """Of its scorers, which take labeled windows, and of its functions on predictions."""
    X, y, _ = as_sklearn(few_windows)
    y = np.where(y == 0, "awake", "asleep")
    clf = classifier(pretext=None).fit(X, y)
    weights = {"sample_weight": np.linspace(0.5, 2, 24)}
    assert get_scorer("accuracy")(clf, X, y, **weights) == clf.score(X, y, **weights)
    p = clf.predict_proba(X)[:, 1]
    expected = roc_auc_score(y, p, **weights)
    assert get_scorer("roc_auc")(clf, X, y, **weights) == pytest.approx(expected)
