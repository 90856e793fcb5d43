"""Splitters of windows into training and test windows, compatible with scikit-learn.

The protocols use these splitters. They can also be passed to ``cross_val_score``,
``GridSearchCV`` and skorch.
"""

import warnings
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
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

#: Empty array of row indices.
_NONE = np.array([], dtype=int)


class Split(NamedTuple):
    """One training set and one test set of a splitter.

    Attributes
    ----------
    train, test : ndarray of int
        Indices of the training and test windows.
    available : ndarray of int
        Indices of the windows that are available for training and validation, before labeled
        subjects are drawn.
    n_subjects : int
        Number of labeled training subjects.
    seed : int | None
        Seed of the draw (random selection) of labeled subjects; None if no subjects are drawn.
    columns : dict
        Additional columns of the scores and their values.
    """

    train: np.ndarray
    test: np.ndarray
    available: np.ndarray
    n_subjects: int
    seed: int | None = None
    columns: Mapping[str, Any] = MappingProxyType({})


class Splitter(LeaveOneGroupOut):
    """Base class of splitters, with the interface of a scikit-learn cross-validator.

    ``split`` and ``get_n_splits`` require ``groups``, the subject of each window. ``X`` can be the
    windows from :func:`~braindecode_pars.as_sklearn`, which contain recordings, times and the entry
    ``split`` of the descriptions. ``X`` can also be any features with one row per window, in
    chronological order.

    The class inherits from LeaveOneGroupOut because MOABB passes groups only to subclasses of
    scikit-learn's group splitters.
    """

    #: Value of the column ``protocol`` in tables of scores.
    protocol = "evaluate"
    #: Whether the scores contain a row for all test windows together, as for fixed test subjects.
    pooled = False
    #: Subjects to test. If None, all subjects, or the subjects of split "test".
    test_subjects: Sequence | None

    @abstractmethod
    def splits_of(self, corpus: Corpus, unused: np.ndarray = _NONE) -> Iterator[Split]:
        """Yield the splits of a corpus (windows with labels and subjects).

        ``unused`` contains the indices of windows that are not used for training, such as the
        windows of validation subjects.
        """

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple]:
        """Generate indices of training and test windows for each split.

        Parameters
        ----------
        X : Windows | array-like, shape (n_windows, ...) | None
            Windows, or features with one row per window in chronological order. If None, only the
            subjects and labels are used.
        y : array-like, shape (n_windows,) | None
            Labels.
        groups : array-like, shape (n_windows,)
            Subject of each window.

        Yields
        ------
        train, test : ndarray of int
            Indices of the training and test windows.

        Raises
        ------
        ValueError
            If ``groups`` is missing, two subjects have duplicate recordings, or there are too few
            subjects or windows.
        """
        corpus = Corpus.of_arrays(X, y, groups)
        corpus.check_duplicates()
        for partition in self.splits_of(corpus):
            yield partition.train, partition.test

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits."""
        return sum(1 for _ in self.splits_of(Corpus.of_arrays(X, y, groups)))

    def _subjects_to_test(self, corpus: Corpus) -> list:
        """Return the subjects to test in turn."""
        if self.test_subjects is None:
            return corpus.subjects
        return check_subjects(self.test_subjects, corpus.subjects, "test_subjects")


# Whole subjects ---------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class LeaveOneSubjectOut(Splitter):
    """Leave-one-subject-out splitter: test each subject in turn, train on all other subjects.

    Parameters
    ----------
    test_subjects : sequence | None
        Subjects to test in turn. If None, all subjects.

    Examples
    --------
    >>> from braindecode_pars.evaluation import LeaveOneSubjectOut
    >>> groups = ["ann", "ann", "bob", "cleo"]
    >>> [test.tolist() for _, test in LeaveOneSubjectOut().split(None, groups=groups)]
    [[0, 1], [2], [3]]
    """

    protocol = "leave_one_subject_out"
    test_subjects: Sequence | None = None

    def splits_of(self, corpus: Corpus, unused: np.ndarray = _NONE) -> Iterator[Split]:
        for subject in self._subjects_to_test(corpus):
            test = corpus.rows_of([subject])
            train = np.setdiff1d(np.arange(len(corpus.groups)), test)
            yield from _splits_with_draws(corpus, train, test, unused)


@dataclass(eq=False, repr=False)
class LabeledSubjects(Splitter):
    """Label-efficiency splitter: train on subsets of labeled subjects, test on held-out subjects.

    Parameters
    ----------
    n_subjects : int | sequence of int | None
        Numbers of labeled training subjects. If None, all subjects that are not tested are used.
    cv : int | scikit-learn cross-validator | iterable of index pairs | None
        Cross-validator that splits by subject, such as ``GroupKFold(5)``. An integer is the number
        of folds of whole subjects. If None, ``test_subjects`` are held out.
    test_subjects : sequence | None
        Subjects to test. If None, the subjects whose recordings have ``"test"`` as ``split`` in
        their description. Subjects of split ``"test"`` are never used for training, even if they
        are not in ``test_subjects``.
    train_subjects : sequence | None
        Subjects from which labeled subjects are drawn. If None, all subjects that are not tested.
    seeds : sequence of int
        Seeds of the draws (random subsets of labeled subjects), only used with ``n_subjects``. With
        the same seed, a smaller draw is a subset of a larger draw. If each subject has windows of
        one class only, the drawn subjects alternate between the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation import LabeledSubjects
    >>> groups = np.repeat(["ann", "bob", "cleo", "dan"], 2)
    >>> splitter = LabeledSubjects([1, 3], test_subjects=["dan"], seeds=[0])
    >>> for train, test in splitter.split(None, groups=groups):
    ...     print(np.unique(groups[train]), test)
    ['cleo'] [6 7]
    ['ann' 'bob' 'cleo'] [6 7]
    """

    n_subjects: int | Sequence[int] | None = None
    _: KW_ONLY
    cv: Any = None
    test_subjects: Sequence | None = None
    train_subjects: Sequence | None = None
    seeds: Sequence[int] = (0,)

    @property
    def protocol(self) -> str:  # type: ignore[override]
        if self.n_subjects is not None:
            return "label_efficiency"
        return "transfer" if self.cv is None else "compare"

    @property
    def pooled(self) -> bool:  # type: ignore[override]
        return self.cv is None

    def splits_of(self, corpus: Corpus, unused: np.ndarray = _NONE) -> Iterator[Split]:
        numbers: Sequence[int | None] = [None]
        seeds: Sequence[int | None] = [None]
        if self.n_subjects is not None:
            numbers, seeds = np.atleast_1d(self.n_subjects).tolist(), self.seeds
            check_list("n_subjects", numbers, checks.integer(1))
        if self.cv is None:
            test_subjects, excluded = self.fixed_subjects(corpus)
            available = [s for s in corpus.subjects if s not in {*test_subjects, *excluded}]
            pairs = [(corpus.rows_of(available), corpus.rows_of(test_subjects))]
            candidates = self.train_subjects
            if candidates is not None:
                candidates = check_subjects(candidates, available, "train_subjects")
        elif self.test_subjects is None and self.train_subjects is None:
            pairs, candidates = [*_split_by_subject(self.cv, corpus)], None
        else:
            raise ValueError(
                "cv selects the test and training subjects, so it cannot be combined with "
                "test_subjects or train_subjects. Pass cv only, or omit cv."
            )
        for train, test in pairs:
            yield from _splits_with_draws(corpus, train, test, unused, numbers, seeds, candidates)

    def fixed_subjects(self, corpus: Corpus) -> tuple[list, list]:
        """Return the test subjects, and the subjects that are never used for training."""
        is_test = corpus.splits == "test"
        reserved, unreserved = (corpus.subjects_of(mask) for mask in (is_test, ~is_test))
        if overlap := [str(subject) for subject in reserved if subject in unreserved]:
            raise ValueError(
                "The same subject has recordings in split 'test' and in another split (subjects: "
                f"{', '.join(overlap)}). Assign all recordings of a subject to one split."
            )
        if self.test_subjects is not None:
            return check_subjects(self.test_subjects, corpus.subjects, "test_subjects"), reserved
        if not reserved:
            dataset = f" in dataset {corpus.name}" if corpus.name else ""
            raise ValueError(
                f"There are no test subjects{dataset}: test_subjects is None, and no recording has "
                "split='test' in its description. Pass test_subjects, or use "
                "leave_one_subject_out."
            )
        return reserved, []


def _split_by_subject(cv: Any, corpus: Corpus) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the training and test rows of a cross-validator that splits by subject."""
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        cv = GroupKFold(int(cv))
    rows, groups = np.arange(len(corpus.groups)), corpus.groups
    # scikit-learn sorts the groups, which fails for subjects of mixed types, so pass numbers.
    numbers = pd.Categorical(groups, categories=corpus.subjects).codes
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The groups parameter is ignored", UserWarning)
        pairs = list(check_cv(cv).split(rows, corpus.y, numbers))
    for train, test in pairs:
        if overlap := in_order({*groups[train].tolist()} & {*groups[test].tolist()}):
            raise ValueError(
                "cv puts windows of the same subject in both the training and the test set "
                f"(subjects: {', '.join(map(str, overlap))}), but test subjects must be held out. "
                "Use a cross-validator that splits by groups, such as GroupKFold."
            )
        yield rows[train], rows[test]


def _splits_with_draws(
    corpus: Corpus,
    available: np.ndarray,
    test: np.ndarray,
    unused: np.ndarray,
    numbers: Sequence[int | None] = (None,),
    seeds: Sequence[int | None] = (None,),
    candidates: Iterable | None = None,
) -> Iterator[Split]:
    """Yield a split for each number of labeled subjects and each seed of the draws."""
    train = np.setdiff1d(available, unused)
    train_subjects, test_subjects = map(corpus.subjects_of, (train, test))
    # Only labeled windows are tested; only labeled subjects are drawn for training.
    labeled = set(corpus.subjects_of(corpus.labeled))
    allowed = labeled if candidates is None else labeled.intersection(candidates)
    candidates = [subject for subject in train_subjects if subject in allowed]
    if not candidates:
        raise ValueError(
            "No labeled subject remains for training if the test subjects are "
            f"{', '.join(map(str, test_subjects))}. Use fewer test subjects, add subjects or "
            "labels, or use WithinSubject, which trains and tests on windows of the same subject."
        )
    if unlabeled_subjects := [str(subject) for subject in test_subjects if subject not in labeled]:
        raise ValueError(
            "Test subjects must have labeled windows, but these subjects have none: "
            f"{', '.join(unlabeled_subjects)}. Add labels, or test other subjects."
        )
    class_of = classes_of_subjects(corpus)
    # Subjects without labels are in every training set, because estimators can pretrain on them.
    unlabeled = [subject for subject in train_subjects if subject not in labeled]
    test = np.unique(test[corpus.labeled[test]])
    for n, seed in product(numbers, seeds):
        n = len(candidates) if n is None else n
        drawn = candidates if seed is None else draw_subjects(candidates, n, int(seed), class_of)
        rows = np.intersect1d(train, corpus.rows_of([*drawn, *unlabeled]))
        yield Split(rows, test, available, n, seed)


# Windows of the test subject --------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class LabeledWindows(Splitter):
    """Calibration splitter: train on all other subjects and the first windows of the test subject.

    Use this splitter to measure how scores improve with labeled data of a new subject. The test
    windows are the same for all amounts of labeled data: the windows of the test subject that
    remain after the largest amount was selected for training. In recordings with selected windows,
    windows that are at most ``gap`` windows away from a selected window are not tested.

    Parameters
    ----------
    n_windows : int | sequence of int | None
        Numbers of labeled windows per class: the first windows of each class of the test subject
        are labeled. With 0, no window of the test subject is labeled. Pass either ``n_windows`` or
        ``minutes``.
    minutes : sequence of float | None
        Durations of the labeled data in minutes: the first windows of the test subject are labeled.
        The sampling rate and the start times of the windows must be known.
    gap : int
        Number of unused windows between labeled windows and test windows.
    test_subjects : sequence | None
        Subjects to test in turn. If None, all subjects.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation import LabeledWindows
    >>> groups, y = np.repeat(["ann", "bob"], 6), np.tile([0, 1], 6)
    >>> for train, test in LabeledWindows([0, 1], test_subjects=["bob"]).split(None, y, groups):
    ...     print(train[6:], test)  # train[:6] are the windows of ann; window 8 is the gap
    [] [ 9 10 11]
    [6 7] [ 9 10 11]
    """

    protocol = "labeled_windows"
    n_windows: int | Sequence[int] | None = None
    _: KW_ONLY
    minutes: Sequence[float] | None = None
    gap: int = 1
    test_subjects: Sequence | None = None

    def splits_of(self, corpus: Corpus, unused: np.ndarray = _NONE) -> Iterator[Split]:
        if (self.n_windows is None) == (self.minutes is None):
            amounts = f"n_windows={self.n_windows!r} and minutes={self.minutes!r}"
            raise ValueError(f"Pass either n_windows or minutes, got {amounts}.")
        name = "n_windows" if self.minutes is None else "minutes"
        amounts = np.atleast_1d(getattr(self, name)).tolist()
        is_number = checks.number("of at least 0", lambda amount: amount >= 0)
        check_list(name, amounts, checks.integer(0) if name == "n_windows" else is_number)
        for subject in self._subjects_to_test(corpus):
            subject_windows = corpus.in_time(subject)
            rows = subject_windows[corpus.labeled[subject_windows]]
            # For each window of the subject: the smallest amount of labeled data that includes it
            if name == "minutes":
                _, start, stop = corpus.spans
                sfreq, lengths = getattr(corpus.X, "sfreq", None), (stop - start)[rows]
                if sfreq is None or (lengths <= 0).any():
                    raise ValueError(
                        "minutes= can only be used if the sampling rate and the start times of "
                        "the windows are known. Pass n_windows instead."
                    )
                required = (np.cumsum(lengths / sfreq) / 60).round(6)
            else:
                of_class = pd.Series(corpus.y[rows]).groupby(corpus.y[rows])
                required = 1 + of_class.cumcount().to_numpy()
            labeled = rows[required <= max(amounts)]
            test = corpus.rows_outside_gap(rows, labeled, subject_windows, self.gap)
            if not len(test):
                raise ValueError(
                    f"Subject {subject} has {len(rows)} labeled windows, and no test window "
                    f"remains with {name}={max(amounts):g} and gap={self.gap}. Use a smaller "
                    f"{name}, or exclude the subject from test_subjects."
                )
            available = np.setdiff1d(np.arange(len(corpus.groups)), subject_windows)
            (others,) = _splits_with_draws(corpus, available, subject_windows, unused)
            for amount in amounts:
                train = np.union1d(others.train, rows[required <= amount])
                columns = {name: amount}
                yield others._replace(train=train, test=np.sort(test), columns=columns)


@dataclass(eq=False, repr=False)
class WithinSubject(Splitter):
    """Within-subject splitter: cross-validation over time blocks or recordings of each subject.

    Each block is tested once, after training on the other blocks of the same subject. If the
    windows of a class are contiguous in time, use more blocks than classes, so that each training
    set contains all classes.

    Parameters
    ----------
    n_blocks : int | None
        Number of blocks of equal size, in chronological order. If None, each recording of the
        subject is a block.
    gap : int
        Number of windows on each side of the test block that are excluded from training.
    test_subjects : sequence | None
        Subjects to test in turn. If None, all subjects.

    Examples
    --------
    Two blocks of three windows. With the default ``gap=1``, the window next to the test block is
    not used for training:

    >>> import numpy as np
    >>> from braindecode_pars.evaluation import WithinSubject
    >>> for train, test in WithinSubject(2).split(None, groups=np.zeros(6)):
    ...     print(train, test)
    [4 5] [0 1 2]
    [0 1] [3 4 5]
    """

    protocol = "within_subject"
    n_blocks: int | None = 5
    _: KW_ONLY
    gap: int = 1
    test_subjects: Sequence | None = None

    def splits_of(self, corpus: Corpus, unused: np.ndarray = _NONE) -> Iterator[Split]:
        for subject in self._subjects_to_test(corpus):
            subject_windows = corpus.in_time(subject)
            rows = subject_windows[corpus.labeled[subject_windows]]
            if self.n_blocks is None:
                recordings = corpus.spans[0][rows]
                blocks = [rows[recordings == recording] for recording in pd.unique(recordings)]
            else:
                blocks = [block for block in np.array_split(rows, self.n_blocks) if len(block)]
            if len(blocks) < 2:
                raise ValueError(
                    "WithinSubject requires at least 2 blocks of labeled windows per subject, but "
                    f"subject {subject} has {len(blocks)}. Pass n_blocks=2 or more, label "
                    "more windows of the subject, or exclude the subject from test_subjects."
                )
            for number, test in enumerate(blocks):
                train = np.sort(corpus.rows_outside_gap(rows, test, subject_windows, self.gap))
                yield Split(train, np.sort(test), train, 1, columns={"block": number})


# Folds of a protocol ------------------------------------------------------------------------------


def make_folds(
    estimators: Mapping[str, BaseEstimator],
    corpus: Corpus,
    splitter: Splitter,
    seeds: Sequence[int],
    varied: Mapping[str, dict[str, Any]] | None = None,
    encoder_parameters: Mapping[str, int] | None = None,
) -> list[Fold]:
    """Combine each split of a splitter with each seed and method, and return the folds.

    A fold is one fit with its training and test windows. If any estimator has
    ``validation="split"``, subjects of split "valid" are reserved for validation, and no estimator
    is trained on them.

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators by method name.
    corpus : Corpus
        Windows to split.
    splitter : Splitter
        Splitter into training and test windows.
    seeds : sequence of int
        Seeds of the estimators. If the splitter draws labeled subjects at random, the seeds of the
        draws are used instead.
    varied : dict of str to dict | None
        Additional columns and their values, by method.
    encoder_parameters : dict of str to int | None
        Number of encoder parameters by method, for methods that have an encoder.

    Raises
    ------
    ValueError
        If the splitter cannot split the windows. If an estimator has ``validation="split"``, and
        the entry ``split`` of a training window is neither "train" nor "valid".
    """
    folds: list[Fold] = []
    with_split = {name for name, estimator in estimators.items() if validates_by_split(estimator)}
    unused = valid = _NONE
    if with_split:
        # Validation uses labeled windows only. The other windows of subjects in split "valid" are
        # used neither for training nor for validation.
        unused = corpus.rows_of(corpus.subjects_of(corpus.splits == "valid"))
    # Subjects of split "test" are not used for pretraining either, although a cv may use them for
    # training.
    reserved = np.union1d(unused, corpus.rows_of(corpus.subjects_of(corpus.splits == "test")))
    for partition in splitter.splits_of(corpus, unused):
        if with_split:
            labeled = partition.available[corpus.labeled[partition.available]]
            splits, window_subjects = corpus.splits[labeled], corpus.groups[labeled]
            valid = labeled[labels.are_validation(splits, window_subjects, len(labeled))]
        pretrain = np.setdiff1d(partition.available, reserved)
        test_subjects = corpus.subjects_of(partition.test)
        is_calibrated = np.isin(partition.train, corpus.rows_of(test_subjects)).any()
        used_data = tables.TestSubjectData.LABELED if is_calibrated else tables.TestSubjectData.NONE
        folds += [
            Fold(
                protocol=splitter.protocol,
                dataset=corpus.name,
                method=method,
                n_train_subjects=partition.n_subjects,
                seed=int(seed),
                estimator=estimator,
                train=partition.train,
                test=partition.test,
                test_subjects=test_subjects,
                valid=valid if method in with_split else _NONE,
                pretrain=pretrain,
                pooled=splitter.pooled,
                test_subject_data=used_data,
                varied={**partition.columns, **(varied or {}).get(method, {})},
                encoder_parameters=(encoder_parameters or {}).get(method),
            )
            for seed in (seeds if partition.seed is None else [partition.seed])
            for method, estimator in estimators.items()
        ]
    return folds
