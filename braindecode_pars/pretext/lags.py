"""Losses of pairs of patches by their lag, which tell what a model of PARS uses."""

from __future__ import annotations

import math
from itertools import takewhile

import torch
from torch import Tensor

__all__ = ["lag_bins", "losses_by_lag"]


def lag_bins(shortest: float, longest: float) -> list[tuple[int, int]]:
    """Return the octaves of the lags between patches, in units of patches.

    Parameters
    ----------
    shortest, longest : float
        Smallest and largest lag, in patches.

    Returns
    -------
    list of (int, int)
        Lower and upper edge of each bin with lags: below 1, 1 to 2, 2 to 4, and so on. A bin
        includes its lower edge. The last bin includes its upper edge, and also the next octave
        where less than half of that can occur.

    Examples
    --------
    >>> from braindecode_pars.pretext.lags import lag_bins
    >>> lag_bins(0, 29)  # thirty patches that may overlap
    [(0, 1), (1, 2), (2, 4), (4, 8), (8, 16), (16, 29)]
    >>> lag_bins(1.5, 9)
    [(1, 2), (2, 4), (4, 9)]
    """
    octaves = (2**n for n in range(64))
    lows = [0, *takewhile(lambda low: 1.5 * low <= longest, octaves)]
    bins = list(zip(lows, [*lows[1:], math.ceil(longest)], strict=True))
    return [*(edges for edges in bins[:-1] if edges[1] > shortest), bins[-1]]


def losses_by_lag(
    losses: Tensor, guessed: Tensor, lags: Tensor, bins: list[tuple[int, int]]
) -> dict[str, Tensor]:
    """Return the loss of the pairs in each bin of lags, relative to a guess on the same pairs.

    Parameters
    ----------
    losses, guessed : Tensor, shape (batch, n, n)
        Losses of a prediction and of a guess that ignores the signal, for each pair of patches.
        The diagonal is left out.
    lags : Tensor, shape (batch, n, n)
        Lags of the pairs, in patches.
    bins : list of (int, int)
        Output of :func:`lag_bins`.

    Returns
    -------
    dict of str to Tensor
        Scalars by name: ``"lag_1_2"`` has the lags of 1 to 2 patches. A bin without pairs is NaN.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext.lags import losses_by_lag
    >>> lags = torch.tensor([[[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]]])
    >>> losses = torch.tensor([[[9.0, 1.0, 3.0], [1.0, 9.0, 6.0], [3.0, 6.0, 9.0]]])
    >>> parts = losses_by_lag(losses, torch.full_like(losses, 10.0), lags, [(1, 2), (2, 3)])
    >>> {name: round(part.item(), 2) for name, part in parts.items()}
    {'lag_1_2': 0.1, 'lag_2_3': 0.45}
    """
    diagonal = torch.eye(lags.shape[-1], dtype=torch.bool, device=lags.device)
    lags = lags.masked_fill(diagonal, -1.0)  # in no bin
    parts = {}
    for low, high in bins:
        inside = lags >= low if (low, high) == bins[-1] else (lags >= low) & (lags < high)
        parts[f"lag_{low}_{high}"] = (losses * inside).sum() / (guessed * inside).sum()
    return parts
