"""Windows with labels and subjects (Corpus), and their training and test windows (Fold)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils import check_consistent_length

from braindecode_pars._common import checks, tables
from braindecode_pars._common.names import METRICS
from braindecode_pars._common.subjects import normalized, warn_of_similar_names
from braindecode_pars.estimators.windows_estimator import parameters_called
from braindecode_pars.windows import as_sklearn, convert, duplicates, labels, table


@dataclass(frozen=True, eq=False)
class Corpus:
    """Windows of a dataset with their labels and subjects, as used by the evaluation protocols.

    Attributes
    ----------
    name : str
        Name of the dataset, for the column ``dataset`` of the scores.
    X : Windows, shape (n_windows,)
        Windows. Samples are read only when they are needed.
    y, groups : ndarray, shape (n_windows,)
        Labels and subjects.
    labeled : ndarray of bool, shape (n_windows,)
        Whether a window has a label.
    unlabeled_label : hashable | None
        Label of unlabeled windows; None if every window is labeled.
    splits : ndarray, shape (n_windows,)
        For each window, the entry ``split`` in the description of its recording; None if it is
        missing.
    corpus_subjects : dict
        Maps each subject name to the same name prefixed with the name of its corpus. If the corpus
        is unknown, the name has no prefix.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation.splitting import Corpus
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=2)
    >>> corpus = Corpus.of(windows, "sleep", unlabeled_label=-1)
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
        """Create a corpus from a windows dataset.

        Parameters
        ----------
        windows_ds : BaseConcatDataset
            Labeled windows, with ``subject`` in the descriptions of the recordings.
        name : str
            Name of the dataset, for the column ``dataset`` of the scores.
        unlabeled_label : hashable | None
            Label of unlabeled windows. ``"auto"`` means -1, with a warning if there are unlabeled
            windows. If None, every window is labeled.

        Returns
        -------
        Corpus
            All windows of the dataset.

        Raises
        ------
        ValueError
            If labels or subjects are missing, or a subject has the name "all". If the labels are
            not class labels, or cannot be distinguished from the label of unlabeled windows.

        Warns
        -----
        UserWarning
            If two subject names or two class names are similar, or if windows are treated as
            unlabeled because of ``"auto"``.
        """
        X, y, groups = as_sklearn(windows_ds)
        if tables.POOLED in groups.tolist():
            raise ValueError(
                f"A subject has the name {tables.POOLED!r}, which is reserved for scores over all "
                "subjects. Rename the subject in the descriptions of the recordings."
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
        """Create a corpus from the arguments of ``split`` of a scikit-learn splitter.

        Every window counts as labeled.

        Raises
        ------
        ValueError
            If ``groups`` is None, a subject is missing, or the lengths differ.

        Warns
        -----
        UserWarning
            If two subject names are similar.
        """
        if groups is None:
            raise ValueError("groups is required. Pass the subject of each window as groups.")
        groups = convert.subject_column(groups, len(groups))
        y = np.zeros(len(groups), dtype=int) if y is None else np.asarray(y)
        check_consistent_length(X, y, groups)
        warn_of_similar_names(groups.tolist())
        splits = getattr(X, "splits", None)
        splits = np.full(len(y), None) if splits is None else splits
        return cls("", X, y, groups, np.ones(len(y), dtype=bool), None, splits)

    @cached_property
    def n_classes(self) -> int:
        """Number of classes of the labeled windows."""
        return len(set(self.y[self.labeled].tolist()))

    @property
    def subjects(self) -> list:
        """All subjects, sorted."""
        return in_order(self.groups.tolist())

    def subjects_of(self, windows: np.ndarray) -> list:
        """Return the sorted, unique subjects of some windows, given as indices or as a mask."""
        return in_order(self.groups[windows].tolist())

    def corpus_subjects_of(self, subjects: Iterable) -> dict[Any, Any]:
        """Return the entries of ``corpus_subjects`` for some subjects."""
        return {subject: self.corpus_subjects.get(subject, subject) for subject in subjects}

    def rows_of(self, subjects: Iterable) -> np.ndarray:
        """Return the indices of all windows of some subjects, in the order of the dataset."""
        wanted = set(subjects)
        return np.flatnonzero([subject in wanted for subject in self.groups.tolist()])

    @cached_property
    def spans(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Recording, start sample and stop sample of each window, as three arrays.

        Start and stop are equal if they are unknown.
        """
        if isinstance(self.X, table.Windows):
            return tuple(self.X.table[["recording", "start", "stop"]].to_numpy().T)
        return (np.zeros(len(self.groups), dtype=int),) * 3

    def in_time(self, subject: Any) -> np.ndarray:
        """Return the indices of a subject's windows, in chronological order in each recording."""
        rows = self.rows_of([subject])
        recordings, starts, _ = self.spans
        return rows[np.lexsort((starts[rows], recordings[rows]))]

    def rows_outside_gap(
        self, rows: np.ndarray, reference: np.ndarray, in_time: np.ndarray, gap: int
    ) -> np.ndarray:
        """Return the rows that are separated from reference rows by at least ``gap`` windows.

        Rows are indices of windows. Rows of different recordings are always separated. ``in_time``
        contains all rows of the subject in chronological order.

        Raises
        ------
        ValueError
            If a window to return overlaps in time with a reference window.
        """
        checks.integer(0).check("gap", gap)
        position = np.empty(len(self.groups), dtype=int)
        position[in_time] = np.arange(len(in_time))
        recordings, start, stop = self.spans
        is_same = recordings[rows][:, None] == recordings[reference]
        is_near = np.abs(position[rows][:, None] - position[reference]) <= gap
        is_outside = ~(is_same & is_near).any(axis=1)
        starts, stops = start[rows][:, None], stop[rows][:, None]
        overlaps = (starts < stop[reference]) & (start[reference] < stops)
        if (is_same & overlaps)[is_outside].any():
            raise ValueError(
                f"With gap={gap}, training and test windows overlap in time. Use a larger gap."
            )
        return rows[is_outside]

    def check_duplicates(self) -> None:
        """Raise ValueError if two subjects have duplicate recordings."""
        if not isinstance(self.X, table.Windows):
            return
        windows = self.X.with_subjects(self.groups)
        subjects = windows.recordings["subject"]
        for first, second in duplicates.find_duplicates(windows):
            if subjects[first] != subjects[second]:
                raise ValueError(
                    f"Subjects {subjects[first]} and {subjects[second]} have duplicate recordings "
                    "(identical samples), so training and test data would overlap. Remove one of "
                    "the recordings, or assign both to the same subject."
                )


@dataclass(frozen=True, eq=False)
class Fold:
    """One fit of an estimator, with its training and test windows.

    Attributes
    ----------
    protocol, dataset, method : str
        Values of the columns ``protocol``, ``dataset`` and ``method`` of the scores.
    n_train_subjects : int
        Number of labeled training subjects, including validation subjects that the estimator takes
        from the training subjects, but without the subjects of ``valid``.
    seed : int
        Seed of every ``random_state`` parameter and of torch's random state.
    estimator : estimator
        Unfitted estimator. A clone with ``seed`` is fitted.
    train, test : ndarray of int
        Indices of the training and test windows.
    test_subjects : list
        Subjects of the test windows, in the order of the rows.
    valid : ndarray of int
        Indices of the fixed validation windows, which an estimator with ``validation="split"``
        receives together with the training windows.
    pretrain : ndarray of int
        Indices of the windows for pretraining an encoder that several folds share: the windows
        available for training before labeled subjects are drawn, except windows of validation
        subjects and of split "test".
    pooled : bool
        Whether the scores contain an additional row, with the subject "all", for all test windows
        together.
    varied : dict
        Additional columns of the scores, and their values.
    test_subject_data : TestSubjectData
        Which data of the test subject are in the training windows.
    encoder_parameters : int | None
        Number of parameters of the encoder, if the methods have encoders of different sizes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> from braindecode_pars.evaluation.splitting import Fold
    >>> fold = Fold(
    ...     protocol="leave_one_subject_out",
    ...     dataset="sleep",
    ...     method="chance",
    ...     n_train_subjects=2,
    ...     seed=0,
    ...     estimator=DummyClassifier(),
    ...     train=np.arange(48),
    ...     test=np.arange(48, 72),
    ...     test_subjects=[3],
    ... )
    >>> print(fold)
    chance on sleep, subject 3, n_train_subjects=2, seed=0
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
        """Name of the test subject for tables and messages.

        Several names are separated by commas. If ``pooled`` is True, the name is ``"all"``.
        """
        if self.pooled:
            return tables.POOLED
        several = len(self.test_subjects) > 1
        return ", ".join(map(str, self.test_subjects)) if several else self.test_subjects[0]

    @property
    def key(self) -> dict[str, Any]:
        """Values of the columns of the scores that identify this fold, as a dict."""
        return {name: getattr(self, name) for name in tables.SCORES[:-2]} | self.varied

    def __str__(self) -> str:
        name = f"{self.method} on {self.dataset}" if self.dataset else self.method
        subject = "" if self.subject == tables.POOLED else f", subject {self.subject}"
        return f"{name}{subject}, n_train_subjects={self.n_train_subjects}, seed={self.seed}"


def check_arguments(
    estimators: Mapping[str, BaseEstimator], metrics: Sequence[str], seeds: Sequence[int]
) -> None:
    """Check the arguments ``estimators``, ``metrics`` and ``seeds``, which all protocols have.

    Raises
    ------
    TypeError
        If ``estimators`` is not a dict that maps names to classifiers, or another argument has a
        wrong type.
    ValueError
        If there are no estimators, metrics or seeds, or if a list contains a value twice or an
        unknown value.
    """
    checks.instance("a dict from method name to estimator", Mapping).check("estimators", estimators)
    check_list("estimators", list(estimators), checks.instance("method names as strings", str))
    for method, estimator in estimators.items():
        methods = ("fit", "predict", "get_params")
        is_instance = all(hasattr(estimator, name) for name in methods)
        is_instance &= not isinstance(estimator, type)
        if not is_instance or (hasattr(estimator, "__sklearn_tags__") and is_regressor(estimator)):
            raise TypeError(
                f"estimators[{method!r}] must be an instance of a scikit-learn classifier, got "
                f"{estimator!r}. To predict numbers, use scikit-learn's cross_val_predict and "
                "evaluation.regression_scores."
            )
    check_list("metrics", metrics, checks.choice(*METRICS))
    check_list("seeds", seeds, checks.integer(0))


def check_list(name: str, values: Collection, rule: checks.ParameterRule) -> None:
    """Check that the argument ``name`` is a non-empty list of unique, valid values.

    Raises
    ------
    TypeError, ValueError
        If the argument is not a list, is empty, or contains an invalid value or a value twice.
    """
    if isinstance(values, str) or not isinstance(values, Collection):
        raise TypeError(f"{name} must be a list, got {values!r}.")
    for value in values:
        rule.check(name, value)
    if len(values) == 0 or len(set(values)) < len(values):
        text = ", ".join(map(str, values)) or "an empty list"
        raise ValueError(f"{name} must contain at least one value and no duplicates, got {text}.")


def check_subjects(requested: Iterable, available: Iterable, name: str) -> list:
    """Check that requested subjects are available, and return them as a list.

    ``name`` is the name of the argument, for the error message.

    Raises
    ------
    ValueError
        If no subject is requested, or a subject is requested twice or is not available.
    """
    if isinstance(requested, str) or not isinstance(requested, Iterable):
        raise ValueError(f"{name} must be a list of subjects, got {requested!r}.")
    requested, available = [normalized(subject) for subject in requested], list(available)
    if not requested or len(set(available).intersection(requested)) < len(requested):
        options = checks.format_list(list(map(repr, available)), max_items=20)
        raise ValueError(
            f"{name} must contain one or more available subjects, none of them twice. Available: "
            f"{options}. Got {checks.format_list(list(map(repr, requested))) or 'no subject'}."
        )
    return requested


def in_order(subjects: Iterable) -> list:
    """Return the unique subjects, sorted. Subjects of different types are sorted as text."""
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

    The result is a draw, a random subset of labeled subjects. Draws with the same seed are nested:
    a larger draw contains every smaller draw. If each subject has windows of one class only, pass
    the class of each subject as ``class_of``. The list then alternates between the classes, so that
    even a small draw contains several classes.

    With ``n_sets``, some seeds yield disjoint draws. The seeds 0 to ``n_sets - 1`` share one
    shuffled list, from which each seed gets a different part of ``n`` subjects. The next ``n_sets``
    seeds share another shuffled list, and so on.

    Raises
    ------
    ValueError
        If ``n``, or ``n * n_sets``, is not between 1 and the number of candidates.

    Examples
    --------
    >>> from braindecode_pars.evaluation.splitting import draw_subjects
    >>> set(draw_subjects("abcdef", 2, seed=0)) < set(draw_subjects("abcdef", 4, seed=0))
    True
    """
    shuffle, position = (seed, 0) if n_sets is None else divmod(seed, n_sets)
    maximum = len(candidates) // (n_sets or 1)
    if not 1 <= n <= maximum:
        raise ValueError(
            f"n_train_subjects={n} is out of range: the number of labeled subjects available for "
            f"training is {len(candidates)}. Use a value from 1 to {maximum}."
        )
    order = np.random.RandomState(shuffle).permutation(len(candidates))
    shuffled = [candidates[i] for i in order]
    if class_of is not None:
        classes = pd.Series([class_of[subject] for subject in shuffled])
        turns = classes.groupby(classes, sort=False).cumcount()
        shuffled = [shuffled[i] for i in np.argsort(turns.to_numpy(), kind="stable")]
    return shuffled[position * n : (position + 1) * n]


def classes_of_subjects(corpus: Corpus) -> dict[Any, Any] | None:
    """Return the class of each labeled subject; None if a subject has several classes."""
    labeled = corpus.labeled
    pairs = {*zip(corpus.groups[labeled].tolist(), corpus.y[labeled].tolist(), strict=True)}
    class_of_subject = dict(pairs)
    return class_of_subject if len(class_of_subject) == len(pairs) else None


def validates_by_split(estimator: BaseEstimator) -> bool:
    """Return whether the estimator has the parameter ``validation="split"``."""
    values = parameters_called("validation", estimator).values()
    return any(isinstance(value, str) and value == labels.SPLIT for value in values)


def with_seed(estimator: BaseEstimator, seed: int) -> BaseEstimator:
    """Set every ``random_state`` parameter of an estimator to a seed, in place.

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
