"""Scores of each held-out subject as bars, one for each method."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from braindecode_pars.plotting._scores import is_pooled, select
from braindecode_pars.plotting._style import COLORS, HATCHES, axes_for, legend_columns, remove_frame

__all__ = ["paired_bars"]

# The ordinary asterisk is drawn at the top of its line, too far above a bar.
STAR = "\N{ASTERISK OPERATOR}"


def paired_bars(
    scores: pd.DataFrame,
    metric: str = "kappa",
    label: str | None = None,
    ax: Axes | None = None,
    *,
    stars: bool = True,
) -> Axes:
    """Draw the scores of each subject as a group of bars, with one bar for each method.

    The figure follows the paper's figure 8, "Wearable Sleep Staging Results". A further group of
    bars shows the mean of each method. NaN values are not drawn and are excluded from the mean.
    Rows pooled over subjects are ignored.

    Parameters
    ----------
    scores : DataFrame
        Scores of :func:`~braindecode_pars.evaluation.compare` or
        :func:`~braindecode_pars.evaluation.leave_one_subject_out`, or any table with the columns
        ``method``, ``subject``, ``metric`` and ``value``. Several seeds are averaged, and their
        standard deviation is drawn as an error bar.
    metric : str
        Metric to draw.
    label : str | None
        Label of the vertical axis; None uses the name of the metric.
    ax : Axes | None
        Axes to draw on; None makes a new figure.
    stars : bool
        Whether to put a star over the method with the highest value of each subject. A subject
        has no star when two methods share the highest value, or when a method has no value.

    Returns
    -------
    Axes
        Axes with the subjects in the order of the scores. The means and their standard deviations
        over subjects are at the right.

    Raises
    ------
    ValueError
        If the scores are empty, lack a column or the metric, contain several datasets or
        protocols, or contain only pooled rows.

    Examples
    --------
    Synthetic scores:

    .. plot::
        :include-source:
        :alt: Bars of three methods for each of six subjects, a star on the highest, and their
            means at the right.

        >>> import numpy as np
        >>> import pandas as pd
        >>> from braindecode_pars import plotting
        >>> rng = np.random.default_rng(0)
        >>> scores = pd.DataFrame([
        ...     dict(method=method, subject=subject, seed=0, metric="kappa",
        ...          value=rng.uniform(0.3, 0.7))
        ...     for method in ("method A", "method B", "method C")
        ...     for subject in range(1, 7)
        ... ])
        >>> ax = plotting.paired_bars(scores, label="Cohen's kappa")

    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['1', '2', '3', '4', '5', '6', 'mean ± SD']
    """
    # Mean and standard deviation over seeds, with subjects as rows and methods as columns
    rows = select(scores, metric, ("method", "subject"), one=("dataset", "protocol"))
    rows = rows[~is_pooled(rows)]
    if rows.empty:
        raise ValueError(
            "All scores are pooled over subjects (subject 'all'); this figure needs a row for each "
            "subject."
        )
    methods = list(dict.fromkeys(rows["method"]))
    subjects = list(dict.fromkeys(rows["subject"]))
    groups = rows.groupby(["subject", "method"], sort=False)["value"]
    means = groups.mean().unstack().reindex(index=subjects, columns=methods)
    spreads = groups.std().unstack().reindex(index=subjects, columns=methods)

    # Bars of the subjects, and of the mean over subjects at the right
    width = 2.5 + 0.28 * len(methods) * (len(subjects) + 1.3)
    [ax] = axes_for(ax, 1, 1, (min(width, 14), 3.6))
    bar = 0.8 / len(methods)
    offsets = (np.arange(len(methods)) - (len(methods) - 1) / 2) * bar
    positions = np.arange(len(subjects))
    for m, method in enumerate(methods):
        style = dict(
            width=bar * 0.92,
            color=COLORS[m % len(COLORS)],
            hatch=HATCHES[m % len(HATCHES)],
            edgecolor="white",
            lw=0,
        )
        of_method = means[method].to_numpy(), spreads[method].to_numpy()
        _draw_bars(ax, positions + offsets[m], *of_method, label=method, **style)
        mean, spread = means[method].mean(), means[method].std()
        _draw_bars(ax, [len(subjects) + 0.5 + offsets[m]], [mean], [spread], capsize=2, **style)
    starred = stars and _draw_stars(ax, means, spreads, offsets)
    # Axes and legend
    ax.axhline(0, color="0.3", lw=0.8)
    ax.axvline(len(subjects) - 0.25, color="0.85", lw=0.8)
    ax.set_xticks([*positions, len(subjects) + 0.5], [*map(str, subjects), "mean ± SD"])
    if len(subjects) > 12:
        ax.tick_params(axis="x", labelrotation=90)
    ax.set(
        xlabel="held-out subject" + (f"  ({STAR} highest value per subject)" if starred else ""),
        ylabel=label or metric.replace("_", " "),
    )
    n_columns = legend_columns(methods, ax.figure.get_figwidth())
    ax.legend(
        frameon=False, ncols=n_columns, loc="lower left", bbox_to_anchor=(0, 1), handlelength=1.5
    )
    remove_frame(ax)
    return ax


def _draw_bars(
    ax: Axes,
    positions: ArrayLike,
    heights: ArrayLike,
    spreads: ArrayLike,
    *,
    capsize: float = 0,
    **style: Any,
) -> None:
    """Draw bars with finite heights, and error bars with finite spreads."""
    positions, heights, spreads = (
        np.asarray(values, dtype=float) for values in (positions, heights, spreads)
    )
    drawn = np.isfinite(heights)
    ax.bar(positions[drawn], heights[drawn], **style)
    drawn &= np.isfinite(spreads)
    if drawn.any():
        ax.errorbar(
            positions[drawn],
            heights[drawn],
            spreads[drawn],
            fmt="none",
            ecolor="0.15",
            elinewidth=1,
            capsize=capsize,
        )


def _draw_stars(ax: Axes, means: pd.DataFrame, spreads: pd.DataFrame, offsets: np.ndarray) -> bool:
    """Draw a star over the highest bar of each subject; return whether any was drawn."""
    if means.shape[1] < 2:
        return False
    starred = False
    for i, values in enumerate(means.to_numpy()):
        best = values.max()  # NaN if a method has no value; then there is no winner
        winners = np.flatnonzero(np.isclose(values, best))
        if len(winners) != 1:
            continue
        [winner] = winners
        # Above the bar and its error bar
        top = max(0, best + np.nan_to_num(spreads.iloc[i, winner]))
        ax.annotate(
            STAR,
            (i + offsets[winner], top),
            xytext=(0, 1),
            textcoords="offset points",
            ha="center",
            va="bottom",
        )
        starred = True
    # Room for the stars
    if starred:
        ax.margins(y=0.1)
    return starred
