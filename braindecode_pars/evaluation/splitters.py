"""Splitters: who is trained on and who is tested, as cross-validators of scikit-learn.

The protocols use them, and so do ``cross_val_score``, ``GridSearchCV`` and skorch.
"""

import warnings
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut, check_cv

from braindecode_pars._common import checks, tables
from braindecode_pars.evaluation.splitting import (
    Corpus,
    Fold,
    check_list,
    check_subjects,
    classes_of_subjects,
    draw_subjects,
    in_order,
    validates_by_split,
)
from braindecode_pars.windows import labels

_NONE = np.array([], dtype=int)


class Split(NamedTuple):
    """One training set and one test set.

    Attributes
    ----------
    train, test : ndarray of int
        Rows of the training and test windows.
    available : ndarray of int
        Rows that may be trained on, before labeled subjects are drawn.
    n_subjects : int
        Number of labeled training subjects.
    seed : int | None
        Seed of the draw; None where nothing is drawn.
    columns : dict
        Additional columns of the scores and their values.
    n_labeled : int
        Number of labeled training windows of the test subject.
    """

    train: np.ndarray
    test: np.ndarray
    available: np.ndarray
    n_subjects: int
    seed: int | None = None
    columns: Mapping[str, Any] = MappingProxyType({})
    n_labeled: int = 0


class Splitter(LeaveOneGroupOut):
    """Base class: a splitter yields rounds, and scikit-learn sees their training and test rows.

    ``split`` and ``get_n_splits`` take ``groups``, the subject of each window. ``X`` may be
    windows of :func:`~braindecode_pars.as_sklearn`, whose recordings, times and splits are then
    known, or any features with a row a window, in the order of time. It is a LeaveOneGroupOut,
    because MOABB gives groups to subclasses of scikit-learn's splitters of groups only.
    """

    #: Value of the column ``protocol`` in tables of scores.
    protocol = "evaluate"
    #: Whether scores get a row over all test windows together, as for fixed test subjects.
    pooled = False
    #: Subjects to test; None means all, or those of split "test".
    test_subjects: Sequence | None

    @abstractmethod
    def splits_of(self, corpus: Corpus, unused: np.ndarray = _NONE) -> Iterator[Split]:
        """Yield training and test rows; rows ``unused`` are neither drawn nor trained on."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple]:
        """Yield the training and the test rows of each split.

        Parameters
        ----------
        X : Windows | array-like, shape (n_windows, ...) | None
            Windows or their features.
        y : array-like, shape (n_windows,) | None
            Labels.
        groups : array-like, shape (n_windows,)
            Subject of each window.

        Raises
        ------
        ValueError
            When ``groups`` is missing, recordings of two subjects are copies of each other, or the
            subjects and windows do not suffice.
        """
        corpus = Corpus.of_arrays(X, y, groups)
        corpus.check_copies()
        for partition in self.splits_of(corpus):
            yield partition.train, partition.test

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits."""
        return sum(1 for _ in self.splits_of(Corpus.of_arrays(X, y, groups)))

    def _tested(self, corpus: Corpus, least: int = 2) -> list:
        """Return the subjects to test in turn."""
        subjects = corpus.subjects
        if len(subjects) < least:
            raise ValueError(f"Holding out a subject needs two; all windows are of {subjects[0]}.")
        if self.test_subjects is None:
            return subjects
        return check_subjects(self.test_subjects, subjects, "test_subjects")


# Whole subjects ---------------------------------------------------------------------------------


class LeaveOneSubjectOut(Splitter):
    """Test each subject in turn; all others are trained on.

    Parameters
    ----------
    test_subjects : sequence | None
        Subjects to test in turn; None means all.

    Examples
    --------
    >>> from braindecode_pars.evaluation import LeaveOneSubjectOut
    >>> groups = ["ann", "ann", "bob", "cleo"]
    >>> [test.tolist() for _, test in LeaveOneSubjectOut().split(None, groups=groups)]
    [[0, 1], [2], [3]]
    """

    protocol = "leave_one_subject_out"

    def __init__(self, test_subjects: Sequence | None = None):
        self.test_subjects = test_subjects

    def splits_of(self, corpus: Corpus, unused: np.ndarray = _NONE) -> Iterator[Split]:
        for subject in self._tested(corpus):
            test = corpus.rows_of([subject])
            train = np.setdiff1d(np.arange(len(corpus.groups)), test)
            yield from _rounds_of(corpus, train, test, unused)


class LabeledSubjects(Splitter):
    """Train on the labels of a few subjects, who are drawn at random, and test fixed others.

    Parameters
    ----------
    n_subjects : int | sequence of int | None
        Numbers of labeled training subjects. None means all that are not tested.
    cv : int | scikit-learn cross-validator | iterable of index pairs | None
        Cross-validator that divides the subjects, such as ``GroupKFold(5)``; an integer is the
        number of folds of whole subjects. None uses ``test_subjects``.
    test_subjects : sequence | None
        Subjects to test. None means those whose recordings have ``"test"`` as ``split``. The latter
        are never trained on, even when ``test_subjects`` are other subjects.
    train_subjects : sequence | None
        Subjects to draw from. None means all that are not tested.
    seeds : sequence of int
        Seeds of the draws. A draw of fewer subjects is part of each larger one of its seed; where
        each subject has one class, the classes come in turns.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation import LabeledSubjects
    >>> groups = np.repeat(["ann", "bob", "cleo", "dan"], 2)
    >>> splitter = LabeledSubjects([1, 3], test_subjects=["dan"], seeds=[0])
    >>> for train, test in splitter.split(None, groups=groups):
    ...     print(set(groups[train].tolist()) - {"ann", "bob"}, test)
    {'cleo'} [6 7]
    {'cleo'} [6 7]
    """

    def __init__(
        self,
        n_subjects: int | Sequence[int] | None = None,
        *,
        cv: Any = None,
        test_subjects: Sequence | None = None,
        train_subjects: Sequence | None = None,
        seeds: Sequence[int] = (0,),
    ):
        self.n_subjects = n_subjects
        self.cv = cv
        self.test_subjects = test_subjects
        self.train_subjects = train_subjects
        self.seeds = seeds

    @property
    def protocol(self) -> str:  # type: ignore[override]
        if self.n_subjects is not None:
            return "label_efficiency"
        return "transfer" if self.cv is None else "compare"

    @property
    def pooled(self) -> bool:  # type: ignore[override]
        return self.cv is None

    def splits_of(self, corpus: Corpus, unused: np.ndarray = _NONE) -> Iterator[Split]:
        numbers: list[int | None] = [None]
        if self.n_subjects is not None:
            numbers = np.atleast_1d(self.n_subjects).tolist()
            check_list("n_subjects", numbers, checks.integer(1))
        chosen = None
        if self.cv is not None:
            for name in ("test_subjects", "train_subjects"):
                if getattr(self, name) is not None:
                    raise ValueError(f"cv and {name} both choose the subjects; pass one of them.")
            pairs = [*_pairs(self.cv, corpus)]
        else:
            tested, left_out = self.fixed_subjects(corpus)
            rest = [s for s in corpus.subjects if s not in {*tested, *left_out}]
            pairs = [(corpus.rows_of(rest), corpus.rows_of(tested))]
            if self.train_subjects is not None:
                chosen = check_subjects(self.train_subjects, corpus.subjects, "train_subjects")
                if both := [str(subject) for subject in chosen if subject not in rest]:
                    raise ValueError(
                        f"train_subjects has test subjects: {', '.join(both)}; remove them."
                    )
        for train, test in pairs:
            seeds = [None] if self.n_subjects is None else self.seeds
            yield from _rounds_of(corpus, train, test, unused, numbers, seeds, chosen)

    def fixed_subjects(self, corpus: Corpus) -> tuple[list, list]:
        """Return the test subjects, and those who are neither tested nor trained on."""
        is_test = corpus.splits == "test"
        reserved, others = (corpus.subjects_of(mask) for mask in (is_test, ~is_test))
        if both := [str(subject) for subject in reserved if subject in others]:
            raise ValueError(
                f"Recordings of {', '.join(both)} are in split 'test' and in another split; put "
                "all recordings of a subject in one split."
            )
        if self.test_subjects is not None:
            return check_subjects(self.test_subjects, corpus.subjects, "test_subjects"), reserved
        if not reserved:
            where = f" in {corpus.name}" if corpus.name else ""
            raise ValueError(
                f"There are no test subjects{where}: no recording's description has 'split' "
                "'test'. Pass test_subjects, or use leave_one_subject_out."
            )
        return reserved, []


def _pairs(cv: Any, corpus: Corpus) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the training and test rows of a cross-validator that divides whole subjects."""
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        cv = GroupKFold(int(cv))
    cv, rows, groups = check_cv(cv), np.arange(len(corpus.groups)), corpus.groups
    # scikit-learn sorts the groups, which fails for subjects of mixed types; numbers can be sorted.
    number_of = {subject: number for number, subject in enumerate(corpus.subjects)}
    numbers = np.array([number_of[subject] for subject in groups.tolist()])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The groups parameter is ignored", UserWarning)
        pairs = list(cv.split(rows, corpus.y, numbers))
    for train, test in pairs:
        if both := in_order({*groups[train].tolist()} & {*groups[test].tolist()}):
            raise ValueError(
                f"cv puts windows of {', '.join(map(str, both))} in the training and the test set. "
                "Scores must be of held-out subjects; use cv with groups, such as GroupKFold."
            )
        yield rows[train], rows[test]


def _rounds_of(
    corpus: Corpus,
    available: np.ndarray,
    test: np.ndarray,
    unused: np.ndarray,
    numbers: Iterable[int | None] = (None,),
    seeds: Iterable[int | None] = (None,),
    chosen: Iterable | None = None,
) -> Iterator[Split]:
    """Yield a round for each number of labeled subjects and each seed of the draws."""
    train = np.setdiff1d(available, unused)
    trained_on, tested_on = map(corpus.subjects_of, (train, test))
    # Only labeled windows are tested; only labeled subjects are drawn for training.
    labeled = set(corpus.subjects_of(corpus.labeled))
    allowed = labeled if chosen is None else labeled.intersection(chosen)
    candidates = [subject for subject in trained_on if subject in allowed]
    if not candidates:
        raise ValueError(
            "No labeled subject remains for training when the test subjects are "
            f"{', '.join(map(str, tested_on))}; use fewer test subjects."
        )
    if absent := [str(subject) for subject in tested_on if subject not in labeled]:
        raise ValueError(f"There are no labeled windows to test of {', '.join(absent)}.")
    class_of = classes_of_subjects(corpus)
    # Kept in every round, for estimators that pretrain on unlabeled windows.
    unlabeled = [subject for subject in trained_on if subject not in labeled]
    test = np.unique(test[corpus.labeled[test]])
    for n, seed in product(numbers, seeds):
        n = len(candidates) if n is None else n
        drawn = candidates if seed is None else draw_subjects(candidates, n, int(seed), class_of)
        rows = np.intersect1d(train, corpus.rows_of([*drawn, *unlabeled]))
        yield Split(rows, test, available, n, seed)


# Windows of the test subject --------------------------------------------------------------------


_AMOUNTS = {
    "n_windows": checks.integer(0),
    "minutes": checks.number("of at least 0", lambda minutes: minutes >= 0),
}


class LabeledWindows(Splitter):
    """Train on all other subjects and on the first labeled windows of the test subject.

    The test windows of a subject are the same for all numbers of labeled windows: those after the
    largest number, of each class by itself, that have at least ``gap`` windows between them and
    every labeled one of their recording.

    Parameters
    ----------
    n_windows : int | sequence of int | None
        Numbers of labeled windows of each class, the first in the order of time; 0 is none.
    minutes : sequence of float | None
        Instead, lengths of the first part of each subject's windows. Needs windows of a known rate.
    gap : int
        Number of windows between labeled windows and test windows that are not used.
    test_subjects : sequence | None
        Subjects to test in turn; None means all.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation import LabeledWindows
    >>> groups, y = np.repeat(["ann", "bob"], 6), np.tile([0, 1], 6)
    >>> for train, test in LabeledWindows([0, 1], test_subjects=["bob"]).split(None, y, groups):
    ...     print(train[6:], test)
    [] [ 9 10 11]
    [6 7] [ 9 10 11]
    """

    protocol = "labeled_windows"

    def __init__(
        self,
        n_windows: int | Sequence[int] | None = None,
        *,
        minutes: Sequence[float] | None = None,
        gap: int = 1,
        test_subjects: Sequence | None = None,
    ):
        self.n_windows = n_windows
        self.minutes = minutes
        self.gap = gap
        self.test_subjects = test_subjects

    def splits_of(self, corpus: Corpus, unused: np.ndarray = _NONE) -> Iterator[Split]:
        if (self.n_windows is None) == (self.minutes is None):
            raise ValueError("Pass n_windows or minutes: how much of the test subject is labeled.")
        name = "n_windows" if self.minutes is None else "minutes"
        amounts = np.atleast_1d(getattr(self, name)).tolist()
        check_list(name, amounts, _AMOUNTS[name])
        for subject in self._tested(corpus):
            of_subject = corpus.in_time(subject)
            rows = of_subject[corpus.labeled[of_subject]]
            # What has to pass of the subject's windows until each one is labeled
            if name == "minutes":
                _, start, stop = corpus.spans
                sfreq, lengths = getattr(corpus.X, "sfreq", None), (stop - start)[rows]
                if sfreq is None or (lengths <= 0).any():
                    raise ValueError(
                        "Minutes need windows with a sampling rate and times; pass n_windows."
                    )
                before = (np.cumsum(lengths / sfreq) / 60).round(6)
            else:
                before = 1 + pd.Series(corpus.y[rows]).groupby(corpus.y[rows]).cumcount().to_numpy()
            test = corpus.rows_outside_gap(rows, rows[before <= max(amounts)], of_subject, self.gap)
            if not len(test):
                raise ValueError(
                    f"Subject {subject} has {len(rows)} labeled windows; none is left to test "
                    f"after {name}={max(amounts):g} and a gap of {self.gap}. Use less, or leave "
                    "the subject out of test_subjects."
                )
            available = np.setdiff1d(np.arange(len(corpus.groups)), of_subject)
            others = np.setdiff1d(available, unused)
            n = len(corpus.subjects_of(others[corpus.labeled[others]]))
            for amount in amounts:
                labeled = rows[before <= amount]
                train = np.union1d(others, labeled)
                columns = {name: amount}
                yield Split(train, np.sort(test), available, n, None, columns, len(labeled))


class WithinSubject(Splitter):
    """Test each block, or each recording, of a subject; train on the subject's others.

    Where a class comes in one stretch of time, there should be more blocks than classes, so that
    each training set has all of them.

    Parameters
    ----------
    n_blocks : int | None
        Number of blocks of equal size in the order of time; None means the subject's recordings.
    gap : int
        Number of windows on each side of the test block that are not trained on.
    test_subjects : sequence | None
        Subjects to test in turn; None means all.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation import WithinSubject
    >>> for train, test in WithinSubject(2).split(None, groups=np.zeros(6)):
    ...     print(train, test)
    [4 5] [0 1 2]
    [0 1] [3 4 5]
    """

    protocol = "within_subject"

    def __init__(
        self, n_blocks: int | None = 5, *, gap: int = 1, test_subjects: Sequence | None = None
    ):
        self.n_blocks = n_blocks
        self.gap = gap
        self.test_subjects = test_subjects

    def splits_of(self, corpus: Corpus, unused: np.ndarray = _NONE) -> Iterator[Split]:
        if len(unused):
            raise ValueError(
                "WithinSubject trains on one subject, and validation='split' validates on others; "
                "pass a share of the windows, such as validation=0.2."
            )
        for subject in self._tested(corpus, least=1):
            of_subject = corpus.in_time(subject)
            rows = of_subject[corpus.labeled[of_subject]]
            if self.n_blocks is None:
                recordings = corpus.spans[0][rows]
                blocks = [rows[recordings == recording] for recording in pd.unique(recordings)]
            else:
                blocks = [block for block in np.array_split(rows, self.n_blocks) if len(block)]
            if len(blocks) < 2:
                raise ValueError(
                    f"The labeled windows of subject {subject} make one block; two are needed."
                )
            for number, test in enumerate(blocks):
                train = np.sort(corpus.rows_outside_gap(rows, test, of_subject, self.gap))
                columns = {"block": number}
                yield Split(train, np.sort(test), train, 1, None, columns, len(train))


# Folds of a protocol ------------------------------------------------------------------------------


def make_folds(
    protocol: str,
    estimators: Mapping[str, BaseEstimator],
    corpus: Corpus,
    splitter: Splitter,
    seeds: Sequence[int],
    varied: Mapping[str, dict[str, Any]] | None = None,
) -> list[Fold]:
    """Make a fold for each round of a splitter, each seed and each method.

    If an estimator has ``validation="split"``, subjects with the split "valid" are not drawn for
    training, for none of the estimators.

    Parameters
    ----------
    protocol : str
        Value of the column ``protocol``.
    estimators : dict of str to estimator
        Estimators by method name.
    corpus : Corpus
        Windows to split.
    splitter : Splitter
        Who is trained on and tested.
    seeds : sequence of int
        Seeds of the estimators, in rounds without a draw; the others have the seed of the draw.
    varied : dict of str to dict | None
        Additional columns and their values, by method.

    Raises
    ------
    ValueError
        As the splitter does, or when an estimator has ``validation="split"`` and the split of a
        training window is neither "train" nor "valid".
    """
    folds: list[Fold] = []
    pretrain: dict[bytes, np.ndarray] = {}
    fixed = {name for name, estimator in estimators.items() if validates_by_split(estimator)}
    reserved = corpus.rows_of(corpus.subjects_of(corpus.splits == "test"))
    unused = valid = _NONE
    if fixed:
        # Unlabeled windows of the validation subjects, and of subjects in the split "valid"
        # without any label, are in neither part.
        unused = corpus.rows_of(corpus.subjects_of(corpus.splits == "valid"))
    for partition in splitter.splits_of(corpus, unused):
        if fixed:
            labeled = partition.available[corpus.labeled[partition.available]]
            splits, window_subjects = corpus.splits[labeled], corpus.groups[labeled]
            valid = labeled[labels.are_validation(splits, window_subjects, len(labeled))]
        # Without subjects of split "test", which a cv may train on.
        pretrained_on = np.setdiff1d(partition.available, [*unused, *reserved])
        tested = partition.test.tobytes()
        pretrain[tested] = np.union1d(pretrain.get(tested, _NONE), pretrained_on)
        folds += [
            Fold(
                protocol=protocol,
                dataset=corpus.name,
                method=method,
                n_train_subjects=partition.n_subjects,
                seed=int(seed),
                estimator=estimator,
                train=partition.train,
                test=partition.test,
                test_subjects=corpus.subjects_of(partition.test),
                valid=valid if method in fixed else _NONE,
                pooled=splitter.pooled,
                test_subject_data=tables.TestSubjectData.LABELED
                if partition.n_labeled
                else tables.TestSubjectData.NONE,
                varied={**partition.columns, **(varied or {}).get(method, {})},
            )
            for seed in (seeds if partition.seed is None else [partition.seed])
            for method, estimator in estimators.items()
        ]
    # Folds with the same test windows may pretrain on the windows of all.
    return [replace(fold, pretrain=pretrain[fold.test.tobytes()]) for fold in folds]
