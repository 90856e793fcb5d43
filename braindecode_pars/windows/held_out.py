"""Which windows are held out for internal validation, and kept out of pretraining.

Subjects are drawn, or fixed by the entry ``split`` of the recordings' descriptions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pandas as pd
from sklearn.model_selection import GroupShuffleSplit, StratifiedShuffleSplit

from braindecode_pars._common.checks import listed, warn_user
from braindecode_pars._common.subjects import SubjectKeys, warn_of_similar_names
from braindecode_pars.windows.labels import labels_of
from braindecode_pars.windows.table import Windows

#: Random draws of the validation subjects before giving up: one may take a class out of training.
_DRAWS = 20


def hold_out(
    windows: Windows, share: float | str, seed: int, *, stratified: bool = True
) -> tuple[Windows, Windows | None]:
    """Hold out internal validation windows: by subject where known, else stratified by label.

    Parameters
    ----------
    windows : Windows
        Windows with labels.
    share : float | "split"
        Share of the subjects, or of the windows, in [0, 1); at least one is held out. With
        "split", the windows with the split "valid" are held out.
    seed : int
        Seed of the split.
    stratified : bool
        Whether labels are classes. If False, labels have no part in the split.

    Returns
    -------
    train : Windows
        The remaining windows; with every class, if the split is random.
    valid : Windows | None
        None for a share of 0, and where there are too few windows.

    Raises
    ------
    ValueError
        With "split", when a window has neither the split "train"
        nor "valid", and when a subject has windows of both.

    Warns
    -----
    UserWarning
        When subjects are unknown, of all windows or of some, when there is only one, when two names
        may be one subject, and when nothing can be held out.
    """
    if isinstance(share, str):
        is_valid = are_validation(windows.splits, windows.subjects, len(windows))
        return windows.take(np.flatnonzero(~is_valid)), windows.take(np.flatnonzero(is_valid))
    if share == 0:
        return windows, None
    y = labels_of(windows) if stratified else np.zeros(len(windows))
    n_classes = len(np.unique(y))
    for train, valid in _splits(windows, y, share, seed):
        # A split is useful only if every class remains in training.
        if len(set(y[train])) == n_classes:
            return windows.take(train), windows.take(valid)
    lost = f"one of the {n_classes} classes" if stratified else "all of them"
    warn_user(
        f"Validation windows cannot be held out of {len(windows)} windows without taking {lost} "
        "out of training; training continues without validation."
    )
    return windows, None


def _splits(
    windows: Windows, y: np.ndarray, share: float, seed: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Splits into training and validation windows, in random order."""
    groups = _subject_numbers(windows)
    if groups is not None and groups.max() > 0:
        n_subjects = groups.max() + 1
        n_valid = min(max(1, round(share * n_subjects)), n_subjects - 1)
        splitter = GroupShuffleSplit(n_splits=_DRAWS, test_size=n_valid, random_state=seed)
        return splitter.split(y, y, groups)
    # Stratified: both parts need at least one window of every class.
    n_valid = math.ceil(share * len(windows))
    classes, counts = np.unique(y, return_counts=True)
    if min(n_valid, len(windows) - n_valid) < len(classes) or counts.min() < 2:
        return iter(())
    splitter = StratifiedShuffleSplit(n_splits=1, test_size=n_valid, random_state=seed)
    return splitter.split(y, y)


def _subject_numbers(windows: Windows) -> np.ndarray | None:
    """Subjects as numbers, since subjects of mixed types cannot be ordered; None if unknown."""
    if windows.groups is None:
        n_known = int(windows.known.sum())
        source = getattr(windows.recordings["reader"].iloc[0], "source", None)
        if n_known:
            warn_user(
                f"{n_known} windows have a subject, {len(windows) - n_known} have none: validation "
                "may be on training subjects; add 'subject' to the description of every recording."
            )
        elif isinstance(source, list) and isinstance(source[0], tuple):
            warn_user(
                "A list of tuples carries neither subjects nor sampling rate, so validation "
                "windows may be of training subjects; fit on as_sklearn's X, or pass groups=."
            )
        return None
    numbers, names = pd.factorize(windows.groups)
    warn_of_similar_names(names.tolist())
    if len(names) == 1:
        warn_user(
            f"All windows are of one subject ({names[0]}), and so are the internal validation "
            "windows; validation=0 uses none."
        )
    return numbers


def without_held_out_splits(windows: Windows | None, share: float | str) -> Windows | None:
    """Drop windows of the splits "valid" and "test", if ``share`` is "split".

    Labels are not needed to be in one of them: an unlabelled window of a test subject must not be
    pretrained on either.
    """
    if share != SPLIT or windows is None or windows.splits is None:
        return windows
    keep = ~np.isin(windows.splits.astype(str), ("valid", "test"))
    return windows.take(np.flatnonzero(keep)) if keep.any() else None


def drop_held_out(windows: Windows | None, train: Windows, valid: Windows | None) -> Windows | None:
    """Drop windows that are held out, and all windows of held-out subjects.

    Parameters
    ----------
    windows : Windows | None
        Further windows to pretrain on.
    train, valid : Windows, Windows | None
        Result of :func:`hold_out`.

    Returns
    -------
    Windows | None
        None when nothing remains.

    Warns
    -----
    UserWarning
        When the subjects of ``windows`` are unknown and some subjects are held out.
    """
    if windows is None or valid is None:
        return windows
    held = set(valid.places())
    keep = np.array([place not in held for place in windows.places()], dtype=bool)
    trained_on = set(_people(train[train.known]))
    held_out = [person for person in dict.fromkeys(_people(valid)) if person not in trained_on]
    known = np.flatnonzero(windows.known)
    if held_out and len(known) < len(windows):
        warn_user(
            f"{len(windows) - len(known)} of {len(windows)} unlabelled windows have no subject, so "
            "pretraining may use held-out ones; pass a dataset with 'subject' in its descriptions."
        )
    if held_out and len(known):
        keys = SubjectKeys(held_out)
        keep[known] &= [person not in keys for person in _people(windows.take(known))]
    return windows.take(np.flatnonzero(keep)) if keep.any() else None


def _people(windows: Windows) -> list:
    return [] if windows.people is None else windows.people.tolist()


#: Value of ``validation`` that uses the fixed validation subjects.
SPLIT = "split"


def are_validation(
    splits: np.ndarray | None, subjects: np.ndarray | None, n_windows: int
) -> np.ndarray:
    """Return which windows have the split "valid"; the others have the split "train".

    Parameters
    ----------
    splits, subjects : ndarray, shape (n_windows,) | None
        Split and subject of each window, as in Windows; None or NaN where unknown.
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
    names = np.full(n_windows, None) if splits is None else splits.astype(object)
    counts = Counter(None if pd.isna(name) else name for name in names.tolist())
    if set(counts) != {"train", "valid"}:
        raise ValueError(
            "validation='split' trains on windows of split 'train' and validates on 'valid', but "
            f"the {n_windows} labelled windows have the splits {dict(counts)}; give 'split' to the "
            "description of every recording, or hold out a random share, such as validation=0.2."
        )
    is_valid = names == "valid"
    if subjects is not None:
        named = ~pd.isna(subjects.astype(object))
        trained = SubjectKeys(dict.fromkeys(subjects[named & ~is_valid].tolist()))
        both = [s for s in dict.fromkeys(subjects[named & is_valid].tolist()) if s in trained]
        if both:
            raise ValueError(
                f"Subjects in both splits, 'train' and 'valid': {listed([*map(str, both)])}; put "
                "all recordings of a subject in one split."
            )
    return is_valid
