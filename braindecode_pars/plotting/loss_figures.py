"""Figures of pretraining: losses over epochs, losses by lag, and predicted shifts of patches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from braindecode_pars._common.tables import RELATIVE, lags_of, part_of
from braindecode_pars.plotting.style import COLORS, LINES, axes_for, remove_frame, series_style

#: Columns that identify a run of a method.
RUN = ("dataset", "subject", "n_train_subjects", "seed")


def training_curves(history: pd.DataFrame, axes: Sequence[Axes] | None = None) -> np.ndarray:
    """Draw the losses of each training phase in a panel of its own.

    A phase with losses relative to chance, such as pretraining, is drawn with a line at 1 for the
    chance level. The losses of the parts of its task are thinner lines, without those by lag, which
    :func:`~braindecode_pars.plotting.lag_losses` draws. Any other phase is drawn with its training
    and validation loss, and a marker at the lowest validation loss. Each run has a line of its own.

    Parameters
    ----------
    history : DataFrame
        Losses with one row per epoch: the ``history_`` of a
        :class:`~braindecode_pars.PARSClassifier`; several of them, joined with ``pandas.concat``
        after adding ``method`` and ``seed``; or the curves of an ablation. Required columns are
        ``phase``, ``epoch`` and ``train_loss``. Optional columns are ``valid_loss``,
        ``train_loss_relative``, ``train_loss_relative_NAME``, ``method``, and the columns that
        identify a run: ``dataset``, ``subject``, ``n_train_subjects`` and ``seed``.
    axes : sequence of Axes, one per phase | None
        Axes to draw on; None makes a new figure.

    Returns
    -------
    ndarray of Axes, shape (n_phases,)
        Panels, in the order of the phases.

    Raises
    ------
    TypeError
        If ``history`` is not a DataFrame.
    ValueError
        If ``history`` is empty, lacks a column, or has several rows for one epoch of a run.

    Examples
    --------
    Synthetic losses, with the columns of an estimator's ``history_``:

    .. plot::
        :include-source:
        :alt: Two panels: a pretraining loss that falls below chance, and training and validation
            loss of fine-tuning.

        >>> import numpy as np
        >>> import pandas as pd
        >>> from braindecode_pars import plotting
        >>> epochs = np.arange(1, 31)
        >>> loss = 0.15 * np.exp(-epochs / 40)
        >>> pretraining = pd.DataFrame(dict(
        ...     phase="pretraining", epoch=epochs,
        ...     train_loss=loss, train_loss_relative=loss / 0.15,
        ... ))
        >>> fine_tuning = pd.DataFrame(dict(
        ...     phase="fine-tuning", epoch=epochs,
        ...     train_loss=1.6 * np.exp(-epochs / 15),
        ...     valid_loss=0.9 + 0.001 * (epochs - 15) ** 2,
        ... ))
        >>> axes = plotting.training_curves(pd.concat([pretraining, fine_tuning]))

    >>> [ax.get_title() for ax in axes]
    ['pretraining', 'fine-tuning']
    """
    # Panels, with room for the legend below them
    _check(history)
    phases = list(dict.fromkeys(history["phase"]))
    methods = list(dict.fromkeys(history["method"])) if "method" in history else [None]
    legend = 0.24 * (len(methods) + 3) if len(methods) > 1 else 0
    axes = axes_for(axes, 1, len(phases), (1 + 4.2 * len(phases), 3.6 + legend))
    for ax, phase in zip(axes, phases, strict=True):
        of_phase = history[history["phase"] == phase]
        relative = RELATIVE in history and of_phase[RELATIVE].notna().any()
        lines = _relative_lines(of_phase) if relative else _plain_lines(of_phase)
        # One line for each run
        shown = []
        for number, method in enumerate(methods):
            runs = of_phase if method is None else of_phase[of_phase["method"] == method]
            if len(runs) and _draw_runs(ax, runs, lines, number, marked=not relative):
                shown.append((number, method))
        # Chance level
        if relative:
            ax.axhline(1, color="0.3", lw=1, zorder=0)
            ax.annotate(
                "chance level",
                (1, 1),
                xycoords=("axes fraction", "data"),
                xytext=(-2, 2),
                textcoords="offset points",
                ha="right",
                color="0.3",
                bbox=dict(facecolor="white", edgecolor="none", alpha=0.7, pad=0.5),
            )
            ax.set_ylim(0, max(1.12, ax.get_ylim()[1]))
        ax.set(
            title=str(phase),
            xlabel="epoch",
            ylabel="training loss relative to chance" if relative else "loss",
        )
        ax.xaxis.get_major_locator().set_params(integer=True)
        # A legend with several methods would cover the lines, so it goes below the panel.
        handles = _legend(shown, lines)
        if handles:
            below = dict(loc="upper left", bbox_to_anchor=(0, -0.15))
            place = below if len(methods) > 1 else {}
            ax.legend(handles=handles, frameon=False, handlelength=3, **place)
        remove_frame(ax)
    return axes


def _check(history: pd.DataFrame) -> None:
    if not isinstance(history, pd.DataFrame):
        raise TypeError(
            f"history is a {type(history).__name__}; pass the DataFrame history_ of a fitted "
            "PARSClassifier."
        )
    missing = [name for name in ("phase", "epoch", "train_loss") if name not in history]
    if missing:
        raise ValueError(
            f"history lacks the column{'s' if len(missing) > 1 else ''} {', '.join(missing)}; it "
            f"has {', '.join(map(str, history.columns)) or 'none'}."
        )
    if history.empty:
        raise ValueError("history is empty; pass the history_ of a fitted estimator.")
    keys = [name for name in ("method", *RUN, "phase", "epoch") if name in history]
    if history.duplicated(keys).any():
        raise ValueError(
            f"history has several rows with the same {', '.join(keys)}; add the columns method and "
            "seed before joining several runs."
        )


def _relative_lines(of_phase: pd.DataFrame) -> dict[str, tuple[str, dict[str, Any]]]:
    """Columns to draw with label and line style: the loss of the whole task and of its parts."""
    parts = [
        name
        for name in of_phase
        if part_of(str(name)) and not lags_of(str(name)) and of_phase[name].notna().any()
    ]
    whole = {RELATIVE: ("whole task", dict(linestyle="-", lw=1.6))}
    return whole | {
        name: (
            part_of(name),
            dict(linestyle=LINES[1 + i % (len(LINES) - 1)], lw=1),
        )
        for i, name in enumerate(parts)
    }


def _plain_lines(of_phase: pd.DataFrame) -> dict[str, tuple[str, dict[str, Any]]]:
    lines = {"train_loss": ("training", dict(linestyle="--", lw=1.2))}
    if "valid_loss" in of_phase and of_phase["valid_loss"].notna().any():
        lines["valid_loss"] = ("validation", dict(linestyle="-", lw=1.6))
    return lines


def _draw_runs(
    ax: Axes,
    runs: pd.DataFrame,
    lines: dict[str, tuple[str, dict[str, Any]]],
    number: int,
    marked: bool,
) -> bool:
    """Draw a line for each run and loss of one method; return whether anything was drawn."""
    style = series_style(number)
    # groupby fails without keys: a history without run columns is a single run.
    keys = [name for name in RUN if name in runs]
    single = [run for _, run in runs.groupby(keys, dropna=False)] if keys else [runs]
    drawn = False
    for run in single:
        # Lines of the losses
        run = run.sort_values("epoch")
        for column, (_, line) in lines.items():
            known = run.dropna(subset=column)
            if known.empty:
                continue
            # Markers distinguish methods in grey print. They are a few epochs apart and shifted
            # by method, so that they do not cover each other.
            every = max(1, len(known) // 6)
            at = slice((number * every // 4) % every, None, every)
            marker = "" if marked or column != RELATIVE else style["marker"]
            ax.plot(
                known["epoch"],
                known[column],
                color=style["color"],
                alpha=0.9 if len(single) == 1 else 0.6,
                marker=marker,
                markevery=at,
                markersize=4,
                **line,
            )
            drawn = True
        # Marker at the lowest validation loss
        if marked and "valid_loss" in lines and run["valid_loss"].notna().any():
            best = run.loc[run["valid_loss"].idxmin()]
            ax.plot(best["epoch"], best["valid_loss"], style["marker"], color=style["color"], ms=7)
    return drawn


def _legend(
    shown: Sequence[tuple[int, Any]], lines: dict[str, tuple[str, dict[str, Any]]]
) -> list[Line2D]:
    """Legend entries: colour and marker of each method, then each line style."""
    named = [(number, method) for number, method in shown if method is not None]
    entries = []
    for number, method in named:
        style = series_style(number)
        marked = dict(color=style["color"], marker=style["marker"], ms=5)
        entries.append(Line2D([], [], label=str(method), **marked))
    if len(lines) > 1:
        color = "0.2" if named else series_style(0)["color"]
        entries += [
            Line2D([], [], color=color, label=name, **line) for name, line in lines.values()
        ]
    if "valid_loss" in lines:
        entries.append(
            Line2D([], [], color="0.2", marker="o", ls="", ms=6, label="lowest validation loss")
        )
    return entries


def lag_losses(history: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the last pretraining loss of PARS, relative to chance, by the lag between two patches.

    A model that matches patches with common samples is good at lags below one patch, and one that
    matches the ends of adjacent patches at lags of one. Only a model that reads a drift, or the
    order of what happens, is below chance at long lags. Losses above 2 are cut off: there, an error
    is larger than the lag itself.

    Parameters
    ----------
    history : DataFrame
        Losses with one row per epoch: the ``history_`` of a
        :class:`~braindecode_pars.PARSClassifier`, the ``metrics.csv`` of a run, or several of them,
        joined with ``pandas.concat`` after adding the column ``method``. Each method is a line: the
        mean over its runs in their last epoch with these losses.
    ax : Axes | None
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        Axes with one line per method, and a line at 1 for the chance level.

    Raises
    ------
    TypeError
        If ``history`` is not a DataFrame.
    ValueError
        If ``history`` has no ``epoch``, or no losses by lag.

    Examples
    --------
    Synthetic losses, with the columns of an estimator's ``history_``:

    .. plot::
        :include-source:
        :alt: Loss relative to chance against the lag between two patches: it rises from .3 to 1.

        >>> import pandas as pd
        >>> from braindecode_pars import plotting
        >>> losses = {"lag_0_1": 0.3, "lag_1_2": 0.6, "lag_2_4": 0.9, "lag_4_8": 1.0}
        >>> columns = {f"train_loss_relative_{name}": loss for name, loss in losses.items()}
        >>> ax = plotting.lag_losses(pd.DataFrame([dict(epoch=50, method="PARS", **columns)]))

    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['< 1', '1-2', '2-4', '4-8']
    """
    if not isinstance(history, pd.DataFrame):
        raise TypeError(f"history is a {type(history).__name__}; pass a DataFrame of losses.")
    columns = {name: lags for name in history if (lags := lags_of(str(name)))}
    if not columns or "epoch" not in history:
        raise ValueError(
            "history has no losses by lag, such as train_loss_relative_lag_1_2, or no column "
            "epoch; pass the history_ of an estimator that was pretrained with PARS."
        )
    known = history.dropna(subset=list(columns), how="all")
    names = known["method"] if "method" in known else pd.Series("PARS", known.index)

    [ax] = axes_for(ax, 1, 1, (5.4, 3.4))
    bins = sorted(set(columns.values()))
    for number, (method, rows) in enumerate(known.groupby(names, sort=False)):
        last = rows[rows["epoch"] == rows["epoch"].max()]
        means = {lags: last[name].mean() for name, lags in columns.items()}
        heights = [means[lags] for lags in bins]
        ax.plot(range(len(bins)), heights, ms=5, label=method, **series_style(number))
    ax.axhline(1, color="0.3", lw=1, zorder=0)
    ax.set_xticks(range(len(bins)), [_label(*lags) for lags in bins])
    ax.set(xlabel="lag between two patches, in patches", ylabel="loss relative to chance")
    ax.set_ylim(0, min(2, max(1.12, ax.get_ylim()[1])))
    if "method" in known:
        ax.legend(frameon=False)
    remove_frame(ax)
    return ax


def _label(low: int, high: int) -> str:
    return f"{low}-{high}" if low else f"< {high}"


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
