"""Labels and targets of windows, the weights of classes, and those of windows in scores."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from itertools import combinations
from numbers import Number, Real
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_non_negative
from torch import Tensor

from braindecode_pars._common.checks import positive, warn_user
from braindecode_pars.windows.table import Windows, as_column

#: Default of ``unlabeled_label``: -1 marks unlabelled windows, and a warning counts them.
AUTO = "auto"


def labels_of(windows: Windows) -> np.ndarray:
    """Return the label of every window, shape (n_windows,).

    Raises
    ------
    ValueError
        When there are no labels, when a label is None or NaN, when a window has several labels,
        when a label is not hashable, or when labels of different types look the same.
    """
    if windows.y is None:
        raise ValueError(
            "There are no labels: pass y, or windows with a target. PARSEmbedder needs none."
        )
    if windows.y.dtype.hasobject and any(isinstance(label, np.ndarray) for label in windows.y[:1]):
        raise ValueError(f"A window has {len(windows.y[0])} labels; a classifier needs one.")
    missing = np.flatnonzero(pd.isna(windows.y.astype(object)))
    if len(missing):
        raise ValueError(
            f"{len(missing)} of {len(windows)} windows have no label (window {missing[0]}, for "
            "example); label them, or mark them with unlabeled_label."
        )
    if windows.y.dtype.hasobject:
        _check_distinct(windows.y.tolist())
    return windows.y


def _check_distinct(labels: Iterable[Any]) -> None:
    """Check that labels are hashable, and that no two of them look the same, as 1 and "1"."""
    seen: dict[str, Any] = {}
    try:
        different = dict.fromkeys(labels)
    except TypeError as error:
        raise ValueError(f"Labels must be hashable ({error}); use strings or numbers.") from error
    for label in different:
        other = seen.setdefault(str(label), label)
        if other is not label:
            raise ValueError(
                f"The labels {other!r} ({type(other).__name__}) and {label!r} "
                f"({type(label).__name__}) look the same; use one type, also for unlabeled_label."
            )


def check_class_labels(y: np.ndarray) -> None:
    """Check that labels are classes, not values of a continuous quantity such as an age in years.

    Raises
    ------
    ValueError
        When labels are complex, durations, or numbers of which some are not integers, also in an
        array of objects; and when they have no order, as sets.
    """
    if any(isinstance(label, _DURATIONS) for label in y):
        raise ValueError("The labels are durations; pass one class for each window.")
    if all(isinstance(label, Number) for label in y.tolist()):
        y = np.asarray(y.tolist())
    if y.dtype.kind == "c":
        raise ValueError("The labels are complex numbers; pass one class for each window.")
    if y.dtype.kind == "f":
        check_classification_targets(y)
    if y.dtype.hasobject and not all(isinstance(label, str) for label in y):
        pairs = combinations(dict.fromkeys(y.tolist()), 2)
        with suppress(TypeError):  # of several types, which cannot be sorted at all
            if not all((one < other) != (other < one) for one, other in pairs):
                # Sorted, equal labels would not be side by side.
                raise ValueError(f"Labels such as {y[0]!r} have no order; pass text or numbers.")


def targets_of(windows: Windows) -> np.ndarray:
    """Return the label of every window as a number, float of shape (n_windows,); NaN without one.

    Raises
    ------
    ValueError
        When there are no labels, when one is no real number, is infinite, or none is known.
    """
    y = windows.y
    if y is None:
        raise ValueError(
            "There are no targets: pass y, one number for each window. PARSEmbedder needs none."
        )
    targets = real_numbers(y, "targets")
    if np.isinf(targets).any():
        raise ValueError(f"{np.isinf(targets).sum()} targets are infinite; pass NaN if unknown.")
    if len(targets) and np.isnan(targets).all():
        raise ValueError("All targets are NaN, that is unknown; PARSEmbedder needs none.")
    return targets


#: Their number depends on a unit. To Python, a timedelta64 is an integer.
_DURATIONS = (timedelta, np.timedelta64)


def real_numbers(values: Any, name: str) -> np.ndarray:
    """Return one real number for each window as floats, shape (n_windows,); None becomes NaN.

    Raises
    ------
    ValueError
        When the values have another shape, or one is no real number or a duration.
    """
    values = as_column(values)
    if values.ndim != 1 and values.shape != (len(values), 1):
        raise ValueError(f"{name} has shape {values.shape}; pass one number for each window.")
    values = values.ravel()
    if wrong := [one for one in values if isinstance(one, _DURATIONS)]:
        raise ValueError(
            f"{len(wrong)} {name} are durations, such as {wrong[0]!r}; pass numbers in seconds, "
            "such as y / np.timedelta64(1, 's')."
        )
    found = [None if pd.isna(one) is True else one for one in values.tolist()]
    if wrong := [one for one in found if not (one is None or isinstance(one, Real))]:
        raise ValueError(
            f"{len(wrong)} {name} are no numbers, such as {wrong[0]!r}; pass one real number for "
            "each window, NaN where it is unknown. PARSClassifier takes classes."
        )
    return np.array(found, dtype=float)


def are_equal(numbers: np.ndarray) -> bool:
    """Whether numbers are all the same, apart from rounding errors."""
    return bool(np.ptp(numbers) <= 1e-12 * np.abs(numbers).max())


def find_unlabeled(y: np.ndarray, unlabeled_label: Any = "auto") -> tuple[np.ndarray, Any]:
    """Return which windows are unlabelled, and the label that marks them.

    Parameters
    ----------
    y : ndarray, shape (n_windows,)
        Labels.
    unlabeled_label : Any
        Label that marks a window as unlabelled. ``"auto"`` means -1, as in scikit-learn, with a
        warning when there are such windows. None means that every window is labelled.

    Returns
    -------
    unlabeled : ndarray of bool, shape (n_windows,)
        True for unlabelled windows.
    label : Any
        ``unlabeled_label``, or -1 for ``"auto"``.

    Raises
    ------
    TypeError
        When ``unlabeled_label`` is not hashable, as a list of labels.
    ValueError
        When two labels look the same, such as "-1" and -1. With ``"auto"``, also when labels are
        exactly -1 and +1, so that -1 may be a class.

    Warns
    -----
    UserWarning
        With ``"auto"``, when windows have the label -1.
    """
    # ``label == "auto"`` would be an array, if the label were one.
    is_auto = isinstance(unlabeled_label, str) and unlabeled_label == AUTO
    label = -1 if is_auto else unlabeled_label
    if label is None:
        return np.zeros(len(y), dtype=bool), None
    if not isinstance(label, Hashable):
        raise TypeError(f"unlabeled_label must be one label or None, got {label!r}.")
    _check_distinct([*y.tolist(), label])
    # Compared one by one, because labels may have several types.
    unlabeled = np.asarray([bool(np.all(one == label)) for one in y], dtype=bool)
    if is_auto and unlabeled.any():
        if set(y.tolist()) == {-1, 1}:
            raise ValueError(
                "Labels are exactly -1 and +1, but -1 means 'unlabelled'; set unlabeled_label to "
                "None if -1 is a class, or to the value that marks unlabelled windows."
            )
        if not unlabeled.all():
            warn_user(
                f"{unlabeled.sum()} of {len(y)} windows have label -1 and count as unlabelled: "
                "pass unlabeled_label=None if -1 is a class, or unlabeled_label=-1 if it is none."
            )
    return unlabeled, label


def where_labelled(windows: Windows, unlabeled_label: Any = "auto") -> np.ndarray:
    """Return whether each window is labelled, shape (n_windows,).

    Raises
    ------
    ValueError
        As in :func:`labels_of` and :func:`find_unlabeled`, and when no window is labelled.
    """
    unlabeled, label = find_unlabeled(labels_of(windows), unlabeled_label)
    if len(unlabeled) and unlabeled.all():
        raise ValueError(f"No window is labelled (y == {label!r}); PARSEmbedder needs no labels.")
    return ~unlabeled


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
    counts = np.bincount(codes, minlength=len(classes))
    present = counts > 0
    weights = np.ones(len(classes))
    if isinstance(class_weight, dict):
        code_of = {label: code for code, label in enumerate(classes.tolist())}
        for label, weight in class_weight.items():
            if label not in code_of:
                raise ValueError(
                    f"class_weight has {label!r}; the labels are {', '.join(map(repr, code_of))}."
                )
            positive().check(f"class_weight of {label!r}", weight)
            weights[code_of[label]] = weight
        weights[~present] = 1
    elif class_weight == "balanced":
        weights[present] = counts.sum() / (present.sum() * counts[present])
    else:
        raise ValueError(f"class_weight must be 'balanced', a dict or None, got {class_weight!r}.")
    return torch.as_tensor(weights, dtype=torch.float32)


def check_weights(sample_weight: Any, n_windows: int) -> np.ndarray:
    """Return ``sample_weight`` as an array of floats, shape (n_windows,).

    Raises
    ------
    ValueError
        When it is not one finite number of at least 0 for each window, or when all are 0.
    """
    name = "sample_weight"
    weights = check_array(sample_weight, dtype=float, ensure_2d=False, input_name=name)
    check_non_negative(weights, name)
    if weights.shape != (n_windows,):
        raise ValueError(f"{name} has shape {weights.shape}; it must have shape ({n_windows},).")
    if not weights.any():
        raise ValueError("All numbers in sample_weight are zero; give some window a weight.")
    return weights


def names_of_classes(
    classes: np.ndarray, labels_of_names: Mapping[str, Any] | None
) -> dict[Any, str] | None:
    """Return the name of each class; None if none of them has one, or two would have the same.

    Several names of one label are joined, such as "Sleep stage 3 / Sleep stage 4".

    Parameters
    ----------
    classes : ndarray, shape (n_classes,)
        Labels.
    labels_of_names : mapping of str to label | None
        Label of each name.
    """
    names: dict[Any, list[str]] = {label: [] for label in classes.tolist()}
    for name, label in (labels_of_names or {}).items():
        if label in names and name != str(label):
            names[label].append(name)
    texts = {label: " / ".join(found) or str(label) for label, found in names.items()}
    # The name of one class may be the label of another, which has no name.
    return texts if any(names.values()) and len(set(texts.values())) == len(texts) else None
