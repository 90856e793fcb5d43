"""Scores of one fold, from its saved labels and probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from braindecode_pars._columns import POOLED
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
    subjects = np.asarray(result["subjects"])
    for subject in [*fold.test_subjects, *([POOLED] if fold.pooled else [])]:
        of_subject = subject == POOLED or subjects == str(subject)
        windows = np.flatnonzero(np.broadcast_to(of_subject, subjects.shape))
        for metric in metrics:
            yield {"subject": subject, "metric": metric, **_score(result, windows, metric)}


def _score(result: Mapping[str, Any], windows: np.ndarray, metric: str) -> dict[str, Any]:
    true = np.asarray(result["true"])[windows]
    saved, of_columns = result["probabilities"], {}
    reason = undefined_because(true, metric, saved["classes"])
    if metric in PROBABILITY_METRICS:
        reason = saved.get("missing", reason)
        if not reason:
            probabilities = columns_of(saved)[windows]
            of_columns = dict(probabilities=probabilities, classes=saved["classes"])
    if reason:
        return {"value": float("nan"), "undefined": reason}
    predicted = np.asarray(result["predicted"])[windows]
    return {"value": score_predictions(true, predicted, metric, **of_columns)}


def undefined_sentence(undefined: Sequence[Mapping[str, Any]]) -> str:
    """Return how many scores are undefined, with each reason once."""
    names: dict[str, list[str]] = {}
    for row in undefined:
        names.setdefault(row["reason"], []).append(f"{row['metric']} of {row['subject']}")
    reasons = [f"{_shortened(of)}: {reason}" for reason, of in names.items()]
    more = f"; and {len(reasons) - 3} more reasons" if len(reasons) > 3 else ""
    several = len(undefined) > 1
    return (
        f"{len(undefined)} score{'s are' if several else ' is'} undefined and NaN. "
        f"{'; '.join(reasons[:3])}{more}. scores.attrs['undefined'] lists all of them."
    )


def _shortened(names: Iterable[str]) -> str:
    names = list(dict.fromkeys(names))
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
