"""Colours, markers, lines and axes that all figures share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

__all__ = ["COLORS", "HATCHES", "LINES", "MARKERS", "N_LOOKS", "axes_for", "bare", "look"]

#: Okabe and Ito's colours, told apart by everyone.
COLORS = ("#0072B2", "#E69F00", "#999999", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
#: In grey print the colours above look alike, so nothing is told apart by colour alone.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
LINES = ("-", "--", "-.", ":", (0, (6, 1.5, 1, 1.5, 1, 1.5)))
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "++++")
#: As many pairs of colour and marker as there are before one comes again.
N_LOOKS = len(COLORS) * len(MARKERS)


def look(number: int) -> dict[str, Any]:
    """Colour, marker and line style of a series, by its place in the legend.

    Parameters
    ----------
    number : int
        From 0; pairs of colour and marker repeat after :data:`N_LOOKS`.

    Examples
    --------
    >>> look(0)
    {'color': '#0072B2', 'marker': 'o', 'linestyle': '-'}
    """
    return dict(
        color=COLORS[number % len(COLORS)],
        marker=MARKERS[number % len(MARKERS)],
        linestyle=LINES[number % len(LINES)],
    )


def axes_for(
    axes: Sequence[Axes] | Axes | None,
    n_rows: int,
    n_columns: int,
    figsize: tuple[float, float],
    **gridspec: Any,
) -> np.ndarray:
    """The axes that were given, once counted, or those of a new figure.

    Returns
    -------
    ndarray of Axes, shape (n_rows * n_columns,)

    Raises
    ------
    ValueError
        If the number of axes is another one.
    """
    wanted = n_rows * n_columns
    if axes is None:
        _, axes = plt.subplots(
            n_rows, n_columns, figsize=figsize, layout="constrained", squeeze=False, **gridspec
        )
    given = np.ravel(np.asarray(axes, dtype=object))
    if len(given) != wanted:
        raise ValueError(f"This figure needs {wanted} axes, {len(given)} came.")
    return given


def bare(ax: Axes) -> None:
    """Take away the frame's top and right."""
    ax.spines[["top", "right"]].set_visible(False)
