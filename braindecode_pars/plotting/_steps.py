"""Stages over time as steps, with a row of differences; hypnogram and hypnodensity draw them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from braindecode_pars.plotting._style import COLORS, remove_frame, time_unit

__all__ = ["draw_steps"]


def draw_steps(
    ax: Axes,
    edges: np.ndarray,
    order: Sequence[str],
    true: np.ndarray,
    predicted: np.ndarray | None = None,
) -> None:
    """Draw the rows of a hypnogram, and a row of differences below the stages.

    Parameters
    ----------
    ax : Axes
        Axes to draw on.
    edges : ndarray, shape (n_windows + 1,)
        Start of each window and end of the last, in seconds.
    order : sequence of str
        Names from top to bottom.
    true, predicted : ndarray, shape (n_windows,)
        Row of each window, counted from the top; NaN for an unknown stage.
    """
    unit, seconds = time_unit(edges[-1] - edges[0])
    edges = edges / seconds
    bottom = len(order) - 1
    ticks, labels = list(range(len(order))), list(order)
    if predicted is None:
        ax.stairs(-true, edges, baseline=None, color="0.2")
    else:
        ax.stairs(-true, edges, baseline=None, color="0.72", lw=3.2, label="true")
        style = dict(color=COLORS[0], lw=1.1, label="predicted")
        ax.stairs(-predicted, edges, baseline=None, **style)
        bottom += 1
        ticks, labels = [*ticks, bottom], [*labels, "differ"]
        _mark_differences(ax, true, predicted, edges, -bottom)
        ax.legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
    # Axes
    ax.set_yticks([-tick for tick in ticks], labels)
    ax.set(xlabel=unit, xlim=(edges[0], edges[-1]), ylim=(-bottom - 0.45, 0.45))
    remove_frame(ax)


def _mark_differences(
    ax: Axes, true: np.ndarray, predicted: np.ndarray, edges: np.ndarray, height: float
) -> None:
    """Draw a block below the stages for each window with different true and predicted stages."""
    both = np.isfinite(true) & np.isfinite(predicted)
    differ = np.flatnonzero(both & (true != predicted))
    spans = [(edges[i], edges[i + 1] - edges[i]) for i in differ]
    # The edge line keeps a window visible when it is narrower than a pixel.
    ax.broken_barh(spans, (height - 0.3, 0.6), color=COLORS[6], lw=0.6)
    agreement = 100 * (1 - len(differ) / both.sum()) if both.any() else np.nan
    ax.set_title(f"agreement {agreement:.0f} % of {both.sum()} windows", loc="left")
