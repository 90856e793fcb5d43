"""Scorers of scikit-learn on the labelled part of windows that are predicted together."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import check_scoring

__all__ = ["score_of_labelled"]


class LabelledPart(ClassifierMixin, BaseEstimator):
    """A fitted classifier that predicts all windows and returns what it predicts for some.

    Parameters
    ----------
    classifier : LogitClassifier
        Fitted classifier.
    positions : ndarray of int
        Windows whose predictions are returned.
    """

    def __init__(self, classifier: Any, positions: np.ndarray):
        self.classifier = classifier
        self.positions = positions

    @property
    def classes_(self) -> np.ndarray:
        return self.classifier.classes_

    def fit(self, X: Any, y: Any = None) -> LabelledPart:
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.classifier.predict(X)[self.positions]

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.classifier.predict_proba(X)[self.positions]

    def decision_function(self, X: Any) -> np.ndarray:
        return self.classifier.decision_function(X)[self.positions]


def score_of_labelled(
    classifier: Any,
    windows: Any,
    positions: np.ndarray,
    y: np.ndarray,
    sample_weight: np.ndarray | None,
    scoring: Any,
) -> Any:
    """Return the score of a scorer, such as "roc_auc", on the labelled windows.

    Parameters
    ----------
    classifier : LogitClassifier
        Fitted classifier.
    windows : WindowSet
        All windows.
    positions : ndarray of int, shape (n_labelled,)
        Labelled windows among them.
    y, sample_weight : ndarray, shape (n_labelled,)
        Labels and weights of the labelled windows.
    scoring : str | callable | list of str
        As in :func:`sklearn.metrics.check_scoring`.
    """
    part = LabelledPart(classifier, positions)
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    return check_scoring(part, scoring)(part, windows, y, **weights)
