"""Divide subjects at random, reproducibly: the same seed and subjects give the same division."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

__all__ = ["split_subjects"]


def split_subjects(
    subjects: Iterable, shares: Mapping[str, float], seed: int = 0
) -> dict[object, str]:
    """Which split every subject belongs to.

    The order in which subjects are given, and how often, does not matter.

    Parameters
    ----------
    subjects : iterable
        Whom to divide.
    shares : mapping of str to float
        Share of the subjects that each split gets, for example ``{"train": 0.8, "valid": 0.2}``.
    seed : int
        Another one gives another division.

    Returns
    -------
    dict
        From subject to split.

    Raises
    ------
    ValueError
        When shares are negative, or do not sum to 1.

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
        raise ValueError(f"Shares must be positive and sum to 1, got {dict(shares)}.")
    people = sorted(set(subjects), key=str)
    people = [people[i] for i in np.random.RandomState(seed).permutation(len(people))]
    ends = np.round(np.cumsum(list(shares.values())) * len(people)).astype(int)
    parts = np.split(np.arange(len(people)), ends[:-1])
    return {people[i]: name for name, part in zip(shares, parts, strict=True) for i in part}
