"""Test subjects that an encoder has seen: on its card, or in a fitted estimator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import NoneType
from typing import Any

from sklearn.base import BaseEstimator
from torch import nn

from braindecode_pars._common.checks import warn_user
from braindecode_pars._common.subjects import SubjectKeys
from braindecode_pars.datasets import SyntheticSignals
from braindecode_pars.evaluation.corpus import Corpus, Fold


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
