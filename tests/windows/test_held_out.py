"""Internal validation: by subject where known, and never pretrained on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from braindecode_pars.windows.convert import as_windows, windows_of
from braindecode_pars.windows.labels import (
    are_validation,
    drop_held_out,
    hold_out,
    without_held_out_splits,
)
from braindecode_pars.windows.table import ItemReader


def windows(y, groups=None, n_chans=1):
    return as_windows(np.zeros((len(y), n_chans, 4)), y, groups)


def test_whole_subjects_are_held_out():
    labeled = windows([0, 1] * 10, np.repeat(list("abcde"), 4))
    train, valid = hold_out(labeled, 0.4, seed=0)
    assert len(set(valid.groups)) == 2
    assert set(train.groups).isdisjoint(valid.groups)
    assert len(train) + len(valid) == 20
    other = {tuple(sorted(set(hold_out(labeled, 0.4, seed)[1].groups))) for seed in range(10)}
    assert len(other) > 1


def test_one_subject_or_a_class_of_one_subject():
    """Two of six subjects have class 1, so some random draws would hold out both."""
    groups = np.repeat(np.arange(6), 5)
    for seed in range(10):
        train, valid = hold_out(windows((groups < 2).astype(int), groups), 0.5, seed)
        assert set(train.y) == {0, 1}
        assert len(set(valid.groups)) == 3
    with pytest.warns(UserWarning, match="10 windows"):
        assert hold_out(windows([0] * 5 + [1] * 5, [0] * 5 + [1] * 5), 0.2, 0)[1] is None
    _, valid = hold_out(windows([0, 1] * 4, [0] * 4 + [1] * 4), 0.9, 0)
    assert len(set(valid.groups)) == 1
    with pytest.warns(UserWarning, match="S1"):
        train, valid = hold_out(windows([0, 1] * 10, ["S1"] * 20), 0.2, 0)
    assert len(valid) == 4
    # The subject is not held out, so its further windows are used.
    assert len(drop_held_out(windows([0] * 5, ["S1"] * 5), train, valid)) == 5


def test_without_subjects_windows_are_stratified():
    train, valid = hold_out(windows([0] * 15 + [1] * 5), 0.2, seed=0)
    assert np.bincount(valid.y).tolist() == [3, 1]
    assert np.bincount(train.y).tolist() == [12, 4]


def test_nothing_is_held_out_of_too_few_windows():
    with pytest.warns(UserWarning, match="3 windows"):
        train, valid = hold_out(windows([0, 1, 2]), 0.2, seed=0)
    assert len(train) == 3
    assert valid is None
    with pytest.warns(UserWarning, match="4 windows"):  # one for two classes
        assert hold_out(windows([0, 0, 1, 1]), 0.2, seed=0)[1] is None
    assert hold_out(windows([0, 1]), 0, seed=0)[1] is None


def test_further_windows_of_held_out_subjects_are_dropped():
    labeled = windows([0, 1] * 10, np.repeat(["01", "02", "03", "04", "05"], 4))
    train, valid = hold_out(labeled, 0.2, seed=0)
    held_out = int(valid.groups[0])
    further = windows([0] * 5, [1, 2, 3, 4, 5])  # the same subjects, written as numbers
    remaining = drop_held_out(further, train, valid)
    assert set(remaining.groups) == {1, 2, 3, 4, 5} - {held_out}
    assert drop_held_out(None, train, valid) is None
    assert drop_held_out(further, train, None) is further


def of_corpus(windows, corpus):
    return replace(windows, recordings=windows.recordings.assign(corpus=corpus))


def test_further_windows_of_another_corpus_are_kept():
    labeled = windows([0, 1] * 10, np.repeat([1, 2, 3, 4, 5], 4))
    labeled = of_corpus(labeled, "day")
    train, valid = hold_out(labeled, 0.2, seed=0)
    further = windows([0] * 5, [1, 2, 3, 4, 5])
    for corpus, n_remaining in (("day", 4), ("night", 5)):
        assert len(drop_held_out(of_corpus(further, corpus), train, valid)) == n_remaining


def test_unknown_subjects_of_further_windows_warn():
    labeled = windows([0, 1] * 10, np.repeat(list("abcde"), 4))
    train, valid = hold_out(labeled, 0.2, seed=0)
    with pytest.warns(UserWarning, match="5 of 5 unlabeled"):
        remaining = drop_held_out(windows([0] * 5), train, valid)
    assert len(remaining) == 5


def test_some_unknown_subjects_are_counted():
    """Subjects of some recordings are unknown, as in a table with empty cells."""
    y, subjects = np.array([0, 1] * 12), np.repeat([1.0, 2.0, 3.0, 4.0, 5.0, np.nan], 4)
    some = windows(y).with_subjects(subjects)
    with pytest.warns(UserWarning, match="4 of 24 windows"):
        train, valid = hold_out(some, 0.2, seed=0)
    assert len(train) + len(valid) == 24
    labeled = some.take(np.arange(20))  # the others are not part of the split
    train, valid = hold_out(labeled, 0.2, seed=0)
    assert set(train.groups).isdisjoint(valid.groups)
    with pytest.warns(UserWarning, match="4 of 24 unlabeled"):
        remaining = drop_held_out(some.read_by(np.ones((24, 1, 4))), train, valid)
    assert set(valid.groups).isdisjoint(remaining.subjects)
    assert len(remaining) == 20


def test_names_that_may_be_the_same_subject_are_reported():
    labeled = windows([0, 1] * 10, np.repeat(np.array(["01", "2", 3, 1, "5"], dtype=object), 4))
    with pytest.warns(UserWarning, match="'01' and 1"):
        hold_out(labeled, 0.2, seed=0)


def test_windows_that_are_held_out_are_dropped_from_the_same_source():
    labeled = windows([0, 1] * 10)
    train, valid = hold_out(labeled, 0.2, seed=0)
    remaining = drop_held_out(labeled, train, valid)
    assert set(remaining.table["item"]) == set(train.table["item"])


def test_an_empty_name_is_no_subject():
    windows = as_windows(np.zeros((4, 1, 9)), [0, 1, 0, 1])
    windows = windows.with_subjects(np.array(["a", "n/a", "b", " "], dtype=object))
    assert windows.has_subject.tolist() == [True, False, True, False]
    assert windows.groups is None


def of_splits(splits, subjects=None):
    """One recording of one window for each split."""
    reader, n = ItemReader(np.zeros((len(splits), 1, 4))), len(splits)
    names = [None] * n if subjects is None else subjects
    rows = [dict(reader=reader, split=s, subject=p) for s, p in zip(splits, names, strict=True)]
    return windows_of(rows, recording=np.arange(n), item=np.arange(n))


def test_the_validation_windows_of_a_split_are_held_out():
    splits = ["train", "train", "valid", "train", "train"]
    labeled = of_splits(splits, ["a", "a", "b", "c", "c"]).with_labels(np.array([0, 1, 2, 0, 1]))
    for seed in (0, 1):
        train, valid = hold_out(labeled, "split", seed)
        assert (train.table["item"].tolist(), valid.table["item"].tolist()) == (
            [0, 1, 3, 4],
            [2],
        )


def test_unlabeled_windows_of_held_out_splits_are_not_pretrained_on():
    labeled = of_splits(["train", "valid", "test", None])
    assert without_held_out_splits(labeled, "split").table["item"].tolist() == [0, 3]
    assert without_held_out_splits(labeled, 0.2) is labeled
    assert without_held_out_splits(labeled.take([1, 2]), "split") is None


def test_a_fixed_split_needs_no_subjects():
    labeled = of_splits(["train", "train", "valid", "valid"]).with_labels(np.array([0, 1] * 2))
    train, valid = hold_out(labeled, "split", seed=0)
    assert (len(train), len(valid)) == (2, 2)
    some = labeled.with_subjects(np.array([None, None, 2, 2], object))
    train, valid = hold_out(some, "split", seed=0)
    further = windows([0] * 2, [1, 2])
    assert drop_held_out(further, train, valid).groups.tolist() == [1]


SUBJECTS = np.array(["01", "01", "02", "03"])


def splits(*names) -> np.ndarray:
    return np.array(names, dtype=object)


def test_windows_of_split_valid():
    is_valid = are_validation(splits("train", "train", "valid", "train"), SUBJECTS, 4)
    assert is_valid.tolist() == [False, False, True, False]
    assert are_validation(splits("train", "valid"), None, 2).tolist() == [False, True]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (None, "None: 4"),
        (splits("train", None, float("nan"), "valid"), "None: 2"),
        (splits("train", "train", "valid", "test"), "'test': 1"),
        (splits("train", "train", "train", "train"), "{'train': 4}"),
        (splits("valid", "valid", "valid", "valid"), "{'valid': 4}"),
        (splits("train", "valid", "valid", "train"), r": 01\."),
    ],
)
def test_unclear_splits_raise(names, message):
    with pytest.raises(ValueError, match=message):
        are_validation(names, SUBJECTS, 4)


def test_two_names_of_the_same_subject_in_both_splits_are_refused():
    with pytest.raises(ValueError, match=r": 1\."):
        are_validation(splits("train", "valid"), np.array(["sub-01", 1], object), 2)
