"""Training history as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from braindecode_pars._columns import loss_columns
from braindecode_pars.training._restored import RESTORED
from braindecode_pars.training._time_budget import TIME_IS_OVER

__all__ = ["history_frame", "history_row", "restored_epoch"]


def history_row(row: Mapping[str, Any]) -> dict[str, float]:
    """Return what a table needs of a row of a skorch history: its epoch, losses and marks."""
    kept = {"epoch", RESTORED, TIME_IS_OVER, *loss_columns(row)}
    return {name: value for name, value in row.items() if name in kept}


def restored_epoch(history: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the epoch whose state the estimators have restored; None if there is none.

    It is marked by :class:`~braindecode_pars.training._restored.RestoredEpoch`. In the files of
    models of earlier versions it is the first epoch with the lowest validation loss.
    """
    marked = [row["epoch"] for row in history if row.get(RESTORED, False)]
    if marked:
        return marked[0]
    validated = [row for row in history if "valid_loss" in row]
    best = min(validated, key=lambda row: row["valid_loss"], default=None)
    return None if best is None else best["epoch"]


def history_frame(phases: Mapping[str, Sequence[Mapping[str, Any]]]) -> pd.DataFrame:
    """Return one row per epoch: ``phase``, ``epoch``, ``restored``, and losses with their parts.

    When a TimeBudget has ended a phase, ``attrs["time_is_over"]`` has its name and last epoch.
    """
    rows = []
    for phase, history in phases.items():
        restored = restored_epoch(history)
        rows += [
            {**history_row(row), "phase": phase, RESTORED: row["epoch"] == restored}
            for row in history
        ]
    found = {name for row in rows for name in row}
    frame = pd.DataFrame(rows, columns=["phase", "epoch", RESTORED, *loss_columns(found)])
    ended = {row["phase"]: row["epoch"] for row in rows if TIME_IS_OVER in row}
    if ended:
        frame.attrs[TIME_IS_OVER] = ended
    return frame
