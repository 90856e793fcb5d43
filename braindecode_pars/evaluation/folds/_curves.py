"""Learning curves: losses by epoch of the estimators in a protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from braindecode_pars._columns import loss_columns
from braindecode_pars.evaluation.folds._encoder_origin import parts_of

__all__ = ["curves_frame", "history_of"]


def history_of(fitted: Any) -> list[dict[str, Any]] | None:
    """Return the rows of the first ``history_`` inside an estimator, or None without one.

    NaN becomes None, because JSON has no NaN.
    """
    for part in parts_of(fitted):
        history = getattr(part, "history_", None)
        if isinstance(history, list):  # skorch's own history is a list, and has one phase
            history = pd.DataFrame([{"phase": "training", **row} for row in history])
        if isinstance(history, pd.DataFrame):
            losses = loss_columns(history)
            kept = [name for name in history if name in ("phase", "epoch", *losses)]
            return [
                {name: None if pd.isna(value) else value for name, value in row.items()}
                for row in history[kept].to_dict(orient="records")
            ]
    return None


def curves_frame(folds: Sequence[Any], results: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Collect the losses of all folds in one table, with one row for each fold and epoch.

    The columns are those of the folds, ``phase``, ``epoch`` and the losses.
    """
    rows = [
        {**fold.key, **epoch}
        for fold, result in zip(folds, results, strict=True)
        for epoch in result["history"] or ()
    ]
    keys = list(dict.fromkeys(name for fold in folds for name in fold.key))
    losses = loss_columns({name for row in rows for name in row})
    curves = pd.DataFrame(rows, columns=[*keys, "phase", "epoch", *losses])
    # None from JSON becomes NaN.
    return curves.astype(dict.fromkeys(losses, float))
