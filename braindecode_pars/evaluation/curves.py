"""Losses by epoch of the estimators in a protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from braindecode_pars.evaluation.encoder_origin import parts_of

__all__ = ["curves_frame", "history_of"]

_COLUMNS = ["phase", "epoch", "train_loss", "valid_loss", "train_loss_relative"]
#: A pretext task that has parts logs one of these for each.
_PART = "train_loss_relative_"


def history_of(fitted: Any) -> list[dict[str, Any]] | None:
    """The rows of the first table ``history_`` in an estimator, NaN as None; None without one."""
    for part in parts_of(fitted):
        history = getattr(part, "history_", None)
        if isinstance(history, list):  # skorch's own, of one phase
            history = pd.DataFrame([{"phase": "training", **row} for row in history])
        if isinstance(history, pd.DataFrame):
            kept = [n for n in history if n in _COLUMNS or str(n).startswith(_PART)]
            return [
                {name: None if pd.isna(value) else value for name, value in row.items()}
                for row in history[kept].to_dict(orient="records")
            ]
    return None


def curves_frame(folds: Sequence[Any], results: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One row for each fold and epoch: the fold's columns, ``phase``, ``epoch`` and the losses."""
    rows = [
        {**fold.key, **epoch}
        for fold, result in zip(folds, results, strict=True)
        for epoch in result["history"] or ()
    ]
    keys = list(dict.fromkeys(name for fold in folds for name in fold.key))
    parts = sorted({name for row in rows for name in row if name.startswith(_PART)})
    curves = pd.DataFrame(rows, columns=[*keys, *_COLUMNS, *parts])
    losses = [name for name in curves if "loss" in name]
    return curves.astype(dict.fromkeys(losses, float))
