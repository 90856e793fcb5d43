"""torchmetrics' numbers under our names, against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from braindecode_pars.evaluation import score_predictions

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


def test_a_class_that_a_person_lacks_does_not_count():
    """Common when people are left out one at a time: nobody has every stage every night."""
    true, predicted = np.array([0, 0, 1, 1]), np.array([0, 2, 1, 1])
    assert score_predictions(true, predicted, "balanced_accuracy") == pytest.approx(0.75)


def test_unknown_metric():
    with pytest.raises(ValueError, match="Unknown metric 'auc'; known are kappa"):
        score_predictions(TRUE, PREDICTED, "auc")
