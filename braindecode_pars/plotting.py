"""Tidy DataFrames or arrays -> matplotlib Axes."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

__all__ = ["night", "paired_bars", "shift_matrices"]

# Okabe and Ito's colours, told apart by everyone.
COLORS = ("#0072B2", "#E69F00", "#999999", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")


def shift_matrices(
    prediction: np.ndarray, target: np.ndarray, axes: Sequence[Axes] | None = None
) -> Sequence[Axes]:
    """Predicted and true relative shifts of one window, and the one against the other (fig. 5).

    Parameters
    ----------
    prediction, target : ndarray, shape (n_masked, n_masked)
        In units of the window's length, patches in chronological order.
    axes : three Axes | None
        Made when not given.
    """
    if axes is None:
        _, axes = plt.subplots(1, 3, figsize=(10.5, 3.4), layout="constrained")
    for ax, matrix, title in zip(
        axes, (target, prediction), ("true shift", "predicted shift"), strict=False
    ):
        image = ax.imshow(matrix, cmap="RdBu_r", vmin=-1, vmax=1)
        ax.set(title=title, xlabel="patch k, by time", ylabel="patch j, by time")
    axes[1].figure.colorbar(image, ax=list(axes[:2]), label="$(t_j - t_k) / T$", shrink=0.9)

    rmse = float(np.sqrt(np.mean((prediction - target) ** 2)))
    axes[2].plot([-1, 1], [-1, 1], color="0.7", lw=1, zorder=0)
    axes[2].scatter(target.ravel(), prediction.ravel(), s=5, color=COLORS[0], alpha=0.35, lw=0)
    axes[2].set(
        title=f"RMSE {rmse:.2f} T",
        xlabel="true shift",
        ylabel="predicted shift",
        xlim=(-1, 1),
        ylim=(-1, 1),
        aspect="equal",
    )
    return axes


def paired_bars(
    scores: pd.DataFrame, metric: str = "kappa", label: str | None = None, ax: Axes | None = None
) -> Axes:
    """One group of bars for each subject, one bar for each method, and each method's mean.

    Parameters
    ----------
    scores : DataFrame
        With the columns ``method``, ``subject``, ``metric`` and ``value``; several seeds are
        averaged, and their standard deviation drawn.
    metric : str
        Which metric to draw.
    label : str | None
        For the vertical axis; the metric's name when not given.
    ax : Axes | None
        Made when not given.
    """
    scores = scores[scores["metric"] == metric]
    methods = list(dict.fromkeys(scores["method"]))
    subjects = list(dict.fromkeys(scores["subject"]))
    if ax is None:
        width = 2.5 + 0.28 * len(methods) * (len(subjects) + 1.3)
        _, ax = plt.subplots(figsize=(min(width, 14), 3.6), layout="constrained")
    bar = 0.8 / len(methods)
    for m, method in enumerate(methods):
        by_subject = scores[scores["method"] == method].groupby("subject", sort=False)["value"]
        mean, spread = by_subject.mean().reindex(subjects), by_subject.std().reindex(subjects)
        offset = (m - (len(methods) - 1) / 2) * bar
        style = dict(width=bar * 0.92, color=COLORS[m % len(COLORS)])
        drawn = dict(yerr=spread.fillna(0.0)) if spread.notna().any() else {}
        ax.bar(np.arange(len(subjects)) + offset, mean, label=method, **style, **drawn)
        ax.bar(
            len(subjects) + 0.5 + offset,
            mean.mean(),
            yerr=mean.std(),
            capsize=2,
            **style,
        )
    ax.axhline(0, color="0.3", lw=0.8)
    ax.axvline(len(subjects) - 0.25, color="0.85", lw=0.8)
    ax.set_xticks([*range(len(subjects)), len(subjects) + 0.5], [*map(str, subjects), "mean ± SD"])
    ax.set(xlabel="subject left out", ylabel=label or metric.replace("_", " "))
    ax.legend(frameon=False, ncols=len(methods), loc="lower left", bbox_to_anchor=(0, 1))
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def night(
    windows: np.ndarray,
    stages: np.ndarray,
    stage_names: Sequence[str],
    sfreq: float,
    channel: int = 0,
    axes: Sequence[Axes] | None = None,
) -> Sequence[Axes]:
    """A hypnogram, and one 30-second window of each stage below it.

    Parameters
    ----------
    windows : ndarray, shape (n_windows, n_chans, n_times)
        Volts, in chronological order.
    stages : ndarray of int, shape (n_windows,)
        Indices into ``stage_names``.
    stage_names : sequence of str
    sfreq : float
        Sampling rate in Hz.
    channel : int
        Which channel to draw.
    axes : sequence of 1 + len(stage_names) Axes | None
        Made when not given.
    """
    if axes is None:
        n = len(stage_names)
        _, axes = plt.subplots(
            1 + n,
            1,
            figsize=(9, 1.8 + 1.15 * n),
            layout="constrained",
            height_ratios=[1.5] + [1] * n,
        )
    hours = np.arange(len(stages) + 1) * windows.shape[-1] / sfreq / 3600
    # From top to bottom as sleep laboratories draw it: wake, REM, then ever deeper.
    order = [s for s in ("W", "R", "N1", "N2", "N3") if s in stage_names]
    depth = np.array([-order.index(name) for name in stage_names])
    axes[0].stairs(depth[stages], hours, baseline=None, color="0.2")
    axes[0].set_yticks(range(0, -len(order), -1), order)
    axes[0].set(xlabel="hours", xlim=(0, hours[-1]))
    seconds = np.arange(windows.shape[-1]) / sfreq
    for ax, stage in zip(axes[1:], (stage_names.index(name) for name in order), strict=True):
        of_stage = np.flatnonzero(stages == stage)
        if len(of_stage):
            middle = of_stage[len(of_stage) // 2]
            ax.plot(seconds, 1e6 * windows[middle, channel], lw=0.5, color=COLORS[0])
        ax.set(ylim=(-90, 90), xlim=(0, seconds[-1]), ylabel=f"{stage_names[stage]}\nµV")
        if ax is not axes[-1]:
            ax.set_xticklabels([])
    axes[-1].set_xlabel("seconds")
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    return axes
