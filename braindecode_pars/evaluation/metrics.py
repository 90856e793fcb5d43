"""The paper's metrics, computed by torchmetrics."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torchmetrics.functional.classification import (
    multiclass_accuracy,
    multiclass_cohen_kappa,
    multiclass_f1_score,
    multiclass_recall,
)

__all__ = ["METRICS", "score_predictions"]


def _balanced_accuracy(
    predicted: torch.Tensor, true: torch.Tensor, num_classes: int
) -> torch.Tensor:
    """Mean recall of the classes that occur; torchmetrics' own mean counts absent ones as 0."""
    recall = multiclass_recall(predicted, true, num_classes=num_classes, average="none")
    return recall[true.unique()].mean()


#: Metrics on predicted and true class numbers, by name.
METRICS: dict[str, Callable[..., torch.Tensor]] = {
    "kappa": multiclass_cohen_kappa,
    "balanced_accuracy": _balanced_accuracy,
    "accuracy": lambda *args, **kwargs: multiclass_accuracy(*args, average="micro", **kwargs),
    "f1": lambda *args, **kwargs: multiclass_f1_score(*args, average="macro", **kwargs),
}


def score_predictions(y_true: np.ndarray, y_pred: np.ndarray, metric: str) -> float:
    """Score predicted labels.

    Parameters
    ----------
    y_true, y_pred : ndarray, shape (n_windows,)
        Labels of any kind.
    metric : str
        ``"kappa"`` (Cohen's), ``"balanced_accuracy"``, ``"accuracy"`` or ``"f1"`` (macro).

    Returns
    -------
    float
        NaN for the kappa of one label that was always predicted, where it is not defined.
    """
    if metric not in METRICS:
        raise ValueError(f"Unknown metric {metric!r}; known are {', '.join(METRICS)}.")
    if len(y_true) != len(y_pred):
        raise ValueError(f"There are {len(y_true)} labels and {len(y_pred)} predictions.")
    classes, codes = np.unique(np.concatenate([y_true, y_pred]), return_inverse=True)
    true, predicted = torch.from_numpy(codes).split(len(y_true))
    # One more class than there is: torchmetrics wants two even where one label is all there is,
    # and leaves classes that never occur out of its means.
    return METRICS[metric](predicted, true, num_classes=len(classes) + 1).item()
