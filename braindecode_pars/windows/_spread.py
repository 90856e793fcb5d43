"""A few windows instead of all: at equal distances, so that they are of the whole data."""

from __future__ import annotations

import numpy as np

__all__ = ["spread_out"]


def spread_out(n: int, most: int) -> np.ndarray:
    """Return at most ``most`` of the numbers 0 to ``n - 1``, at equal distances.

    Examples
    --------
    >>> from braindecode_pars.windows._spread import spread_out
    >>> spread_out(3, 256).tolist(), spread_out(1000, 4).tolist()
    ([0, 1, 2], [0, 333, 666, 999])
    """
    return np.linspace(0, n - 1, min(n, most)).round().astype(int)
