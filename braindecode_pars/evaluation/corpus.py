"""The windows of one dataset with their subjects and labels, and the arguments of all protocols."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_regressor
from torch.utils.data import Dataset

from braindecode_pars._common import checks, tables
from braindecode_pars._common.subjects import normalized, warn_of_similar_names
from braindecode_pars.evaluation.metrics import METRICS
from braindecode_pars.windows import as_sklearn, labels, table


@dataclass(frozen=True, eq=False)
class Corpus:
    """The windows of a dataset with their labels and subjects.

    Attributes
    ----------
    name : str
        Value of the column ``dataset``.
    X : Windows, shape (n_windows,)
        The windows; none is read yet.
    y, groups : ndarray, shape (n_windows,)
        Labels and subjects.
    labeled : ndarray of bool, shape (n_windows,)
        Whether a window has a label.
    unlabeled_label : hashable | None
        Label of unlabelled windows; None when every window is labelled.
    splits : ndarray, shape (n_windows,)
        Entry ``split`` of the description of each window's recording; None where there is none.
    people : dict
        Name of each subject with the corpus in front, where that is known.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation.folds import Corpus
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=2)
    >>> corpus = Corpus.of(windows, "nights", unlabeled_label=-1)
    >>> corpus.subjects, corpus.rows_of([2]).tolist()
    ([1, 2], [12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23])
    """

    name: str
    X: table.Windows
    y: np.ndarray
    groups: np.ndarray
    labeled: np.ndarray
    unlabeled_label: Any
    splits: np.ndarray
    people: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, windows_ds: Dataset, name: str, unlabeled_label: Any) -> Corpus:
        """Make a corpus from a windows dataset.

        Parameters
        ----------
        windows_ds : BaseConcatDataset
            Labelled windows with ``subject`` in the descriptions.
        name : str
            Value of the column ``dataset``.
        unlabeled_label : hashable | None
            Label of unlabelled windows. ``"auto"`` means -1, with a warning when there are such
            windows. With None every window is labelled.

        Returns
        -------
        Corpus

        Raises
        ------
        ValueError
            When labels or subjects are missing, when labels are not classes or cannot be told from
            the label of unlabelled windows, or when a subject is called "all".

        Warns
        -----
        UserWarning
            When two names of subjects may be those of one person, and with ``"auto"`` when windows
            are taken as unlabelled.
        """
        X, y, groups = as_sklearn(windows_ds)
        if tables.POOLED in groups.tolist():
            raise ValueError(
                f"Rename the subject {tables.POOLED!r}, the name of rows over all subjects."
            )
        warn_of_similar_names(groups.tolist())
        unlabeled, label = labels.find_unlabeled(y, unlabeled_label)
        labels.check_class_labels(y[~unlabeled])
        named = groups if X.people is None else X.people
        people = dict(zip(groups.tolist(), named.tolist(), strict=True))
        splits = np.full(len(y), None) if X.splits is None else X.splits
        return cls(name, X, y, groups, ~unlabeled, label, splits, people)

    @property
    def subjects(self) -> list:
        """All subjects, sorted."""
        return in_order(self.groups.tolist())

    def subjects_of(self, windows: np.ndarray) -> list:
        """Return the subjects of some windows, sorted.

        Parameters
        ----------
        windows : ndarray of int or bool
            Indices of windows, or a mask of all windows, such as ``labeled``.

        Returns
        -------
        list
        """
        return in_order(self.groups[windows].tolist())

    def people_of(self, subjects: Iterable) -> dict[Any, Any]:
        """Return the name of each of these subjects with the corpus in front."""
        return {subject: self.people.get(subject, subject) for subject in subjects}

    def rows_of(self, subjects: Iterable) -> np.ndarray:
        """Return the rows of the windows of these subjects.

        Parameters
        ----------
        subjects : iterable
            Subjects whose windows to return.

        Returns
        -------
        ndarray of int
            Indices in the order of the dataset.
        """
        wanted = set(subjects)
        return np.flatnonzero([subject in wanted for subject in self.groups.tolist()])


@dataclass(frozen=True, eq=False)
class Fold:
    """One fit with its training and test windows.

    Attributes
    ----------
    protocol, dataset, method : str
        Values of the columns of these names.
    n_train_subjects : int
        Number of labelled training subjects. It includes the validation subjects that the estimator
        splits off them, but not those of ``valid``.
    seed : int
        Seed of every ``random_state`` and of torch's random state.
    estimator : estimator
        Unfitted estimator. A clone with this seed is fitted.
    train, test : ndarray of int
        Indices of the training and test windows.
    test_subjects : list
        Subjects of the test windows, in the order of the rows.
    valid : ndarray of int
        Indices of the fixed validation windows, which an estimator with ``validation="split"`` is
        given together with the training windows.
    pretrain : ndarray of int
        Indices of the windows that a pretraining for several folds may use: the training windows
        before subjects are drawn, without those of validation subjects and of split "test".
    pooled : bool
        Whether the scores get a row over all test windows together.
    varied : dict
        Additional columns and their values.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> from braindecode_pars.evaluation.folds import Fold
    >>> fold = Fold(
    ...     protocol="leave_one_subject_out",
    ...     dataset="nights",
    ...     method="chance",
    ...     n_train_subjects=2,
    ...     seed=0,
    ...     estimator=DummyClassifier(),
    ...     train=np.arange(48),
    ...     test=np.arange(48, 72),
    ...     test_subjects=[3],
    ... )
    >>> print(fold)
    chance on nights, subject 3, 2 training subjects, seed 0
    """

    protocol: str
    dataset: str
    method: str
    n_train_subjects: int
    seed: int
    estimator: BaseEstimator
    train: np.ndarray
    test: np.ndarray
    test_subjects: list
    valid: np.ndarray = field(default_factory=lambda: np.array([], dtype=int))
    pretrain: np.ndarray = field(default_factory=lambda: np.array([], dtype=int))
    pooled: bool = False
    varied: dict[str, Any] = field(default_factory=dict)

    @property
    def subject(self) -> Any:
        """Test subject; ``"all"`` with a pooled row; the joined names of several subjects."""
        if self.pooled:
            return tables.POOLED
        several = len(self.test_subjects) > 1
        return ", ".join(map(str, self.test_subjects)) if several else self.test_subjects[0]

    @property
    def key(self) -> dict[str, Any]:
        """Values of all columns except ``metric`` and ``value``."""
        return {name: getattr(self, name) for name in tables.SCORES[:-2]} | self.varied

    def __str__(self) -> str:
        where = f"{self.method} on {self.dataset}" if self.dataset else self.method
        subject = "" if self.subject == tables.POOLED else f", subject {self.subject}"
        return f"{where}{subject}, {self.n_train_subjects} training subjects, seed {self.seed}"


def check_arguments(
    estimators: Mapping[str, BaseEstimator],
    metrics: Sequence[str],
    seeds: Sequence[int],
    n_jobs: int | None,
    out: str | Path | None,
) -> None:
    """Check the arguments that all protocols share.

    Raises
    ------
    TypeError
        When the estimators are not a mapping of names to classifiers, or another argument has a
        wrong type.
    ValueError
        When there are no estimators, metrics or seeds, one is given twice or is unknown, or
        ``n_jobs`` is 0.
    """
    if not isinstance(estimators, Mapping):
        raise TypeError(f"estimators must be a dict of names, not a {type(estimators).__name__}.")
    check_list("estimators", list(estimators), checks.instance("names of methods as text", str))
    for method, estimator in estimators.items():
        missing = [n for n in ("fit", "predict", "get_params") if not hasattr(estimator, n)]
        if missing or isinstance(estimator, type):
            raise TypeError(f"{method} must be a scikit-learn classifier, got {estimator!r}.")
        if hasattr(estimator, "__sklearn_tags__") and is_regressor(estimator):
            to_use = "cross_val_predict of scikit-learn and evaluation.regression_scores"
            raise TypeError(f"{method} is a regressor, but protocols score classes; use {to_use}.")
    check_list("metrics", metrics, checks.choice(*METRICS))
    check_list("seeds", seeds, checks.integer(0))
    is_number = checks.Rule(
        "a number of processes, or -1 for all cores", (Integral,), lambda n: n != 0
    )
    checks.optional(is_number).check("n_jobs", n_jobs)
    checks.optional(checks.instance("the path of a folder", str, Path)).check("out", out)


def check_list(name: str, given: Collection, rule: checks.Rule) -> None:
    """Check that an argument is a list of different values that a rule accepts.

    Raises
    ------
    TypeError, ValueError
        When it is not a list, is empty, or has a wrong value or one value twice.
    """
    if isinstance(given, str) or not isinstance(given, Collection):
        raise TypeError(f"{name} must be a list, got {given!r}.")
    if len(given) == 0:
        raise ValueError(f"{name} is empty; there would be nothing to report.")
    for value in given:
        rule.check(name, value)
    if len(set(given)) < len(given):
        raise ValueError(f"{name} has an entry twice: {', '.join(map(str, given))}.")


def check_subjects(asked: Iterable, there: Iterable, name: str) -> list:
    """Return the requested subjects as a list.

    Raises
    ------
    ValueError
        When there are none, one is given twice, or one is not in the data.
    """
    if isinstance(asked, str) or not isinstance(asked, Iterable):
        raise ValueError(f"{name} is {asked!r}; give a list of subjects.")
    asked, there = [normalized(subject) for subject in asked], list(there)
    if absent := [repr(subject) for subject in asked if subject not in there]:
        known = checks.listed(list(map(repr, there)), most=20)
        raise ValueError(
            f"{name} has {checks.listed(absent)}, but the data have the subjects {known}."
        )
    if not asked or len(set(asked)) < len(asked):
        raise ValueError(f"{name} must have a subject, and each once; got {asked}.")
    return asked


def in_order(subjects: Iterable) -> list:
    """Return every subject once, sorted; by text where they are of several types."""
    unique = list(dict.fromkeys(subjects))
    try:
        return sorted(unique)
    except TypeError:
        return sorted(unique, key=str)
