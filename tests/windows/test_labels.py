"""Unlabelled windows, validation windows and weights of classes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from braindecode_pars.windows.door import as_windows
from braindecode_pars.windows.held_out import hold_out
from braindecode_pars.windows.labels import (
    check_class_labels,
    cross_entropy_weights,
    find_unlabeled,
    labels_of,
    split_unlabeled,
)


def windows(y, groups=None):
    return as_windows(np.zeros((len(y), 1, 4)), y, groups)


def test_unlabelled_windows_are_separated():
    labeled, unlabeled = split_unlabeled(windows([0, -1, 2, -1, 1]), -1)
    assert labeled.windows["item"].tolist() == [0, 2, 4]
    assert unlabeled.windows["item"].tolist() == [1, 3]
    labeled, unlabeled = split_unlabeled(windows(["W", "?", "R"]), "?")
    assert labeled.y.tolist() == ["W", "R"]
    assert split_unlabeled(windows(["W", "R"]))[1] is None


def test_labels_of_plus_and_minus_one_are_ambiguous():
    with pytest.raises(ValueError, match="unlabeled_label"):
        split_unlabeled(windows([-1, 1, 1]))
    assert split_unlabeled(windows([-1, 1, 1]), None)[1] is None
    assert split_unlabeled(windows([-1, 1, 1]), -1)[1].windows["item"].tolist() == [0]


def test_the_convention_of_minus_one_is_announced():
    """SEED's classes are -1, 0 and 1: one would be lost."""
    seed = windows([-1, 0, 1, 0])
    message = "1 of 4 .*unlabeled_label=None"
    with pytest.warns(UserWarning, match=message):
        _, unlabeled = split_unlabeled(seed)
    assert unlabeled.windows["item"].tolist() == [0]
    # No warning when the user has decided, or when there is nothing to decide.
    assert split_unlabeled(seed, None)[1] is None
    assert split_unlabeled(seed, -1)[1].windows["item"].tolist() == [0]
    assert split_unlabeled(windows([0, 1]))[1] is None


@pytest.mark.parametrize(
    ("y", "unlabeled_label"),
    [
        (["-1", "0", "1"], "auto"),
        (["-1", "0", "1"], -1),
        ([-1, 0, 1], "-1"),
        (["-1", 0, 1], "auto"),
    ],
)
def test_a_label_that_looks_like_the_mark_is_refused(y, unlabeled_label):
    with pytest.raises(ValueError, match=r"'-1' \(str\)|-1 \(int\)"):
        find_unlabeled(windows(y).y, unlabeled_label)
    assert find_unlabeled(windows(y).y, None)[0].tolist() == [False] * 3
    assert find_unlabeled(windows(y).y, y[0])[0].tolist() == [True, False, False]


def test_labels_of_two_types_that_look_the_same_are_refused():
    with pytest.raises(ValueError, match=r"\((int|str)\)"):
        labels_of(windows([1, "1", 2, "2"]))
    with pytest.raises(ValueError, match="hashable"):
        labels_of(windows([{"a": 1}, {"b": 2}]))


def test_continuous_numbers_are_not_classes():
    for y in ([0.1, 0.2, 0.7], pd.Series([0.1, 0.2, 0.7], dtype=object), [0.5, 1, 2]):
        with pytest.raises(ValueError, match="continuous"):
            check_class_labels(windows(y).y)
    check_class_labels(windows(pd.Series([1.0, 2, 1], dtype=object)).y)
    check_class_labels(windows(["W", 0.5, "N"]).y)


def test_mixed_labels_keep_their_types():
    labeled, unlabeled = split_unlabeled(windows(["W", "N", -1, "W"]), -1)
    assert labeled.y.tolist() == ["W", "N", "W"]
    assert unlabeled.windows["item"].tolist() == [2]
    assert windows([("a", 1), ("b", 2)]).y.tolist() == [("a", 1), ("b", 2)]
    with pytest.raises(ValueError, match="NaN"):
        windows([0.0, np.nan])


def test_missing_labels_raise():
    with pytest.raises(ValueError, match="no labels"):
        split_unlabeled(as_windows(np.zeros((3, 1, 4))))
    with pytest.raises(ValueError, match="-1"):
        split_unlabeled(windows([-1, -1]))


def test_validation_subjects_are_disjoint_from_training_subjects():
    groups = np.repeat(np.arange(10), 7)
    for seed in range(5):
        train, valid = hold_out(windows(np.arange(70) % 2, groups), 0.2, seed)
        assert set(train.groups).isdisjoint(valid.groups)
        assert len(set(valid.groups)) == 2
        assert len(train) + len(valid) == 70


def test_without_subjects_validation_is_stratified_by_label():
    y = np.array([0] * 80 + [1] * 20)
    _, valid = hold_out(windows(y), 0.2, 0)
    assert (valid.y == 1).sum() == 4
    assert len(valid) == 20


def test_a_single_subject_or_too_few_windows_warn():
    with pytest.warns(UserWarning, match="S1"):
        _, valid = hold_out(windows([0, 1] * 10, ["S1"] * 20), 0.2, 0)
    assert len(valid) == 4
    with pytest.warns(UserWarning, match="3 windows"):
        assert hold_out(windows([0, 1, 1]), 0.2, 0)[1] is None
    assert hold_out(windows([0, 1]), 0.0, 0)[1] is None
    with pytest.raises(ValueError, match=r"1.5"):
        hold_out(windows([0, 1]), 1.5, 0)


def test_training_keeps_every_class():
    """Two of six subjects have class 1, so some random draws would hold out both."""
    groups = np.repeat(np.arange(6), 5)
    y = (groups < 2).astype(int)
    for seed in range(10):
        train, valid = hold_out(windows(y, groups), 0.5, seed)
        assert set(train.y) == {0, 1}
        assert len(set(valid.groups)) == 3
    with pytest.warns(UserWarning, match="10 windows"):
        assert hold_out(windows([0] * 5 + [1] * 5, [0] * 5 + [1] * 5), 0.2, 0)[1] is None
    _, valid = hold_out(windows([0, 1] * 4, [0] * 4 + [1] * 4), 0.9, 0)
    assert len(set(valid.groups)) == 1


def test_balanced_weights_follow_the_formula():
    codes = np.array([0] * 6 + [1] * 3 + [2] * 1)
    weights = cross_entropy_weights(codes, np.array(["a", "b", "c"]), "balanced")
    torch.testing.assert_close(weights, torch.tensor([10 / (3 * 6), 10 / (3 * 3), 10 / 3]))


def test_a_class_without_training_windows_keeps_weight_one():
    weights = cross_entropy_weights(np.array([0, 0, 2]), np.arange(3), "balanced")
    torch.testing.assert_close(weights, torch.tensor([3 / 4, 1.0, 3 / 2]))


def test_weights_by_label():
    weights = cross_entropy_weights(np.array([0, 1]), np.array(["N", "W"]), {"W": 3.0})
    assert weights.tolist() == [1.0, 3.0]
    assert cross_entropy_weights(np.array([0, 1]), np.arange(2), None) is None
    with pytest.raises(ValueError, match="'X'"):
        cross_entropy_weights(np.array([0, 1]), np.array(["N", "W"]), {"X": 3.0})
    with pytest.raises(ValueError, match="'even'"):
        cross_entropy_weights(np.array([0, 1]), np.arange(2), "even")


def test_complex_numbers_are_not_classes():
    for labels in (np.array([1j, 0]), np.array([1j, 0], dtype=object)):
        with pytest.raises(ValueError, match=r"[Cc]omplex"):
            check_class_labels(labels)
