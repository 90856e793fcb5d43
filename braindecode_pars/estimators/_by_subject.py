"""The subject of every window, for what is computed subject by subject."""

from __future__ import annotations

import numpy as np
import pandas as pd

from braindecode_pars.windows._window_set import WindowSet

__all__ = ["MIN_WINDOWS", "subject_numbers"]

#: Smallest number of windows of a subject by default. The mean of n windows adds 1/n of the
#: variance within a subject to each feature.
MIN_WINDOWS = 10


def subject_numbers(
    windows: WindowSet, min_windows: int, owner: str, remedy: str = "lower min_windows"
) -> np.ndarray:
    """Return the number of each window's subject, counted from 0.

    Parameters
    ----------
    windows : WindowSet
        All windows of each subject.
    min_windows : int
        Smallest number of windows of a subject.
    owner : str
        Name of the class or parameter that needs the subjects, for the error message.
    remedy : str
        What else to do when a subject has too few windows, for the error message.

    Returns
    -------
    ndarray of int, shape (n_windows,)
        Windows with the same number are of one subject.

    Raises
    ------
    ValueError
        When there are no windows, the subject of a window is unknown, or a subject has fewer
        windows than ``min_windows``.
    """
    windows.check_not_empty()
    if windows.groups is None:
        n_unknown = int((~windows.known).sum())
        raise ValueError(
            f"{owner} needs the subject of every window, but that of {n_unknown} of "
            f"{len(windows)} is unknown; pass the X of as_sklearn, which keeps the entry 'subject' "
            "of the recordings' descriptions, or groups=."
        )
    numbers, names = pd.factorize(windows.groups)
    counts = np.bincount(numbers)
    few = np.flatnonzero(counts < min_windows)
    if len(few):
        raise ValueError(
            f"Subject {names[few[0]]} has {counts[few[0]]} windows; {owner} needs at least "
            f"{min_windows} of each subject, for a mean of its own. Pass all windows of a subject "
            f"together, or {remedy}."
        )
    return numbers
