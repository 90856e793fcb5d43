"""Metrics against those of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from braindecode_pars.evaluation import score_predictions
from braindecode_pars.evaluation.metrics import undefined_because

RNG = np.random.default_rng(0)
TRUE = RNG.choice(["W", "N1", "N2"], 200)
PREDICTED = np.where(RNG.random(200) < 0.6, TRUE, RNG.choice(["W", "N1", "N2"], 200))


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("kappa", metrics.cohen_kappa_score),
        ("balanced_accuracy", metrics.balanced_accuracy_score),
        ("accuracy", metrics.accuracy_score),
        ("f1", lambda true, predicted: metrics.f1_score(true, predicted, average="macro")),
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


def test_unknown_metric():
    with pytest.raises(ValueError, match="Unknown metric 'auc'; known are kappa"):
        score_predictions(TRUE, PREDICTED, "auc")


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
