"""Who is trained on and who is tested: folds, and test subjects that an encoder has seen."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from numbers import Integral
from types import NoneType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupKFold, PredefinedSplit, check_cv
from torch import nn

from braindecode_pars._common.checks import warn_user
from braindecode_pars._common.subjects import SubjectKeys
from braindecode_pars.datasets import SyntheticSignals
from braindecode_pars.evaluation.cache import parameters_called
from braindecode_pars.evaluation.corpus import Corpus, Fold, check_subjects, in_order
from braindecode_pars.windows.labels import SPLIT, are_validation


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
        When a cross-validator and subjects are given, and in the cases of :func:`given_split`.
    TypeError
        When ``cv`` is not a cross-validator, an integer or an iterable of pairs.
    """
    if cv is None:
        return given_split(corpus, test_subjects, train_subjects)
    if test_subjects is not None or train_subjects is not None:
        given = "train_subjects" if test_subjects is None else "test_subjects"
        raise ValueError(f"cv and {given} both choose the subjects; pass one of them.")
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        cv = GroupKFold(int(cv))
    try:
        return Split(check_cv(cv), corpus.subjects)
    except ValueError as error:
        raise TypeError(
            f"cv is a {type(cv).__name__}; pass a cross-validator of scikit-learn, a number of "
            "folds, or pairs of training and test indices."
        ) from error


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
            known = train[corpus.labeled[train]]
            is_valid = are_validation(corpus.splits[known], corpus.groups[known], len(known))
            unused = corpus.rows_of(corpus.subjects_of(corpus.splits == "valid"))
            train, valid = np.setdiff1d(train, unused), known[is_valid]
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
    return any(isinstance(value, str) and value == SPLIT for value in values)


# Test subjects that an encoder has seen -----------------------------------------------------------


def warn_of_leaks(
    folds: Sequence[Fold], seen: Sequence[Mapping[str, Any]], warned: Sequence[str] = ()
) -> list[str]:
    """Warn of test subjects that encoders have seen, each method once; return the sentences."""
    sentences = leak_sentences([fold.method for fold in folds], seen)
    for sentence in sentences:
        if sentence not in warned:
            warn_user(sentence)
    return sentences


def seen_by_given(
    folds: Sequence[Fold], corpora: Mapping[str, Corpus], estimators: Mapping[str, BaseEstimator]
) -> list[dict[str, Any]]:
    """Return the test subjects of each fold on the cards of the encoders that it is given."""
    cards: dict[str, list[Any]] = {}
    for method, estimator in estimators.items():
        parts = [estimator, *estimator.get_params().values()]
        given = [part._given_card() for part in parts if hasattr(part, "_given_card")]
        cards[method] = [card for card in given if card is not None]
    people = [corpora[fold.dataset].people_of(fold.test_subjects) for fold in folds]
    seen = [seen_by(cards[fold.method], who) for fold, who in zip(folds, people, strict=True)]
    return [{"subjects": subjects, "unknown": False} for subjects in seen]


def seen_by(cards: Iterable[Any], people: Mapping[Any, Any]) -> list[str]:
    """Return the test subjects on some cards; ``people`` has their names with the corpus."""
    seen = SubjectKeys(subject for card in cards for subject in card.seen_subjects)
    return [str(subject) for subject, person in people.items() if person in seen]


def seen_before(fitted: Any, people: Mapping[Any, Any]) -> dict[str, Any]:
    """Find the test subjects that the encoders inside a fitted estimator were trained on.

    Parameters
    ----------
    fitted : estimator
        Fitted estimator.
    people : mapping
        Names of the test subjects, with and without their corpus.

    Returns
    -------
    dict
        Entry ``subjects``: these test subjects. Entry ``unknown``: whether the training subjects
        of an encoder are unknown.
    """
    parts = list(_parts_of(fitted))
    cards = [part.encoder_card_ for part in parts if hasattr(part, "encoder_card_")]
    return {
        "subjects": seen_by(cards, people),
        "unknown": any(None in (card.subjects, card.finetune_subjects) for card in cards)
        or any(map(_has_unknown_encoder, parts)),
    }


def _has_unknown_encoder(part: Any) -> bool:
    """Whether a skorch net has an encoder that may have seen other subjects than those of its fit.

    Its network is an instance, which may have been trained before, or a callback pretrains it on
    further windows.
    """
    module = getattr(part, "module", None)
    given = isinstance(module, nn.Module) and hasattr(module, "encoder")
    callbacks = [callback for _, callback in getattr(part, "callbacks_", ())]
    further = [getattr(callback, "unlabeled", None) for callback in callbacks]
    return given or any(not isinstance(one, SyntheticSignals | NoneType) for one in further)


def leak_sentences(methods: Sequence[str], seen: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the warnings of each method, from the result of :func:`seen_before` for each fit."""
    sentences = []
    for method in dict.fromkeys(methods):
        of_method = [one for name, one in zip(methods, seen, strict=True) if name == method]
        if any(one["unknown"] for one in of_method):
            sentences.append(
                f"The training subjects of the encoder of {method} are unknown; they may include "
                "test subjects."
            )
        if leaked := dict.fromkeys(name for one in of_method for name in one["subjects"]):
            sentences.append(
                f"{method} was pretrained on windows of test subjects {', '.join(leaked)}; their "
                "scores are not held-out scores. If they are other people of the same names, give "
                "the recordings 'corpus' in their descriptions: the name on the encoder's card, if "
                "it is the same corpus."
            )
    return sentences


def _parts_of(fitted: Any) -> Iterator[Any]:
    """Yield an estimator and all estimators inside it, as in pipelines and searches."""
    yield fitted
    # Pipeline, FeatureUnion, ColumnTransformer, CalibratedClassifierCV; then searches and ensembles
    inner = [part for _, part in getattr(fitted, "steps", [])]
    inner += [part for _, part in getattr(fitted, "transformer_list", [])]
    inner += [part for _, part, _ in getattr(fitted, "transformers_", [])]
    inner += [part.estimator for part in getattr(fitted, "calibrated_classifiers_", [])]
    one = ("best_estimator_", "estimator_", "transformer_")
    inner += [getattr(fitted, name, None) for name in one]
    inner += list(getattr(fitted, "estimators_", []))
    for part in inner:
        if part is not None:
            yield from _parts_of(part)
