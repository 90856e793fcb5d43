"""Random but reproducible splits of subjects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

__all__ = ["split_subjects"]


def split_subjects(
    subjects: Iterable, shares: Mapping[str, float], seed: int = 0
) -> dict[object, str]:
    """Divide subjects at random into splits.

    The same subjects and seed give the same splits. The order of the subjects and repetitions do
    not matter.

    Parameters
    ----------
    subjects : iterable
        Subjects to divide.
    shares : mapping of str to float
        Share of the subjects in each split, for example ``{"train": 0.8, "valid": 0.2}``.
    seed : int
        Seed of the random division.

    Returns
    -------
    dict
        Split of each subject.

    Raises
    ------
    ValueError
        When a share is negative, or when the shares do not sum to 1.

    Examples
    --------
    >>> from collections import Counter
    >>> from braindecode_pars.recordings.splits import split_subjects
    >>> shares = {"train": 0.6, "valid": 0.2, "test": 0.2}
    >>> splits = split_subjects(range(10), shares, seed=0)
    >>> sorted(Counter(splits.values()).items())
    [('test', 2), ('train', 6), ('valid', 2)]
    """
    if not np.isclose(sum(shares.values()), 1) or min(shares.values()) < 0:
        raise ValueError(f"shares must not be negative and must sum to 1, got {dict(shares)}.")
    # Sorted first, so that only the seed determines the order.
    shuffled = sorted(set(subjects), key=str)
    shuffled = [shuffled[i] for i in np.random.RandomState(seed).permutation(len(shuffled))]
    ends = np.round(np.cumsum(list(shares.values())) * len(shuffled)).astype(int)
    parts = np.split(np.arange(len(shuffled)), ends[:-1])
    return {shuffled[i]: name for name, part in zip(shares, parts, strict=True) for i in part}
