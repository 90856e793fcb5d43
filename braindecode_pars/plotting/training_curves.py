"""Losses over epochs, of pretraining and of fine-tuning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from braindecode_pars._columns import RELATIVE, part_of
from braindecode_pars.plotting._style import LINES, axes_for, bare, look

__all__ = ["training_curves"]

#: What tells one run of a method from another.
RUN = ("dataset", "subject", "n_train_subjects", "seed")


def training_curves(history: pd.DataFrame, axes: Sequence[Axes] | None = None) -> np.ndarray:
    """Losses of both phases side by side.

    Where a phase has losses relative to chance, as pretraining has, these are drawn with chance
    as a line at 1, and those of a task's parts as thinner lines; otherwise its training and
    validation loss, with a mark at the lowest validation loss. Every run is a line.

    Parameters
    ----------
    history : DataFrame
        One row an epoch: ``phase``, ``epoch``, ``train_loss``, and optionally ``valid_loss``,
        ``train_loss_relative``, ``train_loss_relative_NAME``, ``method``, and what else tells runs
        apart: ``dataset``, ``subject``, ``n_train_subjects``, ``seed``. The ``history_`` of a
        :class:`~braindecode_pars.PARSClassifier`, several of them put together with
        ``pandas.concat`` after adding ``method`` and ``seed``, or the curves of an ablation.
    axes : one Axes a phase | None
        Made when not given.

    Returns
    -------
    ndarray of Axes, shape (n_phases,)
        In the order of the phases.

    Raises
    ------
    TypeError
        If ``history`` is no DataFrame.
    ValueError
        If it is empty, lacks a column, or has several rows for one epoch of a run.

    Examples
    --------
    Made-up losses, with the columns of an estimator's ``history_``:

    .. plot::
        :include-source:

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
    _check(history)
    phases = list(dict.fromkeys(history["phase"]))
    methods = list(dict.fromkeys(history["method"])) if "method" in history else [None]
    legend = 0.24 * (len(methods) + 3) if len(methods) > 1 else 0
    axes = axes_for(axes, 1, len(phases), (1 + 4.2 * len(phases), 3.6 + legend))
    for ax, phase in zip(axes, phases, strict=True):
        of_phase = history[history["phase"] == phase]
        relative = RELATIVE in history and of_phase[RELATIVE].notna().any()
        lines = _relative_lines(of_phase) if relative else _plain_lines(of_phase)
        shown = []
        for number, method in enumerate(methods):
            runs = of_phase if method is None else of_phase[of_phase["method"] == method]
            if len(runs) and _draw_runs(ax, runs, lines, number, marked=not relative):
                shown.append((number, method))
        if relative:
            ax.axhline(1, color="0.3", lw=1, zorder=0)
            ax.annotate(
                "chance",
                (1, 1),
                xycoords=("axes fraction", "data"),
                xytext=(-2, 2),
                textcoords="offset points",
                ha="right",
                color="0.3",
            )
            ax.set_ylim(0, max(1.12, ax.get_ylim()[1]))
        ax.set(
            title=str(phase),
            xlabel="epoch",
            ylabel="training loss / chance" if relative else "loss",
        )
        ax.xaxis.get_major_locator().set_params(integer=True)
        handles = _legend(shown, lines)
        if handles:
            # Many entries would cover the lines, and names of settings are long.
            below = dict(loc="upper left", bbox_to_anchor=(0, -0.15))
            place = below if len(methods) > 1 else {}
            ax.legend(handles=handles, frameon=False, handlelength=3, **place)
        bare(ax)
    return axes


def _check(history: pd.DataFrame) -> None:
    if not isinstance(history, pd.DataFrame):
        raise TypeError(
            f"history is a {type(history).__name__}; give the DataFrame history_ of a fitted "
            "PARSClassifier."
        )
    missing = [name for name in ("phase", "epoch", "train_loss") if name not in history]
    if missing:
        raise ValueError(
            f"history lacks the column{'s' if len(missing) > 1 else ''} {', '.join(missing)}; it "
            f"has {', '.join(map(str, history.columns)) or 'none'}."
        )
    if history.empty:
        raise ValueError("history is empty; nothing was trained.")
    keys = [name for name in ("method", *RUN, "phase", "epoch") if name in history]
    if history.duplicated(keys).any():
        raise ValueError(
            f"history has several rows of one {', '.join(keys)}; add the columns method and seed "
            "where runs are put together."
        )


def _relative_lines(of_phase: pd.DataFrame) -> dict[str, tuple[str, dict[str, Any]]]:
    """Columns to draw, each with its name and line: the whole loss and that of each part."""
    parts = [
        name for name in of_phase if part_of(str(name)) is not None and of_phase[name].notna().any()
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
    """Draw one method: a line for each run and loss. Says whether there was anything."""
    style = look(number)
    keys = [name for name in RUN if name in runs]
    single = [run for _, run in runs.groupby(keys, dropna=False)] if keys else [runs]
    drawn = False
    for run in single:
        run = run.sort_values("epoch")
        for column, (_, line) in lines.items():
            known = run.dropna(subset=column)
            if known.empty:
                continue
            # Markers tell methods apart in grey; some epochs apart, not the same for all.
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
        if marked and "valid_loss" in lines and run["valid_loss"].notna().any():
            best = run.loc[run["valid_loss"].idxmin()]
            ax.plot(best["epoch"], best["valid_loss"], style["marker"], color=style["color"], ms=7)
    return drawn


def _legend(
    shown: Sequence[tuple[int, Any]], lines: dict[str, tuple[str, dict[str, Any]]]
) -> list[Line2D]:
    """One entry for each method by colour and marker, then one for each kind of line."""
    named = [(number, method) for number, method in shown if method is not None]
    entries = [
        Line2D([], [], color=look(n)["color"], marker=look(n)["marker"], ms=5, label=str(method))
        for n, method in named
    ]
    if len(lines) > 1:
        ink = "0.2" if named else look(0)["color"]
        entries += [Line2D([], [], color=ink, label=name, **line) for name, line in lines.values()]
    if "valid_loss" in lines:
        entries.append(
            Line2D([], [], color="0.2", marker="o", ls="", ms=6, label="lowest validation")
        )
    return entries
