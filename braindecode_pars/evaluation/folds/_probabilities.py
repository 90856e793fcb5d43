"""Predicted probabilities of a fold, as they are saved beside its predicted labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

__all__ = ["columns_of", "predicted_probabilities"]


def predicted_probabilities(fitted: BaseEstimator, windows: Any) -> tuple[list, dict[str, Any]]:
    """Predict the probability of each class, if the estimator can.

    Parameters
    ----------
    fitted : estimator
        Fitted classifier.
    windows : windows
        Test windows.

    Returns
    -------
    classes : list
        Labels of the columns; empty without probabilities.
    saved : dict
        ``columns``, a list of probabilities for each class; or ``missing``, the reason why there
        are none.

    Raises
    ------
    ValueError
        When the number of probabilities is not that of windows.
    """
    name = type(fitted).__name__
    if not hasattr(fitted, "predict_proba"):
        return [], {"missing": f"{name} has no predict_proba, and so no probabilities"}
    if not hasattr(fitted, "classes_"):
        return [], {"missing": f"{name} has no classes_ that name the columns of predict_proba"}
    classes = np.asarray(fitted.classes_).tolist()
    probabilities = np.asarray(fitted.predict_proba(windows))
    if probabilities.shape != (len(windows), len(classes)):
        shape = f"{probabilities.shape} for {len(windows)} windows and {len(classes)} classes"
        if len(probabilities) != len(windows):
            raise ValueError(f"predict_proba returns shape {shape}")
        # As a net with a unit for a class that no training subject has.
        return [], {"missing": f"predict_proba of {name} returns shape {shape}"}
    if not np.isfinite(probabilities).all():
        return [], {"missing": f"{name} predicts probabilities that are NaN or infinite"}
    # The shortest text of a float32 is half as long as that of the same number as a float64.
    short = probabilities.astype(str).astype(float)
    return classes, {"columns": short.T.tolist()}


def columns_of(saved: Mapping[str, Any]) -> np.ndarray:
    """Return saved probabilities, shape (n_windows, n_classes)."""
    return np.array(saved["columns"]).T
