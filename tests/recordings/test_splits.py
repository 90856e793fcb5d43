"""Splits of subjects: complete, reproducible, and of the given sizes."""

from __future__ import annotations

from collections import Counter

import pytest

from braindecode_pars.recordings.splits import split_subjects

SHARES = {"train": 0.6, "valid": 0.2, "test": 0.2}


def test_sizes_of_the_splits_in_the_paper():
    splits = split_subjects((f"tr{i}" for i in range(994)), SHARES)
    assert Counter(splits.values()) == {"train": 596, "valid": 199, "test": 199}


def test_order_and_repetition_of_subjects_do_not_matter():
    subjects = [f"s{i}" for i in range(20)]
    once = split_subjects(subjects, SHARES, seed=4)
    assert split_subjects([*reversed(subjects), *subjects], SHARES, seed=4) == once
    assert set(once) == set(subjects)


def test_another_seed_gives_another_split():
    assert split_subjects(range(50), SHARES, 0) != split_subjects(range(50), SHARES, 1)


def test_shares_sum_to_one():
    with pytest.raises(ValueError, match="sum to 1"):
        split_subjects(range(5), {"train": 0.8, "test": 0.1})
