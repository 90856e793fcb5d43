"""Colours, markers, line styles and axes shared by all figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

#: Okabe and Ito's colours, which readers with colour vision deficiency can distinguish.
COLORS = ("#0072B2", "#E69F00", "#999999", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
#: In grey print the colours look alike, so series also differ in marker, line style or hatching.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
LINES = ("-", "--", "-.", ":", (0, (6, 1.5, 1, 1.5, 1, 1.5)))
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "++++")
#: Number of different pairs of colour and marker.
N_STYLES = len(COLORS) * len(MARKERS)


def series_style(number: int) -> dict[str, Any]:
    """Return colour, marker and line style of a series.

    Parameters
    ----------
    number : int
        Position of the series in the legend, from 0. Pairs of colour and marker repeat after
        :data:`N_STYLES`.

    Examples
    --------
    >>> series_style(0)
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
    """Check the number of the given axes, or make the axes of a new figure.

    Returns
    -------
    ndarray of Axes, shape (n_rows * n_columns,)

    Raises
    ------
    ValueError
        If the number of given axes is not ``n_rows * n_columns``.
    """
    wanted = n_rows * n_columns
    if axes is None:
        _, axes = plt.subplots(
            n_rows, n_columns, figsize=figsize, layout="constrained", squeeze=False, **gridspec
        )
    given = np.ravel(np.asarray(axes, dtype=object))
    if len(given) != wanted:
        raise ValueError(f"This figure needs {wanted} axes, got {len(given)}.")
    return given


def legend_columns(labels: Sequence[str], width: float) -> int:
    """Return the number of columns of a legend that fit into a width in inches.

    Examples
    --------
    >>> legend_columns(["PARS", "scratch", "band power"], 6)
    3
    >>> legend_columns(["PARS", "band power, subject-centred (transductive)"], 6)
    1
    """
    entry = 0.7 + 0.075 * max(map(len, labels))  # symbol and space, then letters of 10 points
    return max(1, min(len(labels), int(width / entry)))


def draw_chance(ax: Axes, chance: float | None) -> None:
    """Draw the chance level as a dotted line with a name; None draws nothing."""
    if chance is None:
        return
    ax.axhline(chance, color="0.25", lw=1, ls=":", zorder=1.5)
    ax.text(
        1,
        chance,
        "chance",
        transform=ax.get_yaxis_transform(),  # the x-coordinate is a share of the width
        ha="right",
        va="bottom",
        fontsize=8,
        bbox=dict(facecolor="white", edgecolor="none", alpha=0.7, pad=0.5),
    )


def remove_frame(ax: Axes) -> None:
    """Remove the top and right lines of the frame."""
    ax.spines[["top", "right"]].set_visible(False)


def text_color(rgba: tuple[float, float, float, float]) -> str:
    """Return black or white, whichever has the higher contrast with the background (WCAG 2)."""
    # Relative luminance of sRGB; the two contrasts are equal at sqrt(1.05 * 0.05) - 0.05.
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgba[:3]]
    luminance = np.dot([0.2126, 0.7152, 0.0722], linear)
    return "black" if luminance + 0.05 > (1.05 * 0.05) ** 0.5 else "white"


def time_unit(seconds: float) -> tuple[str, int]:
    """Return the unit of a time axis of this length, and the number of seconds in it.

    Examples
    --------
    >>> time_unit(8 * 3600), time_unit(600), time_unit(60)
    (('hours', 3600), ('minutes', 60), ('seconds', 1))
    """
    if seconds >= 3600:
        return "hours", 3600
    return ("minutes", 60) if seconds > 180 else ("seconds", 1)
