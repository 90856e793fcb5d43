"""Whom an encoder has seen before its estimator is tested on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from braindecode_pars.windows._subjects import subject_key

__all__ = ["leak_sentences", "parts_of", "seen_before"]


def seen_before(fitted: Any, test_subjects: Sequence) -> dict[str, Any]:
    """Which test subjects the encoders inside a fitted estimator were trained on.

    Returns
    -------
    dict
        ``subjects``, and ``unknown``: whether an encoder does not say whom it has seen.
    """
    cards = [part.encoder_card_ for part in parts_of(fitted) if hasattr(part, "encoder_card_")]
    seen = {subject_key(subject) for card in cards for subject in card.seen_subjects}
    return {
        "subjects": [subject for subject in test_subjects if subject_key(subject) in seen],
        "unknown": any(None in (card.subjects, card.finetune_subjects) for card in cards),
    }


def leak_sentences(seen: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """What to warn of, from what :func:`seen_before` found in every fold of each method."""
    sentences = []
    for method, folds in seen.items():
        if any(fold["unknown"] for fold in folds):
            sentences.append(
                f"It is not known whom the encoder of {method} was trained on; test subjects may "
                "be among them."
            )
        leaked = list(dict.fromkeys(subject for fold in folds for subject in fold["subjects"]))
        if leaked:
            sentences.append(
                f"{method} was pretrained on windows of test subject"
                f"{'s' if len(leaked) > 1 else ''} {', '.join(map(str, leaked))}; its score there "
                "is not that of a new person, unless it was somebody else of the same name in "
                "another corpus."
            )
    return sentences


def parts_of(fitted: Any) -> Iterator[Any]:
    """An estimator and all inside it, also in pipelines, searches, ensembles."""
    yield fitted
    inner = [part for _, part in getattr(fitted, "steps", [])]
    inner += [part for _, part in getattr(fitted, "transformer_list", [])]
    inner += [part for _, part, _ in getattr(fitted, "transformers_", [])]
    inner += [part.estimator for part in getattr(fitted, "calibrated_classifiers_", [])]
    inner += [getattr(fitted, name, None) for name in ("best_estimator_", "estimator_")]
    inner += list(getattr(fitted, "estimators_", []))
    for part in inner:
        if part is not None:
            yield from parts_of(part)
