"""Internal validation: by subject where known, and never pretrained on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from braindecode_pars.windows.held_out import drop_held_out, hold_out, without_held_out_splits
from braindecode_pars.windows.table import as_window_set


def windows(y, groups=None, n_chans=1):
    return as_window_set(np.zeros((len(y), n_chans, 4)), y, groups)


def test_whole_subjects_are_held_out():
    given = windows([0, 1] * 10, np.repeat(list("abcde"), 4))
    train, valid = hold_out(given, 0.4, seed=0)
    assert len(set(valid.groups)) == 2
    assert set(train.groups).isdisjoint(valid.groups)
    assert len(train) + len(valid) == 20
    other = {tuple(sorted(set(hold_out(given, 0.4, seed)[1].groups))) for seed in range(10)}
    assert len(other) > 1


def test_every_class_remains_in_training():
    """Subject c alone has class 2."""
    given = windows([0, 1] * 4 + [0, 1, 2, 2], np.repeat(list("abc"), 4))
    for seed in range(10):
        train, _ = hold_out(given, 0.3, seed)
        assert set(train.y) == {0, 1, 2}


def test_without_subjects_windows_are_stratified():
    train, valid = hold_out(windows([0] * 15 + [1] * 5), 0.2, seed=0)
    assert np.bincount(valid.y).tolist() == [3, 1]
    assert np.bincount(train.y).tolist() == [12, 4]


def test_nothing_is_held_out_of_too_few_windows():
    with pytest.warns(UserWarning, match="cannot be held out of 3 windows"):
        train, valid = hold_out(windows([0, 1, 2]), 0.2, seed=0)
    assert len(train) == 3
    assert valid is None
    assert hold_out(windows([0, 1]), 0, seed=0)[1] is None


def test_further_windows_of_held_out_subjects_are_dropped():
    given = windows([0, 1] * 10, np.repeat(["01", "02", "03", "04", "05"], 4))
    train, valid = hold_out(given, 0.2, seed=0)
    held_out = int(valid.groups[0])
    further = windows([0] * 5, [1, 2, 3, 4, 5])  # the same subjects, written as numbers
    kept = drop_held_out(further, train, valid)
    assert set(kept.groups) == {1, 2, 3, 4, 5} - {held_out}
    assert drop_held_out(None, train, valid) is None
    assert drop_held_out(further, train, None) is further


def test_further_windows_of_another_corpus_are_kept():
    given = windows([0, 1] * 10, np.repeat([1, 2, 3, 4, 5], 4))
    given = replace(given, corpora=np.full(20, "day", object))
    train, valid = hold_out(given, 0.2, seed=0)
    further = windows([0] * 5, [1, 2, 3, 4, 5])
    for corpus, n_kept in (("day", 4), ("night", 5)):
        of_corpus = replace(further, corpora=np.full(5, corpus, object))
        assert len(drop_held_out(of_corpus, train, valid)) == n_kept


def test_unknown_subjects_of_further_windows_warn():
    given = windows([0, 1] * 10, np.repeat(list("abcde"), 4))
    train, valid = hold_out(given, 0.2, seed=0)
    with pytest.warns(UserWarning, match="subjects of the unlabelled windows are unknown"):
        kept = drop_held_out(windows([0] * 5), train, valid)
    assert len(kept) == 5


def test_some_unknown_subjects_are_counted():
    """Subjects of some recordings are unknown, as in a table with empty cells."""
    y, subjects = np.array([0, 1] * 12), np.repeat([1.0, 2.0, 3.0, 4.0, 5.0, np.nan], 4)
    some = replace(windows(y), subjects=subjects)
    with pytest.warns(UserWarning, match="20 windows have a subject, but 4 have none"):
        train, valid = hold_out(some, 0.2, seed=0)
    assert len(train) + len(valid) == 24
    labeled = some.take(np.arange(20))  # the others are not part of the split
    train, valid = hold_out(labeled, 0.2, seed=0)
    assert set(train.groups).isdisjoint(valid.groups)
    with pytest.warns(UserWarning, match="subjects of 4 of 24 unlabelled windows are unknown"):
        kept = drop_held_out(replace(some, source=np.ones((24, 1, 4))), train, valid)
    assert set(valid.groups).isdisjoint(kept.subjects)
    assert len(kept) == 20


def test_names_that_may_be_one_person_are_reported():
    given = windows([0, 1] * 10, np.repeat(np.array(["01", "2", 3, 1, "5"], dtype=object), 4))
    with pytest.warns(UserWarning, match="different subjects: '01' and 1"):
        hold_out(given, 0.2, seed=0)


def test_windows_that_are_held_out_are_dropped_from_the_same_source():
    given = windows([0, 1] * 10)
    train, valid = hold_out(given, 0.2, seed=0)
    kept = drop_held_out(given, train, valid)
    assert set(kept.indices) == set(train.indices)


def test_an_empty_name_is_no_subject():
    windows = as_window_set(np.zeros((4, 1, 9)), [0, 1, 0, 1])
    windows = replace(windows, subjects=np.array(["a", "n/a", "b", " "], dtype=object))
    assert windows.known.tolist() == [True, False, True, False]
    assert windows.groups is None


def test_the_validation_windows_of_a_split_are_held_out():
    given = windows([0, 1, 2, 0, 1], ["a", "a", "b", "c", "c"])
    given = replace(given, splits=np.array(["train", "train", "valid", "train", "train"], object))
    for seed in (0, 1):
        train, valid = hold_out(given, "split", seed)
        assert (train.indices.tolist(), valid.indices.tolist()) == ([0, 1, 3, 4], [2])


def test_unlabelled_windows_of_held_out_splits_are_not_pretrained_on():
    splits = np.array(["train", "valid", "test", None], object)
    given = replace(windows([0] * 4), splits=splits)
    assert without_held_out_splits(given, "split").indices.tolist() == [0, 3]
    assert without_held_out_splits(given, 0.2) is given
    assert without_held_out_splits(given.take([1, 2]), "split") is None


def test_a_fixed_split_needs_no_subjects():
    given = replace(windows([0, 1] * 2), splits=np.array(["train", "train", "valid", "valid"]))
    train, valid = hold_out(given, "split", seed=0)
    assert (len(train), len(valid)) == (2, 2)
    some = replace(given, subjects=np.array([None, None, 2, 2], object))
    train, valid = hold_out(some, "split", seed=0)
    further = windows([0] * 2, [1, 2])
    assert drop_held_out(further, train, valid).groups.tolist() == [1]
