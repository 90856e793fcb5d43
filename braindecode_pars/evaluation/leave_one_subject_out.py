"""Score estimators on people they have never seen, one person at a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import LeaveOneGroupOut
from torch.utils.data import Dataset
from tqdm.auto import tqdm

from braindecode_pars.evaluation.metrics import METRICS, score_predictions
from braindecode_pars.windows import as_sklearn

__all__ = ["COLUMNS", "leave_one_subject_out"]

#: Columns of every protocol's result.
COLUMNS = [
    "protocol",
    "dataset",
    "method",
    "subject",
    "n_train_subjects",
    "seed",
    "metric",
    "value",
]


def leave_one_subject_out(
    estimators: Mapping[str, BaseEstimator],
    windows_ds: Dataset,
    *,
    metrics: Sequence[str] = ("kappa", "balanced_accuracy"),
    seeds: Sequence[int] = (0,),
    dataset: str = "",
    unlabeled_label: Any = -1,
    verbose: int = 1,
) -> pd.DataFrame:
    """Train on all subjects but one, score on that one, for every subject.

    Internal validation is the estimator's own business and happens inside the training fold;
    PARSClassifier holds out subjects of that fold.

    Parameters
    ----------
    estimators : dict of str to estimator
        By method name. Cloned for every fold.
    windows_ds : BaseConcatDataset
        Labelled windows with ``subject`` in the descriptions.
    metrics : sequence of str
        See :func:`~braindecode_pars.evaluation.score_predictions`.
    seeds : sequence of int
        Every ``random_state`` of an estimator is set to each of them in turn.
    dataset : str
        Name for the column ``dataset``.
    unlabeled_label : hashable
        Windows with this label are left to the estimators in training and never scored.
    verbose : int
        1 shows a progress bar over folds.

    Returns
    -------
    pandas.DataFrame
        One row for each method, subject, seed and metric; columns :data:`COLUMNS`.
    """
    if not isinstance(estimators, Mapping):
        raise TypeError(
            f"estimators is a {type(estimators).__name__}; give a dict of method names and "
            "estimators."
        )
    for name, given in (("estimators", estimators), ("metrics", metrics), ("seeds", seeds)):
        if len(given) == 0:
            raise ValueError(f"{name} is empty; there would be nothing to report.")
    for metric in metrics:
        if metric not in METRICS:
            raise ValueError(f"Unknown metric {metric!r}; known are {', '.join(METRICS)}.")
    X, y, groups = as_sklearn(windows_ds)
    subjects = np.unique(groups)
    if len(subjects) < 2:
        raise ValueError(
            "Leaving one subject out needs at least two subjects; all windows are of "
            f"{subjects[0]}."
        )
    folds = list(LeaveOneGroupOut().split(y, y, groups))
    rows = []
    bar = tqdm(
        total=len(folds) * len(seeds) * len(estimators),
        desc="leave one subject out",
        unit=" fits",
        disable=not verbose,
    )
    with bar:
        for train, test in folds:
            subject = groups[test][0]
            test = test[y[test] != unlabeled_label]
            if len(test) == 0:
                raise ValueError(f"Subject {subject} has no labelled window to score.")
            for seed in seeds:
                for method, estimator in estimators.items():
                    bar.set_postfix(subject=subject, method=method)
                    fitted = _with_seed(clone(estimator), seed).fit(X[train], y[train])
                    _warn_if_pretrained_on(fitted, [subject], method)
                    y_pred = fitted.predict(X[test])
                    where = dict(
                        protocol="leave_one_subject_out",
                        dataset=dataset,
                        method=method,
                        subject=subject,
                        n_train_subjects=len(subjects) - 1,
                        seed=seed,
                    )
                    rows.extend(
                        {
                            **where,
                            "metric": metric,
                            "value": score_predictions(y[test], y_pred, metric),
                        }
                        for metric in metrics
                    )
                    bar.update()
    return pd.DataFrame(rows, columns=COLUMNS)


def _with_seed(estimator: BaseEstimator, seed: int) -> BaseEstimator:
    names = [
        name
        for name in estimator.get_params()
        # An estimator given as ``encoder`` is the user's own, fitted already.
        if name.split("__")[-1] == "random_state" and "encoder" not in name.split("__")
    ]
    return estimator.set_params(**dict.fromkeys(names, seed))


def _warn_if_pretrained_on(fitted: Any, test_subjects: Sequence, method: str) -> None:
    """Warn when an encoder has seen the people its estimator is tested on."""
    cards = list(_encoder_cards(fitted))
    if any(None in (card.subjects, card.finetune_subjects) for card in cards):
        warnings.warn(
            f"It is not known whom the encoder of {method} was trained on; test subjects may be "
            "among them.",
            stacklevel=3,
        )
    seen = set().union(*(card.seen_subjects for card in cards))
    leaked = sorted(set(test_subjects) & seen, key=str)
    if leaked:
        warnings.warn(
            f"{method} was pretrained on windows of test subject"
            f"{'s' if len(leaked) > 1 else ''} {', '.join(map(str, leaked))}; its score there is "
            "not that of a new person.",
            stacklevel=3,
        )


def _encoder_cards(fitted: Any) -> Iterator[Any]:
    """The cards of all encoders in an estimator, also inside pipelines, searches, ensembles."""
    if hasattr(fitted, "encoder_card_"):
        yield fitted.encoder_card_
    inner = [part for _, part in getattr(fitted, "steps", [])]
    inner += [part for _, part in getattr(fitted, "transformer_list", [])]
    inner += [part for _, part, _ in getattr(fitted, "transformers_", [])]
    inner += [part.estimator for part in getattr(fitted, "calibrated_classifiers_", [])]
    inner += [getattr(fitted, name, None) for name in ("best_estimator_", "estimator_")]
    inner += list(getattr(fitted, "estimators_", []))
    for part in inner:
        if part is not None:
            yield from _encoder_cards(part)
