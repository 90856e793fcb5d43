"""Find data leakage: test subjects in the training data of the encoders of a method."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from braindecode_pars._common import checks, subjects
from braindecode_pars.evaluation.splitting import Corpus, Fold
from braindecode_pars.pretrained.cards import warn_unknown_corpora


def warn_before_fit(folds: Sequence[Fold], corpora: Mapping[str, Corpus]) -> list[str]:
    """Warn of test subjects that are listed on the cards of the encoders of a method.

    An encoder card lists the training subjects of an encoder. It can be read before the fit,
    because a pretrained encoder is a parameter of the estimator.

    Returns
    -------
    list of str
        Warnings of data leakage.

    Warns
    -----
    UserWarning
        If a test subject is listed. If the names of a test subject and a training subject contain
        the same number, and the corpus of either subject is unknown, so that they may be the same
        subject.
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
    """Return the test subjects that encoder cards list under the same name with the corpus."""
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
        Entry ``subjects``: test subjects in the training data. Entry ``unknown``: whether the
        training subjects of an encoder are unknown.
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
    """Warn once per method of data leakage: test subjects in the training data of its encoders.

    Parameters
    ----------
    seen : sequence of (str, dict)
        Method and result of :func:`find_leaked_subjects` for each fit. The entry ``unknown`` may be
        missing.
    warned : sequence of str
        Texts of the warnings that were already shown, which are not shown again.

    Returns
    -------
    list of str
        Warnings.
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
                "probably too high. Test other subjects. If the test subjects and the pretraining "
                "subjects only have the same names, set 'corpus' in the descriptions of the "
                "recordings. If the recordings are from the pretraining corpus, use the name of "
                "the corpus on the encoder card."
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
