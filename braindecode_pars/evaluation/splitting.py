"""The windows of a dataset with labels and subjects, and who of them is trained on and tested."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, is_regressor
from sklearn.model_selection import GroupKFold, PredefinedSplit, check_cv

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
    people: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, windows_ds: Any, name: str, unlabeled_label: Any) -> Corpus:
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
        """Return the subjects of some windows, by indices or a mask, sorted."""
        return in_order(self.groups[windows].tolist())

    def people_of(self, subjects: Iterable) -> dict[Any, Any]:
        """Return the name of each of these subjects with the corpus in front."""
        return {subject: self.people.get(subject, subject) for subject in subjects}

    def rows_of(self, subjects: Iterable) -> np.ndarray:
        """Return the indices of the windows of these subjects, in the order of the dataset."""
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
        "a number of processes, or -1 for all cores", (int, np.integer), lambda n: n != 0
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
        names = checks.listed(list(map(repr, there)), most=20)
        raise ValueError(
            f"{name} has {checks.listed(absent)}, but the data have the subjects {names}."
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


class Split(NamedTuple):
    """A cross-validator, and the subjects whose windows it divides.

    Attributes
    ----------
    cv : cross-validator
        scikit-learn cross-validator.
    subjects : list
        Training and test subjects. Other subjects are not used.
    train : list | None
        Subjects that may be trained on; None means all subjects that are not tested.
    pooled : bool
        Whether the scores get a row over all test windows together, as for fixed test subjects.
    """

    cv: Any
    subjects: list
    train: list | None = None
    pooled: bool = False


def one_subject_out(corpus: Corpus, test_subjects: Iterable | None = None) -> Split:
    """Hold out one subject at a time: each of ``test_subjects``, or each subject of the data.

    Raises
    ------
    ValueError
        When the data have only one subject, or a test subject is not in the data.
    """
    tested = subjects = corpus.subjects
    if len(subjects) < 2:
        raise ValueError(f"Holding out a subject needs two; all windows are of {subjects[0]}.")
    if test_subjects is not None:
        tested = check_subjects(test_subjects, subjects, "test_subjects")
    # PredefinedSplit: one fold number per window; windows with -1 are never tested.
    fold_of = {subject: number for number, subject in enumerate(tested)}
    folds = [fold_of.get(subject, -1) for subject in corpus.groups.tolist()]
    return Split(PredefinedSplit(folds), subjects)


def given_split(
    corpus: Corpus,
    test_subjects: Iterable | None = None,
    train_subjects: Iterable | None = None,
    left_out: Iterable = (),
) -> Split:
    """Split into training subjects and fixed test subjects.

    The test subjects are ``test_subjects``, or the subjects whose recordings have ``"test"`` as
    ``split`` in their description. The latter are never trained on, even when ``test_subjects``
    are other subjects, and neither are the subjects ``left_out``.

    Raises
    ------
    ValueError
        When there are no test subjects, or a subject is both a training and a test subject.
    """
    # Test subjects
    is_test = corpus.splits == "test"
    test, others = (corpus.subjects_of(mask) for mask in (is_test, ~is_test))
    if both := [str(subject) for subject in test if subject in others]:
        raise ValueError(
            f"Recordings of {', '.join(both)} are in split 'test' and in another split; put all "
            "recordings of a subject in one split."
        )
    held_out = {*test, *left_out}
    if test_subjects is not None:
        test = check_subjects(test_subjects, corpus.subjects, "test_subjects")
    elif not test:
        where = f" in {corpus.name}" if corpus.name else ""
        raise ValueError(
            f"There are no test subjects{where}: no recording's description has 'split' 'test'. "
            "Pass test_subjects, or use leave_one_subject_out."
        )
    held_out |= {*test}
    # Training subjects
    chosen = None
    if train_subjects is not None:
        chosen = check_subjects(train_subjects, corpus.subjects, "train_subjects")
        if both := [str(subject) for subject in chosen if subject in held_out]:
            raise ValueError(f"train_subjects has test subjects: {', '.join(both)}; remove them.")
    # One fold: windows with 0 are tested, windows with -1 are only trained on.
    tested = set(test)
    subjects = [s for s in corpus.subjects if s in tested or s not in held_out]
    window_subjects = corpus.groups[corpus.rows_of(subjects)].tolist()
    cv = PredefinedSplit([0 if subject in tested else -1 for subject in window_subjects])
    return Split(cv, subjects, chosen, pooled=True)


def split_by(
    cv: Any,
    corpus: Corpus,
    test_subjects: Iterable | None = None,
    train_subjects: Iterable | None = None,
) -> Split:
    """Return the split of a cross-validator; without one, the split of the given subjects.

    Parameters
    ----------
    cv : int | cross-validator | iterable | None
        scikit-learn cross-validator, pairs of training and test indices, or the number of folds
        of whole subjects.
    corpus : Corpus
        Windows to split.
    test_subjects, train_subjects : iterable | None
        As in :func:`given_split`; None with a cross-validator.

    Raises
    ------
    ValueError
        When a cross-validator and subjects are given, ``cv`` is not a cross-validator, an integer
        or an iterable of pairs, and in the cases of :func:`given_split`.
    """
    if cv is None:
        return given_split(corpus, test_subjects, train_subjects)
    if test_subjects is not None or train_subjects is not None:
        given = "train_subjects" if test_subjects is None else "test_subjects"
        raise ValueError(f"cv and {given} both choose the subjects; pass one of them.")
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        cv = GroupKFold(int(cv))
    return Split(check_cv(cv), corpus.subjects)


def draw_subjects(
    candidates: Sequence, n: int, seed: int, class_of: Mapping[Any, Any] | None = None
) -> list:
    """Draw ``n`` subjects at random: the first ``n`` of a shuffled list of the candidates.

    Draws with the same seed are nested: a larger draw contains every smaller draw. Where each
    subject has one class, ``class_of``, the classes come in turns in the list, so that few subjects
    are not all of one class.

    Raises
    ------
    ValueError
        When ``n`` is not between 1 and the number of candidates.

    Examples
    --------
    >>> from braindecode_pars.evaluation.splitting import draw_subjects
    >>> set(draw_subjects("abcdef", 2, seed=0)) < set(draw_subjects("abcdef", 4, seed=0))
    True
    """
    if not 1 <= n <= len(candidates):
        most = f"1 to {len(candidates)}, the training subjects with labels"
        raise ValueError(f"n_train_subjects is {n}; use {most}.")
    order = np.random.RandomState(seed).permutation(len(candidates))
    shuffled = [candidates[i] for i in order]
    if class_of is not None:
        classes = pd.Series([class_of[subject] for subject in shuffled])
        turns = classes.groupby(classes, sort=False).cumcount()
        shuffled = [shuffled[i] for i in np.argsort(turns.to_numpy(), kind="stable")]
    return shuffled[:n]


def classes_of_subjects(corpus: Corpus) -> dict[Any, Any] | None:
    """Return the class of each labelled subject; None where a subject has several."""
    labelled = corpus.labeled
    pairs = {*zip(corpus.groups[labelled].tolist(), corpus.y[labelled].tolist(), strict=True)}
    found = dict(pairs)
    return found if len(found) == len(pairs) else None


def make_folds(
    protocol: str,
    estimators: Mapping[str, BaseEstimator],
    corpus: Corpus,
    split: Split,
    seeds: Sequence[int],
    n_train_subjects: Sequence[int] | None = None,
    varied: Mapping[str, dict[str, Any]] | None = None,
) -> list[Fold]:
    """Make a fold for each train-test split, number of training subjects, seed and method.

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
    split : Split
        Cross-validator and subjects.
    seeds : sequence of int
        Seeds of the random draws of training subjects and of the estimators.
    n_train_subjects : sequence of int | None
        Numbers of labelled subjects to draw; None means all.
    varied : dict of str to dict | None
        Additional columns and their values, by method.

    Raises
    ------
    ValueError
        When a subject is both a training and a test subject, no labelled subject remains for
        training, a test subject has no labelled window, or an estimator has ``validation="split"``
        and the split of a training window is neither "train" nor "valid".
    """
    folds: list[Fold] = []
    pretrain: dict[tuple, np.ndarray] = {}
    fixed = {method: validates_by_split(estimator) for method, estimator in estimators.items()}
    labeled = set(corpus.subjects_of(corpus.labeled))
    class_of = classes_of_subjects(corpus)
    reserved = corpus.rows_of(corpus.subjects_of(corpus.splits == "test"))
    for train, test in _train_test_windows(corpus, split):
        valid = train[:0]
        if any(fixed.values()):
            # Unlabelled windows of the validation subjects, and of subjects in the split "valid"
            # without any label, are in neither part.
            labelled = train[corpus.labeled[train]]
            splits, people = corpus.splits[labelled], corpus.groups[labelled]
            is_valid = labels.are_validation(splits, people, len(labelled))
            unused = corpus.rows_of(corpus.subjects_of(corpus.splits == "valid"))
            train, valid = np.setdiff1d(train, unused), labelled[is_valid]
        trained_on, tested_on = map(corpus.subjects_of, (train, test))
        # Only labelled windows are tested; only labelled subjects are drawn for training.
        allowed = labeled if split.train is None else labeled.intersection(split.train)
        candidates = [subject for subject in trained_on if subject in allowed]
        if not candidates:
            raise ValueError(
                "No labelled subject remains for training when the test subjects are "
                f"{', '.join(map(str, tested_on))}; use fewer test subjects."
            )
        if absent := [str(subject) for subject in tested_on if subject not in labeled]:
            raise ValueError(f"There are no labelled windows to test of {', '.join(absent)}.")
        # Without subjects of split "test", which a cv may train on.
        pretrained_on = np.setdiff1d(train, reserved)
        earlier = pretrain.get(tuple(tested_on), valid[:0])
        pretrain[tuple(tested_on)] = np.union1d(earlier, pretrained_on)
        # Kept in every fold, for estimators that pretrain on unlabelled windows.
        unlabeled = [subject for subject in trained_on if subject not in labeled]
        same: dict[str, Any] = dict(
            protocol=protocol,
            dataset=corpus.name,
            test=np.unique(test[corpus.labeled[test]]),
            test_subjects=tested_on,
            pooled=split.pooled,
        )
        for n, seed in product(n_train_subjects or [len(candidates)], map(int, seeds)):
            # The same training windows for all methods
            drawn = corpus.rows_of([*draw_subjects(candidates, n, seed, class_of), *unlabeled])
            same |= dict(train=np.intersect1d(train, drawn), n_train_subjects=n, seed=seed)
            folds += [
                Fold(
                    method=method,
                    estimator=estimator,
                    valid=valid if fixed[method] else valid[:0],
                    varied=(varied or {}).get(method, {}),
                    **same,
                )
                for method, estimator in estimators.items()
            ]
    # Folds with the same test subjects may pretrain on the windows of all.
    return [replace(fold, pretrain=pretrain[tuple(fold.test_subjects)]) for fold in folds]


def _train_test_windows(corpus: Corpus, split: Split) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the indices of the training and test windows of each split."""
    windows = corpus.rows_of(split.subjects)
    groups = corpus.groups[windows]
    # scikit-learn sorts the groups, which fails for subjects of mixed types; numbers can be sorted.
    number_of = {subject: number for number, subject in enumerate(split.subjects)}
    numbers = np.array([number_of[subject] for subject in groups.tolist()])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The groups parameter is ignored", UserWarning)
        pairs = list(split.cv.split(windows, corpus.y[windows], numbers))
    for train, test in pairs:
        if both := in_order({*groups[train].tolist()} & {*groups[test].tolist()}):
            raise ValueError(
                f"cv puts windows of {', '.join(map(str, both))} in the training and the test set. "
                "Scores must be of held-out subjects; use cv with groups, such as GroupKFold."
            )
        yield windows[train], windows[test]


def validates_by_split(estimator: BaseEstimator) -> bool:
    """Whether the estimator has the parameter ``validation="split"``, for fixed validation sets."""
    values = parameters_called("validation", estimator).values()
    return any(isinstance(value, str) and value == labels.SPLIT for value in values)


def parameters_called(name: str, estimator: BaseEstimator) -> dict[str, Any]:
    """Return the parameters of this name of an estimator and its parts, such as ``svc__C``.

    Those of an estimator that is passed as ``encoder`` do not count, because it is fitted already.
    """
    return {
        full: value
        for full, value in estimator.get_params().items()
        if full.split("__")[-1] == name and "encoder" not in full.split("__")[:-1]
    }


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
