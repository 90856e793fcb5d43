"""Labels of windows, and the weights of classes in the loss."""

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
    """Return the label of every window, shape (n_windows,).

    Raises
    ------
    ValueError
        When there are no labels, when a label is None or NaN, or when a window has several labels.
    """
    if windows.y is None:
        raise ValueError(
            "There are no labels: pass y, or cut the recordings into windows with a target. "
            "PARSEmbedder needs no labels."
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
    """Separate labelled from unlabelled windows.

    Parameters
    ----------
    windows : WindowSet
        Windows with labels.
    unlabeled_label : Any
        Label that marks a window as unlabelled.

    Returns
    -------
    labeled : WindowSet
        Windows with any other label.
    unlabeled : WindowSet | None
        Windows with ``unlabeled_label``; None when every window is labelled.

    Raises
    ------
    ValueError
        When no window is labelled, or when -1 may be a class.
    """
    y = labels_of(windows)
    # Compared one by one, because labels may have several types.
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
    """Return the weight of each class in the loss.

    Parameters
    ----------
    codes : ndarray of int, shape (n_windows,)
        Training labels, as indices into ``classes``.
    classes : ndarray, shape (n_classes,)
        All labels.
    class_weight : "balanced" | dict | None
        Rule for the weights. ``"balanced"`` gives class c the weight n / (K n_c), with n training
        windows, n_c of them of class c, and K classes among them (section 2.5). A dict maps labels
        to weights; labels that it does not contain have weight 1. None means no weights.

    Returns
    -------
    Tensor, shape (n_classes,) | None
        Weights; 1 for a class without training windows.

    Raises
    ------
    ValueError
        When ``class_weight`` is none of the above, contains a label that is not in ``classes``, or
        a weight that is not a positive number.
    """
    if class_weight is None:
        return None
    present = np.unique(codes)
    if isinstance(class_weight, dict):
        code_of = {label: code for code, label in enumerate(classes.tolist())}
        unknown = [label for label in class_weight if label not in code_of]
        if unknown:
            raise ValueError(
                f"class_weight contains {unknown[0]!r}, which is not a label; the labels are "
                f"{', '.join(map(repr, code_of))}."
            )
        for label, weight in class_weight.items():
            if not isinstance(weight, Real) or not 0 < weight < float("inf"):
                raise ValueError(
                    f"class_weight of {label!r} must be a positive number, got {weight!r}; to "
                    "ignore a class, remove its windows from the data."
                )
        # scikit-learn accepts only weights of classes that are in codes.
        class_weight = {
            code: class_weight.get(label, 1.0) for label, code in code_of.items() if code in present
        }
    elif class_weight != "balanced":
        raise ValueError(f"class_weight must be 'balanced', a dict or None, got {class_weight!r}.")
    # Weights of the classes in codes; scikit-learn's "balanced" is the formula of the paper.
    weights = torch.ones(len(classes))
    weights[present] = torch.as_tensor(
        compute_class_weight(class_weight, classes=present, y=codes), dtype=torch.float32
    )
    return weights
