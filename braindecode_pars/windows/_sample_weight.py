"""Weights of windows: in the loss, and in scores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from braindecode_pars.windows._window_set import WindowSet

__all__ = ["check_weights", "labels_with_weights", "that_weigh"]


def check_weights(sample_weight: Any, n_windows: int) -> np.ndarray:
    """Return ``sample_weight`` as an array of floats, shape (n_windows,).

    Raises
    ------
    ValueError
        When it is not one finite number of at least 0 for each window, or when all are 0.
    """
    try:
        weights = np.asarray(sample_weight, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must be numbers: {error}.") from error
    wanted = f"it must have one finite number for each of the {n_windows} windows, at least 0"
    if weights.shape != (n_windows,):
        raise ValueError(f"sample_weight has shape {weights.shape}; {wanted}.")
    refused = weights[~(np.isfinite(weights) & (weights >= 0))]
    if len(refused):
        raise ValueError(f"sample_weight has {refused[0]:g} among its numbers; {wanted}.")
    if not weights.any():
        raise ValueError("All numbers in sample_weight are zero; give some window a weight.")
    return weights


def that_weigh(windows: WindowSet, part: str) -> WindowSet:
    """Return windows without those of weight 0.

    Raises
    ------
    ValueError
        When all windows have weight 0.
    """
    if windows.weights is None:
        return windows
    kept = np.flatnonzero(windows.weights > 0)
    if len(kept) == 0:
        raise ValueError(
            f"All {part} windows have a sample_weight of 0; give some of them a weight, or choose "
            "another validation."
        )
    return windows.take(kept)


def labels_with_weights(windows: WindowSet, part: str) -> WindowSet:
    """Return windows whose label is the pair of label and weight, without those of weight 0.

    Without weights, the windows are returned as they are.
    :class:`~braindecode_pars.training._cross_entropy.CrossEntropy` accepts both forms of labels.

    Raises
    ------
    ValueError
        When all windows have weight 0.
    """
    if getattr(windows, "weights", None) is None:  # other datasets have none
        return windows
    windows = that_weigh(windows, part)
    # In single precision, since some GPUs have no other.
    pairs = np.column_stack([windows.y, windows.weights]).astype(np.float32)
    return replace(windows, y=pairs)
