"""The table of predictions of a recording."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from braindecode_pars._columns import PROBABILITY

__all__ = ["check_predictions", "classes_of"]


def check_predictions(frame: pd.DataFrame) -> pd.DataFrame:
    """Check the columns and times of predictions, and return them with a plain index.

    Parameters
    ----------
    frame : DataFrame
        Predictions with the columns ``onset``, ``duration`` and ``label``.

    Returns
    -------
    DataFrame
        The same rows. Labels are texts, as in the names of columns; a missing one is None. A CSV
        file that is read back has numbers for the labels "0", "1", ..., 1.0 where one is missing.

    Raises
    ------
    TypeError
        When ``frame`` is not a DataFrame.
    ValueError
        When it lacks a column, has no rows, or has windows that overlap or are not in
        chronological order.
    """
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(
            f"The predictions are a {type(frame).__name__}; pass the DataFrame that predict_raw "
            "returns."
        )
    missing = [name for name in ("onset", "duration", "label") if name not in frame]
    if missing:
        raise ValueError(
            f"The predictions lack the column{'s' if len(missing) > 1 else ''} "
            f"{', '.join(missing)}; they have {', '.join(map(str, frame.columns)) or 'none'}."
        )
    if frame.empty:
        raise ValueError("The predictions have no rows.")
    frame = frame.reset_index(drop=True)
    onset, duration = (frame[name].to_numpy(float) for name in ("onset", "duration"))
    if not (np.isfinite(onset).all() and (duration > 0).all()):
        raise ValueError("onset and duration must be seconds, with positive durations.")
    if (onset[1:] < (onset + duration)[:-1] - 1e-6).any():
        raise ValueError(
            "The windows overlap, or are not in chronological order; pass the predictions of one "
            "recording, sorted by onset."
        )
    classes = [str(name).removeprefix(PROBABILITY) for name in frame]
    labels = [_as_text(label, classes) for label in frame["label"].tolist()]
    return frame.assign(label=pd.Series(labels, dtype=object))


def _as_text(label: Any, classes: list[str]) -> str | None:
    if pd.isna(label):
        return None
    text = str(label)
    is_whole = isinstance(label, float) and label.is_integer()
    return str(int(label)) if is_whole and text not in classes else text


def classes_of(frame: pd.DataFrame) -> list[str]:
    """Return the classes of predictions: those with probabilities, else the labels that occur."""
    columns = [str(name) for name in frame if str(name).startswith(PROBABILITY)]
    named = [name.removeprefix(PROBABILITY) for name in columns]
    return named or sorted({label for label in frame["label"] if not pd.isna(label)})
