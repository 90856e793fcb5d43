"""Training curves: losses over epochs of pretraining and fine-tuning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from braindecode_pars._columns import RELATIVE, lags_of, part_of
from braindecode_pars.plotting._style import LINES, axes_for, remove_frame, series_style

__all__ = ["training_curves"]

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
