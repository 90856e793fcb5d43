"""The losses of an estimator's phases as one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

__all__ = ["history_frame", "losses"]

LOSSES = ("train_loss", "valid_loss", "train_loss_relative")
#: A task that has parts logs one of these for each.
PART = "train_loss_relative_"


def losses(history: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
    """Epoch and losses of each row of a skorch history."""
    return [
        {name: row[name] for name in row if name in ("epoch", *LOSSES) or name.startswith(PART)}
        for row in history
    ]


def history_frame(phases: Mapping[str, Sequence[Mapping[str, Any]]]) -> pd.DataFrame:
    """One row an epoch: ``phase``, ``epoch``, the losses, and those of a task's parts."""
    rows = [{"phase": phase, **row} for phase, history in phases.items() for row in losses(history)]
    parts = sorted({name for row in rows for name in row if name.startswith(PART)})
    return pd.DataFrame(rows, columns=["phase", "epoch", *LOSSES, *parts])
