"""Predicted and true relative time shifts of pairs of patches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from braindecode_pars.plotting._style import COLORS, axes_for, remove_frame

__all__ = ["shift_matrices"]


def shift_matrices(
    prediction: ArrayLike,
    target: ArrayLike,
    axes: Sequence[Axes] | None = None,
    *,
    starts: ArrayLike | None = None,
    masked: ArrayLike | None = None,
) -> np.ndarray:
    r"""Draw the predicted and true relative time shifts of one window.

    The figure follows the paper's figure 7 (appendix A.5), "Relative Time Shift Reconstructions".
    It shows the prediction, the target and the absolute error as matrices, and the prediction
    against the target as a scatter plot.

    Parameters
    ----------
    prediction, target : ndarray, shape (n_masked, n_masked)
        Shifts :math:`(t_j - t_k) / T` in units of the window's length. With ``starts`` the matrices
        may also contain all patches, shape (n_patches, n_patches). Rows and columns of patches
        without a masked position are then not drawn, because they do not enter the loss.
    axes : sequence of four Axes | None
        Axes to draw on; None makes a new figure.
    starts : ndarray, shape (n_patches,) | None
        Start of each patch, in any unit. Rows and columns are sorted by it. Rows and columns of
        patches without a masked position stay blank. With None the matrices are drawn without
        sorting and should be in chronological order.
    masked : ndarray, int (n_masked,) or bool (n_patches,) | None
        Patches with a masked position: their indices, in the order of the rows of the matrices, or
        a boolean mask, when the rows are in the order of ``starts``. None means the first
        ``n_masked`` patches, as in :meth:`~braindecode_pars.pretext.PARS.predict_shifts`.

    Returns
    -------
    ndarray of Axes, shape (4,)
        Panels with the prediction, the target, the absolute error and the scatter plot.

    Raises
    ------
    ValueError
        If the shapes do not match.

    Examples
    --------
    Synthetic predictions for 40 patches; the positions of the first 32 are masked:

    .. plot::
        :include-source:
        :alt: Three square maps, the predicted and true shifts of all pairs of patches and their
            error, and a scatter plot.

        >>> import numpy as np
        >>> from braindecode_pars import plotting
        >>> rng = np.random.default_rng(0)
        >>> starts = rng.integers(0, 5800, 40)
        >>> target = (starts[:32, None] - starts[:32]) / 6000
        >>> prediction = 0.8 * target + 0.1 * rng.standard_normal((32, 32))
        >>> axes = plotting.shift_matrices(prediction, target, starts=starts)

    Patches are in chronological order, and patches without a masked position stay blank:

    >>> starts = np.array([900, 100, 500, 300])
    >>> target = (starts[:3, None] - starts[:3]) / 1000
    >>> axes = plotting.shift_matrices(0.5 * target, target, starts=starts)
    >>> axes[1].images[0].get_array().filled(np.nan).round(1)
    array([[ 0. ,  nan, -0.4, -0.8],
           [ nan,  nan,  nan,  nan],
           [ 0.4,  nan,  0. , -0.4],
           [ 0.8,  nan,  0.4,  0. ]])
    """
    # Check the input, and sort the patches by time
    matrices = [np.asarray(matrix, dtype=float) for matrix in (prediction, target)]
    for name, matrix in zip(("prediction", "target"), matrices, strict=True):
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(
                f"{name} has shape {matrix.shape}; pass the matrix of one window, (n_masked, "
                "n_masked)."
            )
    if starts is not None:
        matrices = _by_time(*matrices, np.asarray(starts), masked)
    elif masked is not None:
        raise ValueError("masked requires starts, the start of each patch; pass both.")
    prediction, target = matrices
    if prediction.shape != target.shape:
        raise ValueError(
            f"prediction has shape {prediction.shape} and target {target.shape}; pass matrices of "
            "the same shape."
        )

    # Three matrices and a scatter plot
    axes = axes_for(axes, 2, 2, (8, 6))
    error = np.abs(prediction - target)
    shift = "$(t_j - t_k) / T$"
    _draw_matrix(axes[0], prediction, "prediction", shift, vmin=-1, vmax=1)
    _draw_matrix(axes[1], target, "target", shift, vmin=-1, vmax=1)
    _draw_matrix(axes[2], error, "absolute error", "$T$", vmin=0)
    _draw_scatter(axes[3], prediction, target)
    return axes


def _by_time(
    prediction: np.ndarray, target: np.ndarray, starts: np.ndarray, masked: ArrayLike | None
) -> list[np.ndarray]:
    """Return both matrices over all patches in chronological order.

    Rows and columns of patches without a masked position are NaN.
    """
    n_patches = len(starts)
    if starts.ndim != 1:
        raise ValueError(
            f"starts has shape {starts.shape}; pass the starts of one window, (n_patches,)."
        )
    # Indices of the patches with a masked position
    chosen = np.arange(min(len(prediction), n_patches)) if masked is None else np.asarray(masked)
    if chosen.dtype == bool:
        if len(chosen) != n_patches:
            raise ValueError(
                f"masked has {len(chosen)} entries and starts has {n_patches}; pass one boolean "
                "for each patch."
            )
        chosen = np.flatnonzero(chosen)
    if len(np.unique(chosen)) != len(chosen) or not np.isin(chosen, np.arange(n_patches)).all():
        raise ValueError(
            f"masked contains an index twice, or an index outside 0 to {n_patches - 1}; pass the "
            "indices into starts of the patches with a masked position."
        )
    # Sort the matrices: (n_masked, n_masked) or (n_patches, n_patches) -> (n_patches, n_patches)
    by_time = np.argsort(starts, kind="stable")
    sorted_matrices = []
    for name, matrix in (("prediction", prediction), ("target", target)):
        if len(matrix) == n_patches:
            matrix = matrix[np.ix_(chosen, chosen)]
        elif len(matrix) != len(chosen):
            raise ValueError(
                f"{name} has {len(matrix)} rows; accepted are {len(chosen)}, one for each patch "
                f"with a masked position, or {n_patches}, one for each patch."
            )
        all_patches = np.full((n_patches, n_patches), np.nan)
        all_patches[np.ix_(chosen, chosen)] = matrix
        sorted_matrices.append(all_patches[np.ix_(by_time, by_time)])
    return sorted_matrices


def _draw_matrix(ax: Axes, matrix: np.ndarray, title: str, label: str, **limits: float) -> None:
    # The lightness of cividis increases evenly, so the order of values is visible in grey print.
    image = ax.imshow(np.ma.masked_invalid(matrix), cmap="cividis", **limits)
    ax.figure.colorbar(image, ax=ax, label=label, shrink=0.85)
    ax.set(title=title, xlabel="patch k, by time", ylabel="patch j, by time")


def _draw_scatter(ax: Axes, prediction: np.ndarray, target: np.ndarray) -> None:
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
    remove_frame(ax)
