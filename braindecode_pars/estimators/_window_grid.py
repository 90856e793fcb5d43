"""Windows of a continuous recording: a grid of windows side by side, and windows in between."""

from __future__ import annotations

import numpy as np

__all__ = ["grid_average", "window_starts"]


def window_starts(n_times: int, length: int, overlap: float = 0.0) -> np.ndarray:
    """Return the first samples of the windows to predict.

    Parameters
    ----------
    n_times, length : int
        Samples of the recording and of a window.
    overlap : float
        Share of a window, in [0, 1), that the next one repeats.

    Returns
    -------
    ndarray of int
        All multiples of the length, and those of the step ``(1 - overlap) * length``, rounded.

    Examples
    --------
    >>> from braindecode_pars.estimators._window_grid import window_starts
    >>> window_starts(35, 10).tolist(), window_starts(35, 10, overlap=0.5).tolist()
    ([0, 10, 20], [0, 5, 10, 15, 20, 25])
    """
    step = max(1, round((1 - overlap) * length))
    stop = n_times - length + 1
    return np.union1d(np.arange(0, stop, length), np.arange(0, stop, step))


def grid_average(values: np.ndarray, starts: np.ndarray, length: int, n_rows: int) -> np.ndarray:
    """Average what was predicted for windows over the rows of the grid, by the time they share.

    Parameters
    ----------
    values : ndarray, shape (n_windows, n_classes)
        Values of the windows.
    starts : ndarray of int, shape (n_windows,)
        First sample of each window.
    length : int
        Samples of a window and of a row.
    n_rows : int
        Number of rows; row ``k`` begins at sample ``k * length``.

    Returns
    -------
    ndarray of float64, shape (n_rows, n_classes)
        Means; NaN in a row that shares no sample with a window.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.estimators._window_grid import grid_average
    >>> values = np.array([[0.0], [1.0], [0.0]])
    >>> grid_average(values, np.array([0, 5, 10]), 10, 2).ravel().round(3).tolist()
    [0.333, 0.333]
    """
    totals, weights = np.zeros((n_rows + 1, values.shape[1])), np.zeros((n_rows + 1, 1))
    # A window shares samples with the row in which it begins, and with the next one.
    row, later = np.divmod(starts, length)
    for rows, shared in ((row, length - later), (row + 1, later)):
        np.add.at(totals, rows, shared[:, None] * values)
        np.add.at(weights, rows, shared[:, None])
    with np.errstate(invalid="ignore"):
        return (totals / weights)[:n_rows]
