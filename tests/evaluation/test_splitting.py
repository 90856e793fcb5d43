"""Training and test subjects for every way to split subjects, and invalid arguments."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GroupKFold, KFold
from support.subjects import with_split, with_subject
from torch.utils.data import Subset

from braindecode_pars import PARSClassifier
from braindecode_pars.evaluation.splitters import (
    LabelledSubjects,
    LeaveOneSubjectOut,
    Splitter,
    make_folds,
)
from braindecode_pars.evaluation.splitting import (
    Corpus,
    Fold,
    check_arguments,
    check_subjects,
    draw_subjects,
    in_order,
)

SPLIT = {1: "train", 2: "valid", 3: "test", 4: "test"}


def folds_of(corpus: Corpus, splitter: Splitter, estimator=None) -> list[Fold]:
    methods = {"A": estimator or DummyClassifier()}
    return make_folds("p", methods, corpus, splitter, [0])


def subjects_of_folds(corpus: Corpus, splitter: Splitter) -> list[tuple[list, list]]:
    """Training and test subjects of every fold."""
    folds = folds_of(corpus, splitter)
    return [(corpus.subjects_of(fold.train), corpus.subjects_of(fold.test)) for fold in folds]


def subjects_of_given_split(windows, test=None, train=None) -> list[tuple[list, list]]:
    corpus = Corpus.of(windows, "nights", -1)
    return subjects_of_folds(corpus, LabelledSubjects(test_subjects=test, train_subjects=train))


def test_subjects_of_split_test_are_tested(nights):
    assert subjects_of_given_split(with_split(nights, SPLIT)) == [([1, 2], [3, 4])]
    # The split is also found in a subset of the windows.
    assert subjects_of_given_split(Subset(with_split(nights, SPLIT), range(72))) == [([1, 2], [3])]


def test_test_subjects_can_be_given(nights):
    assert subjects_of_given_split(nights, [2]) == [([1, 3, 4], [2])]
    assert subjects_of_given_split(nights, [2], [4, 1]) == [([1, 4], [2])]


def test_subjects_of_split_test_are_never_trained_on(nights):
    assert subjects_of_given_split(with_split(nights, SPLIT), [2]) == [([1], [2])]


def test_subjects_without_labels_are_trained_on_but_not_counted(nights):
    windows = with_subject(nights, 2, target=-1)
    corpus = Corpus.of(windows, "nights", -1)
    (fold,) = folds_of(corpus, LabelledSubjects(test_subjects=[4]))
    assert corpus.subjects_of(fold.train) == [1, 2, 3]
    assert fold.n_train_subjects == 2
    assert fold.pooled


def test_one_subject_out_is_leave_one_group_out(nights):
    corpus = Corpus.of(nights, "nights", -1)
    split = LeaveOneSubjectOut()
    others = {1: [2, 3, 4], 2: [1, 3, 4], 3: [1, 2, 4], 4: [1, 2, 3]}
    assert subjects_of_folds(corpus, split) == [
        (others[subject], [subject]) for subject in (1, 2, 3, 4)
    ]
    some = subjects_of_folds(corpus, LeaveOneSubjectOut([3, 1]))
    assert some == [(others[3], [3]), (others[1], [1])]


@pytest.mark.parametrize(
    "cv", [GroupKFold(2), 2, [(np.arange(48), np.arange(48, 96)), (np.arange(48, 96), range(48))]]
)
def test_any_cross_validator_divides_whole_subjects(nights, cv):
    corpus = Corpus.of(nights, "nights", -1)
    found = subjects_of_folds(corpus, LabelledSubjects(cv=cv))
    assert len(found) == 2
    for train, test in found:
        assert len(train) == len(test) == 2
        assert {*train, *test} == {1, 2, 3, 4}


def test_the_windows_of_a_cross_validator_are_kept(nights):
    """A cross-validator may use only some of the windows of a subject."""
    corpus = Corpus.of(nights, "nights", -1)
    (fold,) = folds_of(corpus, LabelledSubjects(cv=[(range(5), range(24, 31))]))
    assert fold.train.tolist() == list(range(5))
    assert fold.test.tolist() == list(range(24, 31))


def test_an_invalid_cross_validator_raises(nights):
    corpus = Corpus.of(nights, "nights", -1)
    with pytest.raises(ValueError, match="GroupKFold"):
        subjects_of_folds(corpus, LabelledSubjects(cv=KFold(2, shuffle=True, random_state=0)))
    with pytest.raises(ValueError, match="Expected `cv`"):
        subjects_of_folds(corpus, LabelledSubjects(cv="groups"))
    with pytest.raises(ValueError, match="test_subjects"):
        subjects_of_folds(corpus, LabelledSubjects(cv=GroupKFold(2), test_subjects=[1]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nights.* test_subjects"),
        (([9],), "test_subjects .* 9"),
        (([1, 2], [2, 3]), "train_subjects .* 2"),
        (([1, 2, 3, 4],), "1, 2, 3, 4"),
        (([1], []), "train_subjects"),
    ],
)
def test_an_invalid_split_raises(nights, arguments, message):
    with pytest.raises(ValueError, match=message):
        subjects_of_given_split(nights, *arguments)


def test_a_subject_in_two_splits_raises(nights):
    windows = with_split(nights, SPLIT)
    both = BaseConcatDataset(
        [*windows.datasets, *with_subject(windows, 3, split="train").datasets[2:3]]
    )
    with pytest.raises(ValueError, match=r"3 .* 'test'"):
        subjects_of_given_split(both)


def test_draws_are_nested_and_new_for_every_seed():
    subjects = list(range(30))
    for seed in range(5):
        orders = [draw_subjects(subjects, n, seed) for n in (3, 10, 30)]
        assert orders[0] == orders[1][:3] == orders[2][:3]
        assert sorted(orders[2]) == subjects
    assert len({tuple(draw_subjects(subjects, 3, seed)) for seed in range(5)}) == 5
    with pytest.raises(ValueError, match=r"31.* 30"):
        draw_subjects(subjects, 31, 0)


def test_a_draw_of_subjects_of_one_class_each_has_all_classes():
    class_of = {subject: "abc"[subject % 3] for subject in range(30)}
    for seed in range(20):
        drawn = draw_subjects(list(class_of), 6, seed, class_of)
        assert sorted(class_of[s] for s in drawn) == [*"aabbcc"]
        assert drawn[:3] == draw_subjects(list(class_of), 3, seed, class_of)
        assert sorted(class_of[s] for s in drawn[:3]) == [*"abc"]
    assert len({tuple(draw_subjects(list(class_of), 6, seed, class_of)) for seed in range(5)}) == 5


def test_validation_subjects_without_labels_are_not_trained_on(nights):
    splits = {1: "train", 2: "valid", 3: "test", 4: "valid"}
    labels = BaseConcatDataset(
        [
            part if part.description["subject"] < 4 else without_labels(part)
            for part in with_split(nights, splits).datasets
        ]
    )
    corpus = Corpus.of(labels, "nights", -1)
    estimator = PARSClassifier(validation="split")
    (fold,) = folds_of(corpus, LabelledSubjects(test_subjects=[3]), estimator)
    assert corpus.subjects_of(np.union1d(fold.train, fold.valid)) == [1, 2]


def without_labels(windows):
    metadata = windows.metadata.assign(target=-1)
    return EEGWindowsDataset(windows.raw, metadata, dict(windows.description))


def test_subjects_and_their_windows(nights):
    masked = BaseConcatDataset(
        nights.datasets, target_transform=lambda label: -1 if label == 2 else label
    )
    corpus = Corpus.of(masked, "nights", -1)
    assert corpus.subjects == corpus.subjects_of(corpus.labeled) == [1, 2, 3, 4]
    np.testing.assert_array_equal(corpus.rows_of([2]), np.arange(24, 48))
    (fold,) = folds_of(corpus, LabelledSubjects(test_subjects=[2]))
    assert (corpus.y[fold.test] != -1).all()
    assert len(fold.test) == (corpus.y[24:48] != -1).sum()


def test_a_test_subject_without_labels_raises(nights):
    corpus = Corpus.of(with_subject(nights, 3, target=-1), "", -1)
    assert corpus.subjects_of(corpus.labeled) == [1, 2, 4]
    splitter = LabelledSubjects(test_subjects=[1, 3])
    with pytest.raises(ValueError, match="no labelled windows to test of 3"):
        folds_of(corpus, splitter)


def test_a_subject_called_all_raises(nights):
    with pytest.raises(ValueError, match="'all'"):
        Corpus.of(with_subject(nights, 3, subject="all"), "", -1)


def test_names_that_may_be_one_subject_are_reported(nights):
    """They stay two subjects, one of which may be trained on while the other is tested."""
    with pytest.warns(UserWarning, match="'03'") as caught:
        corpus = Corpus.of(with_subject(nights, 1, subject="03"), "", -1)
    assert set(corpus.subjects) == {"03", 2, 3, 4}
    assert len(caught) == 1


DUMMY = {"A": DummyClassifier()}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (dict(estimators={}), ValueError, "estimators"),
        (dict(estimators=DummyClassifier()), TypeError, "DummyClassifier"),
        (dict(estimators={"A": DummyClassifier}), TypeError, "A .*DummyClassifier"),
        (dict(estimators={"A": 3}), TypeError, "A .* 3"),
        (dict(estimators={3: DummyClassifier()}), TypeError, "3"),
        (dict(metrics=[]), ValueError, "metrics"),
        (dict(metrics="kappa"), TypeError, "'kappa'"),
        (dict(metrics=3), TypeError, "metrics .* 3"),
        (dict(metrics=[["kappa"]]), ValueError, r"\['kappa'\]"),
        (dict(seeds=3), TypeError, "seeds .* 3"),
        (dict(metrics=["auc"]), ValueError, "kappa.* 'auc'"),
        (dict(metrics=["f1", "f1"]), ValueError, "metrics .* f1, f1"),
        (dict(seeds=()), ValueError, "seeds"),
        (dict(seeds=[0.5]), TypeError, r"seeds .* 0\.5"),
        (dict(seeds=[1, 1]), ValueError, "seeds .* 1, 1"),
        (dict(n_jobs=0), ValueError, "n_jobs .* 0"),
        (dict(out=3), TypeError, "out .* 3"),
        (dict(n_jobs="2"), TypeError, "n_jobs .* '2'"),
    ],
)
def test_invalid_arguments_raise(arguments, error, message):
    good = dict(estimators=DUMMY, metrics=["kappa"], seeds=[0], n_jobs=None, out=None)
    check_arguments(**good)
    with pytest.raises(error, match=message):
        check_arguments(**{**good, **arguments})


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ([], "test_subjects"),
        ([1, 1], r"test_subjects .* \[1, 1\]"),
        (["1", 7], "test_subjects .* '1', 7,.* 1, 2"),
        ([[1]], r"test_subjects .* \[1\]"),
    ],
)
def test_unknown_subjects_raise(asked, message):
    assert check_subjects((2, 1), [1, 2], "test_subjects") == [2, 1]
    decomposed = unicodedata.normalize("NFD", "Jörg")
    assert check_subjects([decomposed], ["Jörg"], "test_subjects") == ["Jörg"]
    with pytest.raises(ValueError, match=message):
        check_subjects(asked, [1, 2], "test_subjects")


def test_subjects_are_sorted():
    assert in_order([10, 9, 10]) == [9, 10]
    assert in_order(["b", 1, "a"]) == [1, "a", "b"]
