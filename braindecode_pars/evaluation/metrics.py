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

__all__ = ["METRICS", "score_predictions", "undefined_because"]


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


def undefined_because(y_true: np.ndarray, metric: str) -> str | None:
    """Why a metric says nothing about predictions of these labels; None where it does.

    Parameters
    ----------
    y_true : ndarray, shape (n_windows,)
        True labels.
    metric : str
        As in :func:`~braindecode_pars.evaluation.score_predictions`.

    Returns
    -------
    str | None
        Half a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.metrics import undefined_because
    >>> undefined_because(np.array(["W", "W"]), "kappa")
    "all 2 true labels are 'W', and chance agrees with one class as well as any prediction"
    """
    if len(y_true) == 0:
        return "there are no labelled windows"
    classes = list(dict.fromkeys(np.asarray(y_true).tolist()))
    if metric == "kappa" and len(classes) == 1:
        return (
            f"all {len(y_true)} true labels are {classes[0]!r}, and chance agrees with one class "
            "as well as any prediction"
        )
    return None


def score_predictions(y_true: np.ndarray, y_pred: np.ndarray, metric: str) -> float:
    """Score predicted labels.

    Parameters
    ----------
    y_true, y_pred : ndarray, shape (n_windows,)
        Labels of any kind.
    metric : str
        ``"kappa"`` (Cohen's), ``"balanced_accuracy"`` (mean recall of the classes that occur
        among the true labels), ``"accuracy"`` or ``"f1"`` (macro: mean over the classes that
        occur among true or predicted labels).

    Returns
    -------
    float
        NaN where the metric is not defined: the kappa of true labels of one class, and any
        metric without windows. :func:`~braindecode_pars.evaluation.metrics.undefined_because`
        says why.

    Raises
    ------
    ValueError
        When the metric is unknown or the lengths differ.

    References
    ----------
    Detlefsen et al. 2022, TorchMetrics, Journal of Open Source Software 7(70): the paper's
    metrics are computed by it, and so are these.

    Examples
    --------
    >>> from braindecode_pars.evaluation import score_predictions
    >>> true, predicted = ["W", "W", "W", "N2"], ["W", "W", "N2", "N2"]
    >>> {name: round(score_predictions(true, predicted, name), 3)
    ...  for name in ("kappa", "balanced_accuracy", "accuracy", "f1")}
    {'kappa': 0.5, 'balanced_accuracy': 0.833, 'accuracy': 0.75, 'f1': 0.733}
    """
    if metric not in METRICS:
        raise ValueError(f"Unknown metric {metric!r}; known are {', '.join(METRICS)}.")
    if len(y_true) != len(y_pred):
        raise ValueError(f"There are {len(y_true)} labels and {len(y_pred)} predictions.")
    if undefined_because(y_true, metric):
        return float("nan")
    classes, codes = np.unique(np.concatenate([y_true, y_pred]), return_inverse=True)
    true, predicted = torch.from_numpy(codes).split(len(y_true))
    # One more class than there is: torchmetrics wants two even where one label is all there is,
    # and leaves classes that never occur out of its means.
    return METRICS[metric](predicted, true, num_classes=len(classes) + 1).item()
