"""Windows as points in a plane."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from braindecode_pars.plotting._style import N_LOOKS, axes_for, look

__all__ = ["embedding"]


def embedding(points: ArrayLike, labels: ArrayLike, ax: Axes | None = None) -> Axes:
    """One point for each window, with a colour and a marker for each label or subject.

    Parameters
    ----------
    points : ndarray, shape (n_windows, 2)
        What a projection such as :class:`sklearn.decomposition.PCA` makes of embeddings.
    labels : array-like, shape (n_windows,)
        Labels, or subjects; at most 70 different ones.
    ax : Axes | None
        Made when not given.

    Returns
    -------
    Axes
        With a legend beside it.

    Raises
    ------
    ValueError
        If the points are not two-dimensional, the lengths differ, or there are too many labels to
        tell apart.

    Examples
    --------
    Made-up points:

    .. plot::
        :include-source:

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
    points = np.asarray(points, dtype=float)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(
            f"points have shape {points.shape}; give two numbers a window, (n_windows, 2), for "
            "example those of sklearn.decomposition.PCA(2).fit_transform(embeddings)."
        )
    labels = pd.Series(np.asarray(labels))
    if len(points) != len(labels):
        raise ValueError(f"There are {len(points)} points and {len(labels)} labels.")
    if len(points) == 0:
        raise ValueError("There are no points to draw.")
    kinds = _sorted(labels)
    if len(kinds) > N_LOOKS:
        raise ValueError(
            f"There are {len(kinds)} different labels; at most {N_LOOKS} can be told apart. Draw "
            "some of them, or colour by something coarser."
        )

    n_columns = 1 + (len(kinds) - 1) // 18
    [ax] = axes_for(ax, 1, 1, (5.2 + 0.7 * n_columns, 4.4))
    size = 26 if len(points) < 300 else 12
    for number, kind in enumerate(kinds):
        style = look(number)
        ax.scatter(
            *points[(labels == kind).to_numpy()].T,
            s=size,
            color=style["color"],
            marker=style["marker"],
            alpha=0.75,
            lw=0,
            label=str(kind),
        )
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
    """Each label once, sorted where they can be."""
    kinds = list(dict.fromkeys(labels))
    try:
        return sorted(kinds)
    except TypeError:
        return sorted(kinds, key=str)
