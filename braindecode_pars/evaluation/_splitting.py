"""From a cross-validator to folds: which windows each fit is trained on and tested on."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut, PredefinedSplit, check_cv
from skorch.helper import SliceDataset
from torch.utils.data import ConcatDataset, Dataset, Subset

from braindecode_pars.evaluation._arguments import check_subjects, in_order
from braindecode_pars.evaluation.folds import Corpus, Fold

__all__ = [
    "Split",
    "draw_subjects",
    "given_split",
    "make_folds",
    "one_subject_out",
    "splitter",
]


class Split(NamedTuple):
    """A cross-validator, and the subjects whose windows it divides.

    Attributes
    ----------
    cv : cross-validator
        Of scikit-learn.
    subjects : list
        Those who take part; nobody else is trained on or tested on.
    train : list | None
        Subjects to train on among those who are not tested; None means all of them.
    pooled : bool
        Whether there is a row over all test windows together, as for fixed test subjects.
    """

    cv: Any
    subjects: list
    train: list | None = None
    pooled: bool = False


def one_subject_out(corpus: Corpus, test_subjects: Iterable | None = None) -> Split:
    """Leave one subject out at a time, each of some or of all.

    Raises
    ------
    ValueError
        When there is only one subject, or one is not in the data.
    """
    subjects = corpus.subjects
    if len(subjects) < 2:
        raise ValueError(
            "Leaving one subject out needs at least two subjects; all windows are of "
            f"{subjects[0]}."
        )
    if test_subjects is None:
        return Split(LeaveOneGroupOut(), subjects)
    tested = check_subjects(test_subjects, subjects, "test_subjects")
    fold_of = {subject: number for number, subject in enumerate(tested)}
    folds = [fold_of.get(subject, -1) for subject in corpus.groups.tolist()]
    return Split(PredefinedSplit(folds), subjects)


def given_split(
    windows_ds: Dataset,
    corpus: Corpus,
    test_subjects: Iterable | None = None,
    train_subjects: Iterable | None = None,
) -> Split:
    """Divide by the test subjects that are named, or that the recordings' descriptions name.

    Recordings whose description ``split`` is ``"test"`` are never trained on, also where
    ``test_subjects`` are others.

    Raises
    ------
    ValueError
        When there is no split, or a subject is on both sides of it.
    """
    there = corpus.subjects
    reserved = _reserved(windows_ds, corpus)
    test = reserved
    if test_subjects is not None:
        test = check_subjects(test_subjects, there, "test_subjects")
    elif not reserved:
        where = f" of {corpus.name}" if corpus.name else ""
        raise ValueError(
            f"There are no test subjects{where}: no recording's description has 'split' 'test'; "
            "pass test_subjects, or use leave_one_subject_out."
        )
    held_out = {*reserved, *test}
    chosen = None
    if train_subjects is not None:
        chosen = check_subjects(train_subjects, there, "train_subjects")
        both = [subject for subject in chosen if subject in held_out]
        if both:
            raise ValueError(
                f"Subject{'s' if len(both) > 1 else ''} {', '.join(map(str, both))} would be "
                "trained on and tested; take them out of train_subjects."
            )
    tested = set(test)
    subjects = [subject for subject in there if subject in tested or subject not in held_out]
    taking_part = corpus.groups[corpus.windows_of(subjects)].tolist()
    cv = PredefinedSplit([0 if subject in tested else -1 for subject in taking_part])
    return Split(cv, subjects, chosen, pooled=True)


def splitter(corpus: Corpus, cv: Any, default: Split | None, **instead: Any) -> Split:
    """The split that a protocol uses: that of ``cv``, where the user gives one.

    Parameters
    ----------
    corpus : Corpus
        What is divided.
    cv : int | cross-validator | iterable | None
        Of scikit-learn; an integer is a number of folds, each of whole subjects.
    default : Split | None
        Where ``cv`` is None.
    **instead
        Arguments that choose test subjects in another way, and contradict ``cv``.

    Raises
    ------
    ValueError
        When both are given.
    TypeError
        When ``cv`` is nothing of that kind.
    """
    if cv is None:
        return default
    both = [name for name, value in instead.items() if value is not None]
    if both:
        raise ValueError(f"cv and {both[0]} both choose the test subjects; pass one of them.")
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        cv = GroupKFold(int(cv))
    try:
        return Split(check_cv(cv), corpus.subjects)
    except ValueError as error:
        raise TypeError(
            f"cv is a {type(cv).__name__}; give a scikit-learn cross-validator, a number of "
            "folds, or pairs of training and test indices."
        ) from error


def draw_subjects(candidates: Sequence, n: int, seed: int) -> list:
    """The first ``n`` of a random order of the candidates.

    More subjects contain the fewer ones of the same seed.

    Raises
    ------
    ValueError
        When ``n`` is not between 1 and the number of candidates.

    Examples
    --------
    >>> from braindecode_pars.evaluation._splitting import draw_subjects
    >>> set(draw_subjects("abcdef", 2, seed=0)) < set(draw_subjects("abcdef", 4, seed=0))
    True
    """
    if not 1 <= n <= len(candidates):
        raise ValueError(
            f"{n} training subjects were asked for, there are {len(candidates)}; ask for 1 to "
            f"{len(candidates)}."
        )
    order = np.random.RandomState(seed).permutation(len(candidates))
    return [candidates[i] for i in order[:n]]


def make_folds(
    protocol: str,
    estimators: Mapping[str, BaseEstimator],
    corpus: Corpus,
    split: Split,
    seeds: Sequence[int],
    n_train_subjects: Sequence[int] | None = None,
    varied: Mapping[str, dict[str, Any]] | None = None,
) -> list[Fold]:
    """Make a fold for each division, number of training subjects, seed and method.

    Parameters
    ----------
    protocol : str
        For the column of this name.
    estimators : dict of str to estimator
        By method name.
    corpus : Corpus
        What is divided.
    split : Split
        How.
    seeds : sequence of int
        Of the draws of training subjects, and of the estimators.
    n_train_subjects : sequence of int | None
        Numbers of labelled subjects to draw; None means all.
    varied : dict of str to dict | None
        Further columns, by method.

    Raises
    ------
    ValueError
        When a subject would be on both sides, nobody with labels is left to train on, or a test
        subject has no labelled window.
    """
    folds = []
    labeled = set(corpus.labeled_subjects)
    for train_windows, test_windows in _divisions(corpus, split):
        trained_on, tested_on = map(corpus.subjects_of, (train_windows, test_windows))
        test = np.intersect1d(test_windows, corpus.test_windows(tested_on))
        allowed = labeled if split.train is None else labeled.intersection(split.train)
        candidates = [subject for subject in trained_on if subject in allowed]
        if not candidates:
            raise ValueError(
                "No labelled subject is left to train on beside the test subjects "
                f"{', '.join(map(str, tested_on))}."
            )
        # For the estimators that learn from windows without labels.
        unlabeled = [subject for subject in trained_on if subject not in labeled]
        for n in n_train_subjects or [len(candidates)]:
            for seed in seeds:
                drawn = draw_subjects(candidates, n, seed)
                train = np.intersect1d(train_windows, corpus.windows_of([*drawn, *unlabeled]))
                for method, estimator in estimators.items():
                    folds.append(
                        Fold(
                            protocol=protocol,
                            dataset=corpus.name,
                            method=method,
                            n_train_subjects=n,
                            seed=int(seed),
                            estimator=estimator,
                            train=train,
                            test=test,
                            test_subjects=tested_on,
                            pooled=split.pooled,
                            varied=(varied or {}).get(method, {}),
                        )
                    )
    return folds


def _divisions(corpus: Corpus, split: Split) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Indices of the training windows and of the test windows of each division."""
    windows = corpus.windows_of(split.subjects)
    groups = corpus.groups[windows]
    # As numbers, since subjects of mixed types cannot be ordered.
    number_of = {subject: number for number, subject in enumerate(split.subjects)}
    numbers = np.array([number_of[subject] for subject in groups.tolist()])
    for train, test in _split(split.cv, windows, corpus.y[windows], numbers):
        both = in_order({*groups[train].tolist()} & {*groups[test].tolist()})
        if both:
            raise ValueError(
                f"cv puts windows of subject{'s' if len(both) > 1 else ''} "
                f"{', '.join(map(str, both))} on both sides; scores here are of held-out "
                "subjects, so use a cross-validator with groups, such as GroupKFold."
            )
        yield windows[train], windows[test]


def _split(
    cv: Any, windows: np.ndarray, y: np.ndarray, groups: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """As ``cv.split``, without the warning of splitters that need no groups."""
    divisions = None
    while True:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The groups parameter is ignored", UserWarning)
            divisions = divisions or iter(cv.split(windows, y, groups))
            division = next(divisions, None)
        if division is None:
            return
        yield division


def _reserved(windows_ds: Dataset, corpus: Corpus) -> list:
    """Subjects whose recordings are said to be for testing."""
    splits = _entries(windows_ds, "split")
    pairs = set(zip(corpus.groups.tolist(), splits, strict=True))
    test = in_order(subject for subject, split in pairs if split == "test")
    both = [s for s in test if any(subject == s and split != "test" for subject, split in pairs)]
    if both:
        raise ValueError(
            f"Recordings of subject{'s' if len(both) > 1 else ''} {', '.join(map(str, both))} are "
            "in split 'test' and in another one; a subject belongs on one side."
        )
    return test


def _entries(dataset: Any, name: str) -> list:
    """An entry of the recordings' descriptions for every window; None where there is none."""
    if isinstance(dataset, SliceDataset):
        entries = _entries(dataset.dataset, name)
        return [entries[i] for i in dataset.indices_]
    if isinstance(dataset, Subset):
        entries = _entries(dataset.dataset, name)
        return [entries[i] for i in dataset.indices]
    if isinstance(dataset, ConcatDataset):
        return [entry for part in dataset.datasets for entry in _entries(part, name)]
    description = getattr(dataset, "description", None)
    entry = None if description is None else description.get(name)
    return [entry] * len(dataset)
