"""Find data leakage: test subjects in the training data of the encoders of a method."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from braindecode_pars._common import checks, subjects
from braindecode_pars.evaluation.splitting import Corpus, Fold
from braindecode_pars.pretrained.cards import warn_unknown_corpora


def warn_before_fit(folds: Sequence[Fold], corpora: Mapping[str, Corpus]) -> list[str]:
    """Before the first fit, warn of test subjects on which a pretrained encoder was trained.

    A pretrained encoder is a parameter of the estimator, and its card (metadata) lists its training
    subjects.

    Returns
    -------
    list of str
        Texts of the warnings of data leakage.

    Warns
    -----
    UserWarning
        If a test subject is listed on a card. Also if the names of a test subject and of a training
        subject contain the same number, and the corpus of either subject is unknown. They may then
        be the same subject.
    """
    cards: dict[str, list[Any]] = {}
    for method, estimator in {fold.method: fold.estimator for fold in folds}.items():
        parts = [estimator, *estimator.get_params().values()]
        encoders = [part for part in parts if hasattr(part, "_pretrained_card")]
        cards[method] = [card for part in encoders if (card := part._pretrained_card()) is not None]
    by_fold = [corpora[fold.dataset].corpus_subjects_of(fold.test_subjects) for fold in folds]
    warn_unknown_corpora(cards, dict.fromkeys(name for names in by_fold for name in names.values()))
    seen = [
        (fold.method, {"subjects": leaked_subjects_on_cards(cards[fold.method], names)})
        for fold, names in zip(folds, by_fold, strict=True)
    ]
    return warn_of_leaks(seen)


def leaked_subjects_on_cards(
    cards: Iterable[Any], names_with_corpus: Mapping[Any, Any]
) -> list[str]:
    """Return the test subjects that are listed on encoder cards, compared by name and corpus.

    ``names_with_corpus`` maps each test subject to its name prefixed with the name of its corpus.
    """
    seen = subjects.SeenSubjects(subject for card in cards for subject in card.seen_subjects)
    return [str(subject) for subject, full_name in names_with_corpus.items() if full_name in seen]


def find_leaked_subjects(fitted: Any, names_with_corpus: Mapping[Any, Any]) -> dict[str, Any]:
    """Find test subjects in the training data of the encoders inside a fitted estimator.

    Parameters
    ----------
    fitted : estimator
        Fitted estimator.
    names_with_corpus : mapping
        Maps each test subject to the same name prefixed with the name of its corpus.

    Returns
    -------
    dict
        Entry ``subjects``: names of the test subjects in the training data. Entry ``unknown``:
        whether the training subjects of any encoder are unknown.
    """
    parts = list(estimators_in(fitted))
    cards = [part.encoder_card_ for part in parts if hasattr(part, "encoder_card_")]
    unknown = any(None in (card.subjects, card.finetune_subjects) for card in cards)
    for part in parts:
        # A skorch network may have a module that was trained before,
        module = getattr(part, "module", None)
        unknown |= isinstance(module, torch.nn.Module) and hasattr(module, "encoder")
        # or a callback that pretrains on additional windows.
        for _, callback in getattr(part, "callbacks_", ()):
            unknown |= getattr(callback, "unlabeled", None) is not None
    return {"subjects": leaked_subjects_on_cards(cards, names_with_corpus), "unknown": unknown}


def warn_of_leaks(
    seen: Sequence[tuple[str, Mapping[str, Any]]], warned: Sequence[str] = ()
) -> list[str]:
    """Issue a warning for each method whose encoders were trained on test subjects (data leakage).

    A warning is also issued if the training subjects of an encoder are unknown.

    Parameters
    ----------
    seen : sequence of (str, dict)
        Name of the method and result of :func:`find_leaked_subjects` for each fit. The entry
        ``unknown`` may be missing.
    warned : sequence of str
        Texts of warnings that were issued earlier. They are not issued again.

    Returns
    -------
    list of str
        Texts of all warnings about ``seen``, including texts in ``warned``.
    """
    sentences = []
    for method in dict.fromkeys(method for method, _ in seen):
        results = [result for name, result in seen if name == method]
        if any(result.get("unknown") for result in results):
            sentences.append(
                f"Possible data leakage: the training subjects of the encoder of {method} are "
                "unknown. If they include test subjects, the scores of these subjects are "
                "probably too high. Use an encoder whose encoder card (its metadata) lists the "
                "training subjects."
            )
        if leaked := dict.fromkeys(name for result in results for name in result["subjects"]):
            sentences.append(
                f"Data leakage: {method} was pretrained on windows of test subjects "
                f"{', '.join(leaked)}, so these subjects are not held out, and their scores are "
                "probably too high. Test other subjects. If these are different subjects with the "
                "same names, set 'corpus' in the descriptions of the recordings to the name of "
                "their corpus (for recordings of the pretraining corpus, as on the encoder card)."
            )
    for sentence in sentences:
        if sentence not in warned:
            checks.warn_user(sentence)
    return sentences


def estimators_in(fitted: Any) -> Iterator[Any]:
    """Yield an estimator and all nested estimators, as in pipelines and searches."""
    yield fitted
    # Pipeline, FeatureUnion, ColumnTransformer, CalibratedClassifierCV; then searches and ensembles
    inner = [part for _, part in getattr(fitted, "steps", [])]
    inner += [part for _, part in getattr(fitted, "transformer_list", [])]
    inner += [part for _, part, _ in getattr(fitted, "transformers_", [])]
    inner += [part.estimator for part in getattr(fitted, "calibrated_classifiers_", [])]
    names = ("best_estimator_", "estimator_", "final_estimator_", "transformer_", "classifier_")
    inner += [getattr(fitted, name, None) for name in names]
    inner += list(getattr(fitted, "estimators_", []))
    for part in inner:
        if part is not None:
            yield from estimators_in(part)
