"""The windows of a dataset with labels and subjects, and who of them is trained on and tested."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils import check_consistent_length

from braindecode_pars._common import checks, tables
from braindecode_pars._common.subjects import normalized, warn_of_similar_names
from braindecode_pars.estimators.windows_estimator import parameters_called
from braindecode_pars.evaluation.metrics import METRICS
from braindecode_pars.windows import as_sklearn, convert, duplicates, labels, table


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
        Label of unlabeled windows; None when every window is labeled.
    splits : ndarray, shape (n_windows,)
        Entry ``split`` of the description of each window's recording; None where there is none.
    corpus_subjects : dict
        Name of each subject with the corpus in front, where that is known.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation.splitting import Corpus
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
    corpus_subjects: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, windows_ds: Any, name: str, unlabeled_label: Any) -> Self:
        """Make a corpus from a windows dataset.

        Parameters
        ----------
        windows_ds : BaseConcatDataset
            Labeled windows with ``subject`` in the descriptions.
        name : str
            Value of the column ``dataset``.
        unlabeled_label : hashable | None
            Label of unlabeled windows. ``"auto"`` means -1, with a warning when there are such
            windows. With None every window is labeled.

        Returns
        -------
        Corpus

        Raises
        ------
        ValueError
            When labels or subjects are missing, when labels are not classes or cannot be told from
            the label of unlabeled windows, or when a subject is called "all".

        Warns
        -----
        UserWarning
            When two subjects may be one subject, when classes look the same, and with ``"auto"``
            when windows are taken as unlabeled.
        """
        X, y, groups = as_sklearn(windows_ds)
        if tables.POOLED in groups.tolist():
            raise ValueError(
                f"Rename the subject {tables.POOLED!r}, the name of rows over all subjects."
            )
        warn_of_similar_names(groups.tolist())
        unlabeled, label = labels.find_unlabeled(y, unlabeled_label)
        labels.check_class_labels(y[~unlabeled])
        labels.warn_of_similar_classes(set(y[~unlabeled].tolist()), X.label_names)
        named = groups if X.corpus_subjects is None else X.corpus_subjects
        names_with_corpus = dict(zip(groups.tolist(), named.tolist(), strict=True))
        splits = np.full(len(y), None) if X.splits is None else X.splits
        return cls(name, X, y, groups, ~unlabeled, label, splits, names_with_corpus)

    @classmethod
    def of_arrays(cls, X: Any, y: Any, groups: Any) -> Self:
        """Make a corpus of what scikit-learn passes to a splitter; every window has a label.

        Raises
        ------
        ValueError
            When there are no groups, a subject is missing, or the lengths differ.

        Warns
        -----
        UserWarning
            When two subjects may be one subject.
        """
        if groups is None:
            raise ValueError(
                "groups is None; pass the subject of each window, the third value of as_sklearn."
            )
        groups = convert.subject_column(groups, len(groups))
        y = np.zeros(len(groups), dtype=int) if y is None else np.asarray(y)
        check_consistent_length(X, y, groups)
        warn_of_similar_names(groups.tolist())
        splits = getattr(X, "splits", None)
        splits = np.full(len(y), None) if splits is None else splits
        return cls("", X, y, groups, np.ones(len(y), dtype=bool), None, splits)

    @property
    def subjects(self) -> list:
        """All subjects, sorted."""
        return in_order(self.groups.tolist())

    def subjects_of(self, windows: np.ndarray) -> list:
        """Return the subjects of some windows, by indices or a mask, sorted."""
        return in_order(self.groups[windows].tolist())

    def corpus_subjects_of(self, subjects: Iterable) -> dict[Any, Any]:
        """Return the name of each of these subjects with the corpus in front."""
        return {subject: self.corpus_subjects.get(subject, subject) for subject in subjects}

    def rows_of(self, subjects: Iterable) -> np.ndarray:
        """Return the indices of the windows of these subjects, in the order of the dataset."""
        wanted = set(subjects)
        return np.flatnonzero([subject in wanted for subject in self.groups.tolist()])

    @cached_property
    def spans(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Recording, first sample and end of each window; the last two are equal where unknown."""
        if isinstance(self.X, table.Windows):
            return tuple(self.X.table[["recording", "start", "stop"]].to_numpy().T)
        return (np.zeros(len(self.groups), dtype=int),) * 3

    def in_time(self, subject: Any) -> np.ndarray:
        """Return the indices of a subject's windows, in the order of time in each recording."""
        rows = self.rows_of([subject])
        recordings, starts, _ = self.spans
        return rows[np.lexsort((starts[rows], recordings[rows]))]

    def rows_outside_gap(
        self, rows: np.ndarray, others: np.ndarray, in_time: np.ndarray, gap: int
    ) -> np.ndarray:
        """Return the rows that have ``gap`` windows between them and others of their recording.

        Raises
        ------
        ValueError
            When one of them still overlaps one of the others.
        """
        checks.integer(0).check("gap", gap)
        position = np.empty(len(self.groups), dtype=int)
        position[in_time] = np.arange(len(in_time))
        recordings, start, stop = self.spans
        same = recordings[rows][:, None] == recordings[others]
        near = np.abs(position[rows][:, None] - position[others]) <= gap
        far = ~(same & near).any(axis=1)
        overlap = (start[rows][:, None] < stop[others]) & (start[others] < stop[rows][:, None])
        if (same & overlap)[far].any():
            raise ValueError(
                f"Training and test windows overlap in time with gap={gap}; pass a larger gap."
            )
        return rows[far]

    def check_copies(self) -> None:
        """Raise ValueError when recordings of two subjects contain the same signals."""
        if not isinstance(self.X, table.Windows):
            return
        windows = self.X.with_subjects(self.groups)
        subjects = windows.recordings["subject"]
        for first, second in duplicates.find_duplicates(windows):
            if subjects[first] != subjects[second]:
                raise ValueError(
                    f"The subjects {subjects[first]} and {subjects[second]} have the same signals: "
                    "training and test data would overlap. Remove one, or give both one subject."
                )


@dataclass(frozen=True, eq=False)
class Fold:
    """One fit with its training and test windows.

    Attributes
    ----------
    protocol, dataset, method : str
        Values of the columns of these names.
    n_train_subjects : int
        Number of labeled training subjects. It includes the validation subjects that the estimator
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
    test_subject_data : TestSubjectData
        What the training windows give away of the test subject.
    encoder_parameters : int | None
        Number of parameters of the encoder, where the methods have encoders of different sizes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> from braindecode_pars.evaluation.splitting import Fold
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
    test_subject_data: tables.TestSubjectData = tables.TestSubjectData.NONE
    encoder_parameters: int | None = None

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
    is_number = checks.ParameterRule(
        "a number of processes, or -1 for all cores", (int, np.integer), lambda n: n != 0
    )
    checks.optional(is_number).check("n_jobs", n_jobs)
    checks.optional(checks.instance("the path of a folder", str, Path)).check("out", out)


def check_list(name: str, values: Collection, rule: checks.ParameterRule) -> None:
    """Check that an argument is a list of different values that a rule accepts.

    Raises
    ------
    TypeError, ValueError
        When it is not a list, is empty, or has a wrong value or one value twice.
    """
    if isinstance(values, str) or not isinstance(values, Collection):
        raise TypeError(f"{name} must be a list, got {values!r}.")
    if len(values) == 0:
        raise ValueError(f"{name} is empty; there would be nothing to report.")
    for value in values:
        rule.check(name, value)
    if len(set(values)) < len(values):
        raise ValueError(f"{name} has an entry twice: {', '.join(map(str, values))}.")


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
        names = checks.format_list(list(map(repr, there)), max_items=20)
        raise ValueError(
            f"{name} has {checks.format_list(absent)}, but the data have the subjects {names}."
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


def draw_subjects(
    candidates: Sequence,
    n: int,
    seed: int,
    class_of: Mapping[Any, Any] | None = None,
    n_sets: int | None = None,
) -> list:
    """Draw ``n`` subjects at random: the first ``n`` of a shuffled list of the candidates.

    Draws with the same seed are nested: a larger draw contains every smaller draw. Where each
    subject has one class, ``class_of``, the classes come in turns in the list, so that few subjects
    are not all of one class.

    With ``n_sets``, the candidates are dealt into disjoint sets: seeds 0 to ``n_sets - 1`` are the
    sets of one shuffled list, the next ``n_sets`` seeds are those of another one, and so on.

    Raises
    ------
    ValueError
        When ``n``, or ``n * n_sets``, is not between 1 and the number of candidates.

    Examples
    --------
    >>> from braindecode_pars.evaluation.splitting import draw_subjects
    >>> set(draw_subjects("abcdef", 2, seed=0)) < set(draw_subjects("abcdef", 4, seed=0))
    True
    """
    shuffle, position = (seed, 0) if n_sets is None else divmod(seed, n_sets)
    if not 1 <= n * (n_sets or 1) <= len(candidates):
        most = f"1 to {len(candidates)}, the training subjects with labels"
        sets = "" if n_sets is None else f" in each of {n_sets} disjoint sets"
        raise ValueError(f"n_train_subjects is {n}{sets}; use {most}.")
    order = np.random.RandomState(shuffle).permutation(len(candidates))
    shuffled = [candidates[i] for i in order]
    if class_of is not None:
        classes = pd.Series([class_of[subject] for subject in shuffled])
        turns = classes.groupby(classes, sort=False).cumcount()
        shuffled = [shuffled[i] for i in np.argsort(turns.to_numpy(), kind="stable")]
    return shuffled[position * n : (position + 1) * n]


def classes_of_subjects(corpus: Corpus) -> dict[Any, Any] | None:
    """Return the class of each labeled subject; None where a subject has several."""
    labeled = corpus.labeled
    pairs = {*zip(corpus.groups[labeled].tolist(), corpus.y[labeled].tolist(), strict=True)}
    class_of_subject = dict(pairs)
    return class_of_subject if len(class_of_subject) == len(pairs) else None


def validates_by_split(estimator: BaseEstimator) -> bool:
    """Whether the estimator has the parameter ``validation="split"``, for fixed validation sets."""
    values = parameters_called("validation", estimator).values()
    return any(isinstance(value, str) and value == labels.SPLIT for value in values)


def with_seed(estimator: BaseEstimator, seed: int) -> BaseEstimator:
    """Set every ``random_state`` among the parameters of an estimator, in place.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from braindecode_pars.evaluation.splitting import with_seed
    >>> with_seed(LogisticRegression(), 3)
    LogisticRegression(random_state=3)
    """
    names = parameters_called("random_state", estimator)
    estimator.set_params(**dict.fromkeys(names, int(seed)))  # FrozenEstimator returns None
    return estimator
