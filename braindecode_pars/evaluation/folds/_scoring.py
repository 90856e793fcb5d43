"""Scores of one fold, from its saved labels and probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from braindecode_pars._columns import POOLED
from braindecode_pars._lists import listed
from braindecode_pars.evaluation.folds._probabilities import columns_of
from braindecode_pars.evaluation.metrics import (
    PROBABILITY_METRICS,
    score_predictions,
    undefined_because,
)

__all__ = ["score_rows", "scored", "undefined_sentence"]


def scored(fold: Any, result: Mapping[str, Any], metrics: Sequence[str]) -> dict[str, Any]:
    """Return what the tables need of a result: its scores, without labels and probabilities.

    The predictions of hundreds of folds of a large corpus would fill the memory.
    """
    kept = {name: result[name] for name in ("seen", "history")}
    return {**kept, "rows": list(score_rows(fold, result, metrics))}


def score_rows(
    fold: Any, result: Mapping[str, Any], metrics: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield subject, metric and value, with the reason when the value is undefined.

    Parameters
    ----------
    fold : Fold
        Fold, for its test subjects.
    result : dict
        Entries ``true``, ``predicted``, ``probabilities`` and ``subjects`` of the file of the fold.
    metrics : sequence of str
        Names of metrics.
    """
    # Arrays of the whole fold once, because a fold may have many subjects.
    subjects, true, predicted = (np.asarray(result[n]) for n in ("subjects", "true", "predicted"))
    saved = result["probabilities"]
    probabilities = None if "missing" in saved else columns_of(saved)
    for subject in [*fold.test_subjects, *([POOLED] if fold.pooled else [])]:
        of_subject = subject == POOLED or subjects == str(subject)
        windows = np.flatnonzero(np.broadcast_to(of_subject, subjects.shape))
        of_columns = None if probabilities is None else probabilities[windows]
        for metric in metrics:
            score = _score(true[windows], predicted[windows], metric, of_columns, saved)
            yield {"subject": subject, "metric": metric, **score}


def _score(
    true: np.ndarray,
    predicted: np.ndarray,
    metric: str,
    probabilities: np.ndarray | None,
    saved: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the value of a metric, and the reason when it is undefined."""
    classes = saved["classes"]
    reason = undefined_because(true, metric, classes)
    if metric in PROBABILITY_METRICS:
        reason = saved.get("missing", reason)
    if reason:
        return {"value": float("nan"), "undefined": reason}
    of_columns = dict(probabilities=probabilities, classes=classes)
    return {"value": score_predictions(true, predicted, metric, **of_columns)}


def undefined_sentence(undefined: Sequence[Mapping[str, Any]]) -> str:
    """Return how many scores are undefined, with each reason once."""
    names: dict[str, dict[str, None]] = {}
    for row in undefined:
        names.setdefault(row["reason"], {})[f"{row['metric']} of {row['subject']}"] = None
    reasons = [f"{listed(list(of), most=5)}: {reason}" for reason, of in names.items()]
    more = f"; and {len(reasons) - 3} more reasons" if len(reasons) > 3 else ""
    several = len(undefined) > 1
    return (
        f"{len(undefined)} score{'s are' if several else ' is'} undefined and NaN. "
        f"{'; '.join(reasons[:3])}{more}. scores.attrs['undefined'] lists all of them."
    )
