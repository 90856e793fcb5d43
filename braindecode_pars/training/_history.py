"""Training history as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from braindecode_pars._columns import loss_columns

__all__ = ["history_frame", "history_row"]


def history_row(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the epoch and the losses in a row of a skorch history."""
    kept = {"epoch", *loss_columns(row)}
    return {name: value for name, value in row.items() if name in kept}


def history_frame(phases: Mapping[str, Sequence[Mapping[str, Any]]]) -> pd.DataFrame:
    """Return one row per epoch: ``phase``, ``epoch``, losses, and losses of a task's parts."""
    rows = [
        {"phase": phase, **history_row(row)} for phase, history in phases.items() for row in history
    ]
    found = {name for row in rows for name in row}
    return pd.DataFrame(rows, columns=["phase", "epoch", *loss_columns(found)])
