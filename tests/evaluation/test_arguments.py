"""Invalid arguments raise errors before anything is trained."""

from __future__ import annotations

import unicodedata

import pytest
from sklearn.dummy import DummyClassifier

from braindecode_pars.evaluation.corpus import check_arguments, check_subjects, in_order

DUMMY = {"A": DummyClassifier()}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (dict(estimators={}), ValueError, "estimators is empty"),
        (dict(estimators=DummyClassifier()), TypeError, "is a DummyClassifier; give a dict"),
        (
            dict(estimators={"A": DummyClassifier}),
            TypeError,
            r"give an instance, DummyClassifier\(",
        ),
        (dict(estimators={"A": 3}), TypeError, "int without fit and predict and get_params"),
        (dict(estimators={3: DummyClassifier()}), TypeError, "A method's name is text, got 3"),
        (dict(metrics=[]), ValueError, "metrics is empty"),
        (dict(metrics="kappa"), TypeError, r"give a list of names, \['kappa'\]"),
        (dict(metrics=3), TypeError, "metrics must be a list of names, got 3"),
        (dict(metrics=[["kappa"]]), ValueError, r"Unknown metric \['kappa'\]; known are"),
        (dict(seeds=3), TypeError, "seeds must be a list of integers, got 3"),
        (dict(metrics=["auc"]), ValueError, "Unknown metric 'auc'; known are kappa"),
        (dict(metrics=["f1", "f1"]), ValueError, "metrics has an entry twice: f1, f1"),
        (dict(seeds=()), ValueError, "seeds is empty"),
        (dict(seeds=[0.5]), ValueError, "seeds are whole numbers from 0, got 0.5"),
        (dict(seeds=[1, 1]), ValueError, "seeds has an entry twice: 1, 1"),
        (dict(n_jobs=0), ValueError, "n_jobs must be a number of processes, .* got 0"),
        (dict(n_jobs="2"), ValueError, "got '2'"),
    ],
)
def test_invalid_arguments_raise(arguments, error, message):
    good = dict(estimators=DUMMY, metrics=["kappa"], seeds=[0], n_jobs=None)
    check_arguments(**good)
    with pytest.raises(error, match=message):
        check_arguments(**{**good, **arguments})


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ([], "test_subjects is empty"),
        ([1, 1], "test_subjects has a subject twice: 1, 1"),
        (["1", 7], "test_subjects has subjects '1', 7, not in the data, whose subjects are 1, 2"),
    ],
)
def test_unknown_subjects_raise(asked, message):
    assert check_subjects((2, 1), [1, 2], "test_subjects") == [2, 1]
    decomposed = unicodedata.normalize("NFD", "Jörg")
    assert check_subjects([decomposed], ["Jörg"], "test_subjects") == ["Jörg"]
    with pytest.raises(ValueError, match=message):
        check_subjects(asked, [1, 2], "test_subjects")


def test_a_list_is_not_a_subject():
    with pytest.raises(TypeError, match=r"test_subjects contains \[1\], which cannot be"):
        check_subjects([[1]], [1, 2], "test_subjects")


def test_subjects_are_sorted():
    assert in_order([10, 9, 10]) == [9, 10]
    assert in_order(["b", 1, "a"]) == [1, "a", "b"]
