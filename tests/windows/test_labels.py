"""Labels: their names, unlabeled windows, and weights of classes."""

from __future__ import annotations

from itertools import compress

import numpy as np
import pandas as pd
import pytest
import torch

from braindecode_pars import PARSClassifier, as_sklearn
from braindecode_pars.datasets.simulated import STAGES
from braindecode_pars.estimators import LinearProbe
from braindecode_pars.evaluation import LogBandPower
from braindecode_pars.windows.convert import as_windows, joined_labels_by_name
from braindecode_pars.windows.labels import (
    check_class_labels,
    cross_entropy_weights,
    names_of_classes,
    one_class_each,
    warn_of_similar_classes,
    where_labeled,
)
from braindecode_pars.windows.table import as_column


def windows(y, groups=None):
    return as_windows(np.zeros((len(y), 1, 4)), y, groups)


@pytest.mark.parametrize(
    ("y", "mark", "expected"),
    [
        ([0, -1, 2, -1, 1], -1, [True, False, True, False, True]),
        (["W", "?", "R"], "?", [True, False, True]),
        (["W", "R"], "auto", [True, True]),
        ([-1, 1, 1], None, [True] * 3),
        ([-1, 1, 1], -1, [False, True, True]),
        ([("a", 1), ("b", 2)], "auto", [True, True]),
    ],
)
def test_unlabeled_windows_are_found(y, mark, expected):
    found = where_labeled(windows(y), mark)
    assert found.tolist() == expected
    assert windows(y)[found].y.tolist() == [*compress(y, expected)]


@pytest.mark.parametrize(
    ("y", "mark", "message"),
    [
        ([-1, 1, 1], "auto", "unlabeled_label"),  # one of them may be a class
        ([-1, 0, 1], "Sleep stage ?", "unlabeled_label='Sleep stage .'"),  # a class's name
        ([0.0, np.nan], "auto", "1 of 2 windows are missing"),
        # a label that looks like the mark
        (["-1", "0", "1"], -1, r"'-1' \(str\)"),
        (["-1", 0, 1], "auto", r"'-1' \(str\)"),
    ],
)
def test_a_mark_of_no_use_is_refused(y, mark, message):
    with pytest.raises(ValueError, match=message):
        where_labeled(windows(y), mark)


def test_the_convention_of_minus_one_is_announced():
    """SEED's classes are -1, 0 and 1: one would be lost."""
    seed = windows([-1, 0, 1, 0])
    with pytest.warns(UserWarning, match="1 of 4 .*unlabeled_label=None"):
        assert where_labeled(seed).tolist() == [False, True, True, True]
    # No warning when the user has decided
    assert where_labeled(seed, None).all()
    assert where_labeled(seed, -1).tolist() == [False, True, True, True]


def test_a_fold_of_plus_and_minus_one_is_scored_by_the_classes_of_fit():
    clf = LinearProbe(LogBandPower(sfreq=100.0))
    X = 1e-5 * np.random.default_rng(0).normal(size=(12, 2, 300)).astype(np.float32)
    y, fold = np.tile([0, 1, 2], 4), np.tile([1, -1], 6)
    clf.fit(X, y)
    with pytest.warns(UserWarning, match="6 of 12 .* -1"):
        assert clf.score(X, fold) == np.mean(clf.predict(X[::2]) == 1)
    clf.fit(X, y % 2)
    clf.classes_ = np.array([1])  # as if nothing else was known
    with pytest.raises(ValueError, match="exactly -1 and"):
        clf.score(X, fold)


@pytest.mark.parametrize(
    ("codes", "classes", "rule", "expected"),
    [
        ([0] * 6 + [1] * 3 + [2], "abc", "balanced", [10 / (3 * 6), 10 / (3 * 3), 10 / 3]),
        ([0, 0, 2], "abc", "balanced", [3 / 4, 1.0, 3 / 2]),  # b has no training windows
        ([0, 1], "NW", {"W": 3.0}, [1.0, 3.0]),
        ([0, 0, 2], "abc", {"b": 9.0, "c": 4.0}, [1.0, 1.0, 4.0]),
    ],
)
def test_weights_of_classes(codes, classes, rule, expected):
    weights = cross_entropy_weights(np.array(codes), np.array([*classes]), rule)
    torch.testing.assert_close(weights, torch.tensor(expected))
    assert cross_entropy_weights(np.array(codes), np.array([*classes]), None) is None


def test_weights_of_unknown_classes_are_refused():
    with pytest.raises(ValueError, match="'X'"):
        cross_entropy_weights(np.array([0, 1]), np.array(["N", "W"]), {"X": 3.0})


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0.1, 0.2, 0.7], "continuous"),
        ([0.5, 1, 2], "continuous"),
        (np.array([1j, 0], dtype=object), "[Cc]omplex"),
        (pd.to_timedelta([1, 2, 1], "s"), "strings or numbers"),
        # Without a total order, equal labels are not side by side: two sets were 44 classes.
        ([frozenset("a"), frozenset("ab"), frozenset("b")] * 22, "strings or numbers"),
        ([("a", 1), ("b", 0)] * 22, "strings or numbers"),
    ],
)
def test_what_is_no_class(labels, message):
    with pytest.raises(ValueError, match=message):
        check_class_labels(as_column(labels))


BY_NAME = {name: label for label, name in enumerate(STAGES)}


@pytest.mark.parametrize(
    ("change", "hold"),
    [
        (lambda y: y, True),
        (lambda y: np.where(np.arange(len(y)) % 2, y, -1), True),  # unlabeled windows
        (lambda y: (y == 3).astype(int), False),
        (lambda y: np.array(STAGES)[y], True),  # the names themselves
    ],
)
def test_names_hold_only_for_the_same_labels(nights, change, hold):
    X, y, _ = as_sklearn(nights)
    assert as_windows(X, change(y)).label_names == (BY_NAME if hold else None)


@pytest.mark.parametrize(
    ("labels", "by_name", "expected"),
    [
        ([0, 1], {"rest": 0, "task": 1, "other": 2}, {0: "rest", 1: "task"}),
        ([2, 3], {"S2": 2, "S3": 3, "S4": 3}, {2: "S2", 3: "S3 / S4"}),
        ([0, 1], {"rest": 0}, {0: "rest", 1: "1"}),
        ([0, 1], {"1": 0}, None),  # the label of another class
    ],
)
def test_names_of_classes(labels, by_name, expected):
    assert names_of_classes(np.array(labels), by_name) == expected


@pytest.mark.parametrize("missing", [np.float32("nan"), pd.NA])
def test_nan_does_not_mark_unlabeled_windows(missing):
    for clf in (PARSClassifier(None), LinearProbe(LogBandPower(sfreq=100.0))):
        clf.set_params(unlabeled_label=missing)
        with pytest.raises(ValueError, match=r"unlabeled_label must be .*NaN"):
            clf.fit(np.ones((6, 1, 200)), [0, 1, np.nan] * 2)


def test_classes_that_look_the_same_are_a_warning():
    with pytest.warns(UserWarning, match="'Math ' and 'math'"):
        warn_of_similar_classes(["Math ", "math"])


def test_one_name_with_two_labels_is_a_warning():
    with pytest.warns(UserWarning, match=r"'W'.* 0 .* 1 "):
        assert joined_labels_by_name([{"W": 0}, None, {"W": 1}]) is None


@pytest.mark.parametrize(
    ("n_mixed", "n_subjects", "expected"), [(1, 20, True), (1, 10, True), (2, 19, False)]
)
def test_nine_of_ten_subjects_have_one_class_each(n_mixed, n_subjects, expected):
    """One label may be wrong."""
    owners = np.repeat(np.arange(n_subjects), 3)
    classes = owners % 2
    classes[: 3 * n_mixed : 3] += 5
    assert one_class_each(classes, owners) == expected
