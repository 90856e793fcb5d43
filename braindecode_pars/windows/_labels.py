"""Labels: which windows have one, and what each class weighs in the loss."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.utils.class_weight import compute_class_weight
from torch import Tensor

from braindecode_pars.windows._window_set import WindowSet

__all__ = ["cross_entropy_weights", "labels_of", "split_unlabeled"]


def labels_of(windows: WindowSet) -> np.ndarray:
    """The label of every window, shape (n_windows,).

    Raises
    ------
    ValueError
        When there are none, or some are None or NaN, or there are several for one window.
    """
    if windows.y is None:
        raise ValueError(
            "There are no labels: pass y, or window the recordings with a target. PARSEmbedder "
            "needs none."
        )
    if windows.y.ndim != 1:
        raise ValueError(
            f"Labels have shape {windows.y.shape}; a classifier needs one label for each window."
        )
    missing = np.flatnonzero(pd.isna(windows.y.astype(object)))
    if len(missing):
        raise ValueError(
            f"{len(missing)} of {len(windows)} windows have no label (window {missing[0]}, for "
            "example); label them, or mark them with unlabeled_label."
        )
    return windows.y


def split_unlabeled(
    windows: WindowSet, unlabeled_label: Any = -1
) -> tuple[WindowSet, WindowSet | None]:
    """Separate windows whose label says that they have none.

    Returns
    -------
    labeled : WindowSet
    unlabeled : WindowSet | None
        None when every window is labelled.

    Raises
    ------
    ValueError
        When there are no labels at all, or when -1 may be a class.
    """
    y = labels_of(windows)
    unlabeled = np.asarray([label == unlabeled_label for label in y], dtype=bool)
    if unlabeled.all():
        raise ValueError(
            f"All windows are unlabelled (y == {unlabeled_label!r}); PARSEmbedder pretrains "
            "without labels."
        )
    if unlabeled_label == -1 and set(y.tolist()) == {-1, 1}:
        raise ValueError(
            "Labels are exactly -1 and +1, but -1 means 'unlabelled'; set unlabeled_label to None "
            "if -1 is a class, or to the value that marks unlabelled windows."
        )
    if not unlabeled.any():
        return windows, None
    return windows.take(np.flatnonzero(~unlabeled)), windows.take(np.flatnonzero(unlabeled))


def cross_entropy_weights(
    codes: np.ndarray, classes: np.ndarray, class_weight: str | dict | None
) -> Tensor | None:
    """Weight of each class in the loss.

    Parameters
    ----------
    codes : ndarray of int, shape (n_windows,)
        Indices into ``classes`` of the training labels.
    classes : ndarray, shape (n_classes,)
    class_weight : "balanced" | dict | None
        ``"balanced"`` is n / (K n_c), with n, n_c and K those of the training labels (section
        2.5); a dict maps labels to weights, 1 where it says nothing.

    Returns
    -------
    Tensor, shape (n_classes,) | None
        1 for a class that has no training window.
    """
    if class_weight is None:
        return None
    present = np.unique(codes)
    if isinstance(class_weight, dict):
        code_of = {label: code for code, label in enumerate(classes.tolist())}
        unknown = [label for label in class_weight if label not in code_of]
        if unknown:
            raise ValueError(
                f"class_weight names {unknown[0]!r}, which is no label; the labels are "
                f"{', '.join(map(repr, code_of))}."
            )
        for label, weight in class_weight.items():
            if not isinstance(weight, Real) or not 0 < weight < float("inf"):
                raise ValueError(
                    f"class_weight of {label!r} must be a positive number, got {weight!r}; windows "
                    "of a class can be left out of the data."
                )
        class_weight = {
            code: class_weight.get(label, 1.0) for label, code in code_of.items() if code in present
        }
    elif class_weight != "balanced":
        raise ValueError(f"class_weight must be 'balanced', a dict or None, got {class_weight!r}.")
    weights = torch.ones(len(classes))
    weights[present] = torch.as_tensor(
        compute_class_weight(class_weight, classes=present, y=codes), dtype=torch.float32
    )
    return weights
