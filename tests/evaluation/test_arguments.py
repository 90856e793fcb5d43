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
        (dict(estimators={}), ValueError, "estimators"),
        (dict(estimators=DummyClassifier()), TypeError, "DummyClassifier"),
        (
            dict(estimators={"A": DummyClassifier}),
            TypeError,
            r"DummyClassifier\(",
        ),
        (dict(estimators={"A": 3}), TypeError, "A .* fit .* predict"),
        (dict(estimators={3: DummyClassifier()}), TypeError, "3"),
        (dict(metrics=[]), ValueError, "metrics"),
        (dict(metrics="kappa"), TypeError, r"\['kappa'\]"),
        (dict(metrics=3), TypeError, "metrics .* 3"),
        (dict(metrics=[["kappa"]]), ValueError, r"\['kappa'\]"),
        (dict(seeds=3), TypeError, "seeds .* 3"),
        (dict(metrics=["auc"]), ValueError, "'auc'.* kappa"),
        (dict(metrics=["f1", "f1"]), ValueError, "metrics .* f1, f1"),
        (dict(seeds=()), ValueError, "seeds"),
        (dict(seeds=[0.5]), ValueError, r"seeds .* 0\.5"),
        (dict(seeds=[1, 1]), ValueError, "seeds .* 1, 1"),
        (dict(n_jobs=0), ValueError, "n_jobs .* 0"),
        (dict(n_jobs="2"), ValueError, "n_jobs .* '2'"),
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
        ([], "test_subjects"),
        ([1, 1], "test_subjects .* 1, 1"),
        (["1", 7], "test_subjects .* '1', 7,.* 1, 2"),
    ],
)
def test_unknown_subjects_raise(asked, message):
    assert check_subjects((2, 1), [1, 2], "test_subjects") == [2, 1]
    decomposed = unicodedata.normalize("NFD", "Jörg")
    assert check_subjects([decomposed], ["Jörg"], "test_subjects") == ["Jörg"]
    with pytest.raises(ValueError, match=message):
        check_subjects(asked, [1, 2], "test_subjects")


def test_a_list_is_not_a_subject():
    with pytest.raises(TypeError, match=r"test_subjects .* \[1\]"):
        check_subjects([[1]], [1, 2], "test_subjects")


def test_subjects_are_sorted():
    assert in_order([10, 9, 10]) == [9, 10]
    assert in_order(["b", 1, "a"]) == [1, "a", "b"]
