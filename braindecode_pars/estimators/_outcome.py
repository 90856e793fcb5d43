"""What fine-tuning has learned: warnings about its validation loss and its predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from braindecode_pars._warnings import quiet, warn_user
from braindecode_pars.training._learned import warn_of_validation
from braindecode_pars.windows._sample_weight import that_weigh
from braindecode_pars.windows._spread import spread_out
from braindecode_pars.windows._window_set import WindowSet

__all__ = ["warn_of_fine_tuning"]

#: Largest number of training windows that are predicted, unless the model recentres by subject.
_N_PREDICTED = 512


def warn_of_fine_tuning(estimator: Any, train: WindowSet, valid: WindowSet | None) -> None:
    """Warn when a classifier may have learned nothing, or never predicts one of its classes.

    Parameters
    ----------
    estimator : PARSClassifier | NetworkClassifier
        Classifier at the end of its ``fit``.
    train, valid : WindowSet, WindowSet | None
        Training and validation windows, with labels as indices into ``classes_``.
    """
    if valid is not None:
        valid = that_weigh(valid, "validation")
        weight = estimator.net_.criterion_.weight
        losses = [row["valid_loss"] for row in estimator.net_.history if "valid_loss" in row]
        warn_of_validation(losses, _chance_loss(train, valid, len(estimator.classes_), weight))
    _warn_of_absent_classes(estimator, train)


def _chance_loss(
    train: WindowSet, valid: WindowSet, n_classes: int, weight: Tensor | None
) -> float:
    """Return the validation loss of the weighted frequencies of the training labels."""
    of_class = np.ones(n_classes) if weight is None else weight.cpu().double().numpy()
    frequencies = of_class * np.bincount(train.y, _weights(train), minlength=n_classes)
    with np.errstate(divide="ignore"):  # a class without training windows
        losses = -np.log(frequencies / frequencies.sum())
    return float(np.average(losses[valid.y], weights=of_class[valid.y] * _weights(valid)))


def _weights(windows: WindowSet) -> np.ndarray:
    return np.ones(len(windows)) if windows.weights is None else windows.weights


def _warn_of_absent_classes(estimator: Any, train: WindowSet) -> None:
    """Warn of classes of training windows that the model predicts for none of them."""
    trained = {*train.y[_weights(train) > 0].tolist()}
    # Recentring by subject needs all windows of each subject.
    recentres = getattr(estimator, "recenter", None) is not None
    windows = train if recentres else train.take(_some_of_each(train.y))
    with quiet():  # fit has warned of the same windows
        predicted = estimator._logits(windows, None).argmax(dim=1)
    absent = sorted(trained - {*torch.unique(predicted).tolist()})
    if absent:
        names = ", ".join(estimator._class_texts[code] for code in absent)
        warn_user(
            f"The classifier predicts {names} for none of {len(windows)} training windows. Train "
            "for more epochs, or check the labels and class_weight.",
            ConvergenceWarning,
        )


def _some_of_each(y: np.ndarray) -> np.ndarray:
    """Return the positions of windows of each label, spread over all, in their order."""
    classes = np.unique(y)
    n_each = max(1, _N_PREDICTED // len(classes))
    positions = [np.flatnonzero(y == c) for c in classes]
    return np.sort(np.concatenate([of[spread_out(len(of), n_each)] for of in positions]))
