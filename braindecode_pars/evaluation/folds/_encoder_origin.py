"""Test subjects that an encoder was pretrained or fine-tuned on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sklearn.base import BaseEstimator
from torch import nn

from braindecode_pars._subjects import SubjectKeys

__all__ = ["given_cards", "leak_sentences", "parts_of", "seen_before", "seen_by"]


#: Attributes that contain one estimator, in searches and wrappers.
_INNER = ("best_estimator_", "estimator_", "transformer_")


def given_cards(estimator: BaseEstimator) -> list[Any]:
    """Return the cards of the encoders that the parts of an unfitted estimator are given."""
    parts = [estimator, *estimator.get_params().values()]
    cards = [part._given_card() for part in parts if hasattr(part, "_given_card")]
    return [card for card in cards if card is not None]


def seen_by(cards: Iterable[Any], people: Mapping[Any, Any]) -> list:
    """Return the test subjects on some cards; ``people`` has their names with the corpus."""
    seen = SubjectKeys(subject for card in cards for subject in card.seen_subjects)
    return [subject for subject, person in people.items() if person in seen]


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
    parts = list(parts_of(fitted))
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
    return given or any(getattr(cb, "unlabeled", None) is not None for cb in callbacks)


def leak_sentences(seen: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return warnings from the results of :func:`seen_before` for the folds of each method."""
    sentences = []
    for method, folds in seen.items():
        if any(fold["unknown"] for fold in folds):
            sentences.append(
                f"The training subjects of the encoder of {method} are unknown; they may include "
                "test subjects."
            )
        leaked = list(dict.fromkeys(subject for fold in folds for subject in fold["subjects"]))
        if leaked:
            sentences.append(
                f"{method} was pretrained on windows of test subject"
                f"{'s' if len(leaked) > 1 else ''} {', '.join(map(str, leaked))}. Its scores of "
                "these subjects are not held-out scores, unless another dataset used the same "
                "names for different subjects; then name the corpus of the recordings with an "
                "entry 'corpus' in their descriptions. Use the name on the encoder's card if it is "
                "the same corpus."
            )
    return sentences


def parts_of(fitted: Any) -> Iterator[Any]:
    """Yield an estimator and all estimators inside it, as in pipelines and searches."""
    yield fitted
    # Pipeline, FeatureUnion, ColumnTransformer, CalibratedClassifierCV; then searches and ensembles
    inner = [part for _, part in getattr(fitted, "steps", [])]
    inner += [part for _, part in getattr(fitted, "transformer_list", [])]
    inner += [part for _, part, _ in getattr(fitted, "transformers_", [])]
    inner += [part.estimator for part in getattr(fitted, "calibrated_classifiers_", [])]
    inner += [getattr(fitted, name, None) for name in _INNER]
    inner += list(getattr(fitted, "estimators_", []))
    for part in inner:
        if part is not None:
            yield from parts_of(part)
