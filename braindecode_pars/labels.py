"""What labels decide: who is unlabelled, who is held out, what a class weighs."""

from __future__ import annotations

import math
import warnings
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import GroupShuffleSplit, StratifiedShuffleSplit
from sklearn.utils.class_weight import compute_class_weight
from torch import Tensor

from braindecode_pars.subjects import person
from braindecode_pars.window_set import WindowSet

__all__ = ["cross_entropy_weights", "drop_held_out", "hold_out", "labels_of", "split_unlabeled"]


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


def hold_out(windows: WindowSet, share: float, seed: int) -> tuple[WindowSet, WindowSet | None]:
    """Split internal validation windows off: by subject where known, else stratified by label.

    Parameters
    ----------
    windows : WindowSet
        With labels.
    share : float
        Of the subjects, or of the windows, in [0, 1); at least one.
    seed : int

    Returns
    -------
    train : WindowSet
    valid : WindowSet | None
        None for a share of 0, and where there are too few windows to hold any out.
    """
    if not 0 <= share < 1:
        raise ValueError(f"validation must be in [0, 1), got {share}.")
    if share == 0:
        return windows, None
    groups = windows.groups
    first = windows.source[0] if isinstance(windows.source, list) else None
    if groups is None and isinstance(first, tuple):
        warnings.warn(
            "A list of tuples tells neither subjects nor sampling rate, so the internal validation "
            "windows may be of the people trained on; fit on as_sklearn's X, or pass groups=.",
            stacklevel=3,
        )
    if groups is not None:  # as numbers, since subjects of mixed types cannot be ordered
        number_of = {subject: i for i, subject in enumerate(dict.fromkeys(groups.tolist()))}
        groups = np.array([number_of[subject] for subject in groups.tolist()])
    n_groups = 0 if groups is None else len(number_of)
    if n_groups == 1:
        warnings.warn(
            f"All windows are of one subject ({windows.groups[0]}), so the internal validation "
            "windows are of that subject too; validation=0 does without them.",
            stacklevel=3,
        )
    classes, counts = np.unique(windows.y, return_counts=True)
    if n_groups > 1:
        n_valid = min(max(1, round(share * n_groups)), n_groups - 1)
        # Several draws, because the first may take a class away from training.
        splitter = GroupShuffleSplit(n_splits=20, test_size=n_valid, random_state=seed)
    else:
        groups = None
        n_valid = math.ceil(share * len(windows))
        # Both parts need a window of every class.
        enough = min(n_valid, len(windows) - n_valid) >= len(classes) and counts.min() > 1
        if enough:
            splitter = StratifiedShuffleSplit(n_splits=1, test_size=n_valid, random_state=seed)
        else:
            splitter = None
    if splitter is not None:
        for train, valid in splitter.split(windows.indices, windows.y, groups):
            if len(set(windows.y[train])) == len(classes):
                return windows.take(train), windows.take(valid)
    warnings.warn(
        f"Validation windows cannot be held out of {len(windows)} without taking one of the "
        f"{len(classes)} classes away from training; training goes on without them.",
        stacklevel=3,
    )
    return windows, None


def drop_held_out(
    windows: WindowSet | None, train: WindowSet, valid: WindowSet | None
) -> WindowSet | None:
    """Drop windows that are held out, and all of people who are.

    Returns
    -------
    WindowSet | None
        None when nothing is left.
    """
    if windows is None or valid is None:
        return windows
    keep = np.ones(len(windows), dtype=bool)
    if _same_source(windows.source, valid.source):
        keep &= ~np.isin(windows.indices, valid.indices)
    if valid.groups is not None and windows.groups is not None:
        held_out = set(map(person, valid.groups.tolist())) - set(map(person, train.groups.tolist()))
        keep &= [person(subject) not in held_out for subject in windows.groups.tolist()]
    elif valid.groups is not None and set(valid.groups.tolist()) - set(train.groups.tolist()):
        warnings.warn(
            "The unlabelled windows do not tell their subjects, so people who are held out for "
            "internal validation may be pretrained on; give them as a dataset with 'subject' in "
            "its descriptions.",
            stacklevel=3,
        )
    return windows.take(np.flatnonzero(keep)) if keep.any() else None


def _same_source(one: Any, other: Any) -> bool:
    """Whether two sources are one and the same, also as views of one array's memory."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.shape == other.shape and one.ctypes.data == other.ctypes.data
    return one is other


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
