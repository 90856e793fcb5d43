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
    """Mean recall of the classes that occur among the true labels."""
    # torchmetrics' own mean counts the recall of an absent class as 0.
    recall = multiclass_recall(predicted, true, num_classes=num_classes, average="none")
    return recall[true.unique()].mean()


#: Metrics by name; each takes predicted and true class numbers.
METRICS: dict[str, Callable[..., torch.Tensor]] = {
    "kappa": multiclass_cohen_kappa,
    "balanced_accuracy": _balanced_accuracy,
    "accuracy": lambda *args, **kwargs: multiclass_accuracy(*args, average="micro", **kwargs),
    "f1": lambda *args, **kwargs: multiclass_f1_score(*args, average="macro", **kwargs),
}


def undefined_because(y_true: np.ndarray, metric: str) -> str | None:
    """Return the reason why a metric is undefined for these labels, or None if it is defined.

    Parameters
    ----------
    y_true : ndarray, shape (n_windows,)
        True labels.
    metric : str
        Name of the metric, as in :func:`~braindecode_pars.evaluation.score_predictions`.

    Returns
    -------
    str | None
        Reason, as a clause without a full stop.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.metrics import undefined_because
    >>> undefined_because(np.array(["W", "W"]), "kappa")
    "all 2 true labels are 'W', and kappa needs at least two classes"
    """
    if len(y_true) == 0:
        return "there are no labelled windows"
    classes = list(dict.fromkeys(np.asarray(y_true).tolist()))
    if metric == "kappa" and len(classes) == 1:
        return (
            f"all {len(y_true)} true labels are {classes[0]!r}, and kappa needs at least two "
            "classes"
        )
    return None


def score_predictions(y_true: np.ndarray, y_pred: np.ndarray, metric: str) -> float:
    """Score predicted labels.

    Parameters
    ----------
    y_true, y_pred : ndarray, shape (n_windows,)
        True and predicted labels, as numbers or text.
    metric : str
        Name of the metric: ``"kappa"`` (Cohen's), ``"balanced_accuracy"`` (mean recall of the
        classes that occur among the true labels), ``"accuracy"`` or ``"f1"`` (macro: mean over
        the classes that occur among true or predicted labels).

    Returns
    -------
    float
        Score. NaN where the metric is undefined: kappa when all true labels are of one class,
        and any metric without windows.
        :func:`~braindecode_pars.evaluation.metrics.undefined_because` returns the reason.

    Raises
    ------
    ValueError
        When the metric is unknown or the lengths differ.

    References
    ----------
    Detlefsen et al. 2022, TorchMetrics, Journal of Open Source Software 7(70). The paper and this
    package compute their metrics with TorchMetrics.

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
        raise ValueError(
            f"There are {len(y_true)} labels and {len(y_pred)} predictions; pass one prediction "
            "for each label."
        )
    if undefined_because(y_true, metric):
        return float("nan")
    classes, codes = np.unique(np.concatenate([y_true, y_pred]), return_inverse=True)
    true, predicted = torch.from_numpy(codes).split(len(y_true))
    # torchmetrics requires at least two classes, but there may be only one. One additional class
    # changes no score, because torchmetrics' means exclude classes that never occur.
    return METRICS[metric](predicted, true, num_classes=len(classes) + 1).item()
