"""Names of the columns in tables of scores and of training losses."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["LOSSES", "POOLED", "RELATIVE", "SCORES", "loss_columns", "part_of"]

#: Columns of every protocol's scores.
SCORES = [
    "protocol",
    "dataset",
    "method",
    "subject",
    "n_train_subjects",
    "seed",
    "metric",
    "value",
]
#: Value of ``subject`` in scores that are computed over all test windows together.
POOLED = "all"

#: Training loss relative to chance.
RELATIVE = "train_loss_relative"
#: Columns of losses. A task with parts adds one column per part: ``train_loss_relative_mae``.
LOSSES = ["train_loss", "valid_loss", RELATIVE]


def part_of(column: str) -> str | None:
    """Return the part of a pretext task whose loss is in a column; None for any other column."""
    prefix = f"{RELATIVE}_"
    return column.removeprefix(prefix) if column.startswith(prefix) else None


def loss_columns(columns: Iterable[str]) -> list[str]:
    """Return the columns of losses, followed by the columns of parts that are in ``columns``."""
    parts = sorted({str(name) for name in columns if part_of(str(name)) is not None})
    return [*LOSSES, *parts]
