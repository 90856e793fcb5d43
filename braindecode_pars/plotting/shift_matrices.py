"""What PARS predicts: relative shifts of pairs of patches, against the true ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from numpy.typing import ArrayLike

from braindecode_pars.plotting._style import COLORS, axes_for, bare

__all__ = ["shift_matrices"]


def shift_matrices(
    prediction: ArrayLike,
    target: ArrayLike,
    axes: Sequence[Axes] | None = None,
    *,
    starts: ArrayLike | None = None,
    masked: ArrayLike | None = None,
) -> np.ndarray:
    r"""Relative shifts of one window: predicted, true, their difference, and one against the other.

    After the paper's figure 7 (appendix A.5), "Relative Time Shift Reconstructions".

    Parameters
    ----------
    prediction, target : ndarray, shape (n_masked, n_masked)
        Shifts :math:`(t_j - t_k) / T` in units of the window's length. With ``starts`` they may
        also be those of all patches, (n_patches, n_patches); the pairs of patches that kept their
        position are then not drawn, since no loss is taken of them.
    axes : four Axes | None
        Made when not given.
    starts : ndarray, shape (n_patches,) | None
        When each patch starts, in any unit. Rows and columns are sorted by it, and those of patches
        that were not masked stay blank. Without it the matrices are drawn as they come, which
        should be in chronological order.
    masked : ndarray, int (n_masked,) or bool (n_patches,) | None
        Which patches lost their position, in the order of the matrices' rows; an order of its own
        only integers can have. By default the first ``n_masked``, as
        :meth:`~braindecode_pars.pretext.PARS.predict_shifts` has it.

    Returns
    -------
    ndarray of Axes, shape (4,)
        Prediction, target, absolute error, and a scatter of prediction against target.

    Raises
    ------
    ValueError
        If the shapes do not go together.

    Examples
    --------
    Made-up predictions for 40 patches, of which the first 32 have lost their position:

    .. plot::
        :include-source:

        >>> import numpy as np
        >>> from braindecode_pars import plotting
        >>> rng = np.random.default_rng(0)
        >>> starts = rng.integers(0, 5800, 40)
        >>> target = (starts[:32, None] - starts[:32]) / 6000
        >>> prediction = 0.8 * target + 0.1 * rng.standard_normal((32, 32))
        >>> axes = plotting.shift_matrices(prediction, target, starts=starts)

    Patches come in the order of time, and those that kept their position stay blank:

    >>> starts = np.array([900, 100, 500, 300])
    >>> target = (starts[:3, None] - starts[:3]) / 1000
    >>> axes = plotting.shift_matrices(0.5 * target, target, starts=starts)
    >>> axes[1].images[0].get_array().filled(np.nan).round(1)
    array([[ 0. ,  nan, -0.4, -0.8],
           [ nan,  nan,  nan,  nan],
           [ 0.4,  nan,  0. , -0.4],
           [ 0.8,  nan,  0.4,  0. ]])
    """
    matrices = [np.asarray(matrix, dtype=float) for matrix in (prediction, target)]
    for name, matrix in zip(("prediction", "target"), matrices, strict=True):
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(
                f"{name} has shape {matrix.shape}; give the matrix of one window, (n_masked, "
                "n_masked)."
            )
    if starts is not None:
        matrices = _by_time(*matrices, np.asarray(starts), masked)
    elif masked is not None:
        raise ValueError("masked says nothing without starts, when the patches start; give both.")
    prediction, target = matrices
    if prediction.shape != target.shape:
        raise ValueError(f"prediction is {prediction.shape}, target {target.shape}; both as one.")

    axes = axes_for(axes, 1, 4, (13.5, 3.5))
    error = np.abs(prediction - target)
    _draw(axes[0], prediction, "prediction", vmin=-1, vmax=1)
    shifts = _draw(axes[1], target, "target", vmin=-1, vmax=1)
    errors = _draw(axes[2], error, "absolute error", vmin=0)
    figure = axes[0].figure
    figure.colorbar(shifts, ax=list(axes[:2]), label="$(t_j - t_k) / T$", shrink=0.75)
    figure.colorbar(errors, ax=axes[2], label="$T$", shrink=0.75)
    _scatter(axes[3], prediction, target)
    return axes


def _by_time(
    prediction: np.ndarray, target: np.ndarray, starts: np.ndarray, masked: ArrayLike | None
) -> list[np.ndarray]:
    """Both matrices over all patches in chronological order, NaN where one is not masked."""
    n_patches = len(starts)
    if starts.ndim != 1:
        raise ValueError(
            f"starts has shape {starts.shape}; give those of one window, (n_patches,)."
        )
    chosen = np.arange(min(len(prediction), n_patches)) if masked is None else np.asarray(masked)
    if chosen.dtype == bool:
        if len(chosen) != n_patches:
            raise ValueError(f"masked says which of {len(chosen)} patches, starts has {n_patches}.")
        chosen = np.flatnonzero(chosen)
    if len(np.unique(chosen)) != len(chosen) or not np.isin(chosen, np.arange(n_patches)).all():
        raise ValueError(
            f"masked holds a number twice, or one that is not from 0 to {n_patches - 1}; give the "
            "numbers of the masked patches among starts."
        )
    by_time = np.argsort(starts, kind="stable")
    sorted_matrices = []
    for name, matrix in (("prediction", prediction), ("target", target)):
        if len(matrix) == n_patches:
            matrix = matrix[np.ix_(chosen, chosen)]
        elif len(matrix) != len(chosen):
            raise ValueError(
                f"{name} has {len(matrix)} rows; accepted are {len(chosen)}, one a masked patch, "
                f"or {n_patches}, one a patch."
            )
        whole = np.full((n_patches, n_patches), np.nan)
        whole[np.ix_(chosen, chosen)] = matrix
        sorted_matrices.append(whole[np.ix_(by_time, by_time)])
    return sorted_matrices


def _draw(ax: Axes, matrix: np.ndarray, title: str, **limits: float) -> AxesImage:
    # Its lightness rises evenly, so that it keeps its order in grey print.
    image = ax.imshow(np.ma.masked_invalid(matrix), cmap="cividis", **limits)
    ax.set(title=title, xlabel="patch k, by time", ylabel="patch j, by time")
    return image


def _scatter(ax: Axes, prediction: np.ndarray, target: np.ndarray) -> None:
    drawn = np.isfinite(prediction) & np.isfinite(target)
    prediction, target = prediction[drawn], target[drawn]
    rmse = np.sqrt(np.mean((prediction - target) ** 2))
    ax.plot([-1, 1], [-1, 1], color="0.6", lw=1, zorder=0)
    ax.scatter(target, prediction, s=5, color=COLORS[0], alpha=0.35, lw=0)
    ax.set(
        title=f"RMSE {rmse:.2f} T",
        xlabel="target",
        ylabel="prediction",
        xlim=(-1, 1),
        ylim=(-1, 1),
        aspect="equal",
    )
    bare(ax)
