"""Which windows are held out for the internal validation, and kept out of pretraining."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from sklearn.model_selection import GroupShuffleSplit, StratifiedShuffleSplit

from braindecode_pars.windows._subjects import subject_key
from braindecode_pars.windows._window_set import WindowSet

__all__ = ["drop_held_out", "hold_out"]


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
        held_out = set(map(subject_key, valid.groups.tolist())) - set(
            map(subject_key, train.groups.tolist())
        )
        keep &= [subject_key(subject) not in held_out for subject in windows.groups.tolist()]
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
