"""Fixed training and validation subjects: the entry ``split`` of the recordings' descriptions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pandas as pd

from braindecode_pars._subjects import SubjectKeys

__all__ = ["SPLIT", "are_validation"]

#: Value of ``validation`` that uses the fixed validation subjects.
SPLIT = "split"

_ELSE = "or hold out a random share of the subjects, such as validation=0.2"


def are_validation(
    splits: np.ndarray | None, subjects: np.ndarray | None, n_windows: int
) -> np.ndarray:
    """Return which windows have the split "valid"; the others have the split "train".

    Parameters
    ----------
    splits, subjects : ndarray, shape (n_windows,) | None
        Split and subject of each window, as in a WindowSet; None or NaN where unknown.
    n_windows : int
        Number of windows.

    Returns
    -------
    ndarray of bool, shape (n_windows,)
        Whether a window is a validation window.

    Raises
    ------
    ValueError
        When a window has no split or another one, when there is no training or no validation
        window, and when a subject has windows of both.
    """
    names = np.full(n_windows, None, object) if splits is None else splits.astype(object)
    n_unknown = int(pd.isna(names).sum())
    if n_unknown:
        raise ValueError(
            f"validation='split' needs the split of every window, but {n_unknown} of {n_windows} "
            "have none; add 'split' ('train' or 'valid') to the description of every recording, "
            f"{_ELSE}."
        )
    counts = Counter(names.tolist())
    others = [name for name in counts if name not in ("train", "valid")]
    if others:
        found = ", ".join(f"{name!r} ({counts[name]} windows)" for name in others)
        raise ValueError(
            f"validation='split' trains on windows of split 'train' and validates on 'valid', but "
            f"there are also windows of {found}; leave them out of the training windows."
        )
    for name in ("train", "valid"):
        if not counts[name]:
            raise ValueError(
                f"validation='split' needs windows of split {name!r}, but there are none among "
                f"{n_windows} labelled training windows; add them, {_ELSE}."
            )
    is_valid = names == "valid"
    if subjects is not None:
        _check_apart(subjects[is_valid].tolist(), subjects[~is_valid].tolist())
    return is_valid


def _check_apart(valid: Iterable, train: Iterable) -> None:
    """Check that no subject is on both sides, in any spelling of the name."""
    trained = SubjectKeys(subject for subject in dict.fromkeys(train) if not pd.isna(subject))
    both = [s for s in dict.fromkeys(valid) if not pd.isna(s) and s in trained]
    if both:
        raise ValueError(
            f"Subject{'s' if len(both) > 1 else ''} {', '.join(map(str, both[:10]))} "
            f"{'have' if len(both) > 1 else 'has'} windows of split 'train' and of split 'valid'; "
            "put all recordings of a subject in one split."
        )
