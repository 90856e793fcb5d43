"""Embedded windows as points in two dimensions."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from braindecode_pars.plotting._style import N_STYLES, axes_for, series_style

__all__ = ["embedding"]


def embedding(points: ArrayLike, labels: ArrayLike, ax: Axes | None = None) -> Axes:
    """Draw one point for each window, with a colour and a marker for each label or subject.

    Parameters
    ----------
    points : ndarray, shape (n_windows, 2)
        Embeddings projected to two dimensions, for example by
        :class:`sklearn.decomposition.PCA`.
    labels : array-like, shape (n_windows,)
        Labels or subjects, at most 70 different values.
    ax : Axes | None
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        Axes with the points and a legend at the right.

    Raises
    ------
    ValueError
        If the points are not two-dimensional, the lengths differ, there are no points, or there are
        more than 70 different labels.

    Examples
    --------
    Synthetic points:

    .. plot::
        :include-source:
        :alt: Dots of three sleep stages in two dimensions; N3, N2 and W form three clouds.

        >>> import numpy as np
        >>> from braindecode_pars import plotting
        >>> labels = np.repeat(["W", "N2", "N3"], 60)
        >>> centres = np.repeat([[0, 0], [2, 1], [3, 3]], 60, axis=0)
        >>> rng = np.random.default_rng(0)
        >>> points = centres + 0.6 * rng.standard_normal((180, 2))
        >>> ax = plotting.embedding(points, labels)

    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['N2', 'N3', 'W']
    """
    # Check the points and labels
    points = np.asarray(points, dtype=float)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(
            f"points have shape {points.shape}; pass two coordinates per window, (n_windows, 2), "
            "for example sklearn.decomposition.PCA(2).fit_transform(embeddings)."
        )
    labels = pd.Series(np.asarray(labels))
    if len(points) != len(labels):
        raise ValueError(
            f"There are {len(points)} points and {len(labels)} labels; pass one label for each "
            "point."
        )
    if len(points) == 0:
        raise ValueError("There are no points to draw; pass at least one.")
    values = _sorted(labels)
    if len(values) > N_STYLES:
        raise ValueError(
            f"There are {len(values)} different labels, but only {N_STYLES} different markers and "
            "colours. Select some of the labels, or use labels with fewer values."
        )

    # One series for each label; the legend has at most 18 rows.
    n_columns = 1 + (len(values) - 1) // 18
    [ax] = axes_for(ax, 1, 1, (5.2 + 0.7 * n_columns, 4.4))
    size = 26 if len(points) < 300 else 12
    for number, value in enumerate(values):
        style = series_style(number)
        ax.scatter(
            *points[(labels == value).to_numpy()].T,
            s=size,
            color=style["color"],
            marker=style["marker"],
            alpha=0.75,
            lw=0,
            label=str(value),
        )
    # Legend and axes
    ax.legend(
        frameon=False,
        loc="upper left",
        bbox_to_anchor=(1, 1),
        ncols=n_columns,
        markerscale=1.5,
        handletextpad=0.2,
        columnspacing=0.8,
    )
    ax.set(xticks=[], yticks=[], xlabel="dimension 1", ylabel="dimension 2")
    return ax


def _sorted(labels: pd.Series) -> list:
    """Unique labels, sorted; as text if they have different types."""
    values = list(dict.fromkeys(labels))
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=str)
