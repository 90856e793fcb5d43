"""Scores of each person, method beside method."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from braindecode_pars.plotting._scores import is_pooled, select
from braindecode_pars.plotting._style import COLORS, HATCHES, axes_for, bare

__all__ = ["paired_bars"]

# The plain asterisk hangs at the top of its line, too far above a bar.
STAR = "\N{ASTERISK OPERATOR}"


def paired_bars(
    scores: pd.DataFrame,
    metric: str = "kappa",
    label: str | None = None,
    ax: Axes | None = None,
    *,
    stars: bool = True,
) -> Axes:
    """One group of bars for each subject, one bar for each method, and each method's mean.

    After the paper's figure 8, "Wearable Sleep Staging Results". Values that are NaN are not drawn
    and stay out of the mean; rows pooled over subjects are left out.

    Parameters
    ----------
    scores : DataFrame
        Of :func:`~braindecode_pars.evaluation.compare` or
        :func:`~braindecode_pars.evaluation.leave_one_subject_out`, or any with ``method``,
        ``subject``, ``metric`` and ``value``; several seeds are averaged, and their standard
        deviation drawn.
    metric : str
        Which metric to draw.
    label : str | None
        For the vertical axis; the metric's name when not given.
    ax : Axes | None
        Made when not given.
    stars : bool
        Put a star over the method with the highest value of a subject. A subject gets none where
        two share it, or where the value of a method is missing.

    Returns
    -------
    Axes
        Subjects in the order of the scores; the means, with their standard deviations over
        subjects, are at the right.

    Raises
    ------
    ValueError
        If the scores are empty, lack a column or the metric, mix data sets or protocols, or hold
        nothing but pooled rows.

    Examples
    --------
    Made-up scores:

    .. plot::
        :include-source:

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
    rows = select(scores, metric, ("method", "subject"), one=("dataset", "protocol"))
    rows = rows[~is_pooled(rows)]
    if rows.empty:
        raise ValueError(
            "All scores are pooled over subjects (subject 'all'); bars of subjects need one row a "
            "subject."
        )
    methods = list(dict.fromkeys(rows["method"]))
    subjects = list(dict.fromkeys(rows["subject"]))
    groups = rows.groupby(["subject", "method"], sort=False)["value"]
    means = groups.mean().unstack().reindex(index=subjects, columns=methods)
    spreads = groups.std().unstack().reindex(index=subjects, columns=methods)

    width = 2.5 + 0.28 * len(methods) * (len(subjects) + 1.3)
    [ax] = axes_for(ax, 1, 1, (min(width, 14), 3.6))
    bar = 0.8 / len(methods)
    offsets = (np.arange(len(methods)) - (len(methods) - 1) / 2) * bar
    places = np.arange(len(subjects))
    for m, method in enumerate(methods):
        style = dict(
            width=bar * 0.92,
            color=COLORS[m % len(COLORS)],
            hatch=HATCHES[m % len(HATCHES)],
            edgecolor="white",
            lw=0,
        )
        of_method = means[method].to_numpy(), spreads[method].to_numpy()
        _bars(ax, places + offsets[m], *of_method, label=method, **style)
        mean, spread = means[method].mean(), means[method].std()
        _bars(ax, [len(subjects) + 0.5 + offsets[m]], [mean], [spread], capsize=2, **style)
    starred = stars and _star_winners(ax, means, spreads, offsets)
    ax.axhline(0, color="0.3", lw=0.8)
    ax.axvline(len(subjects) - 0.25, color="0.85", lw=0.8)
    ax.set_xticks([*places, len(subjects) + 0.5], [*map(str, subjects), "mean ± SD"])
    if len(subjects) > 12:
        ax.tick_params(axis="x", labelrotation=90)
    ax.set(
        xlabel="subject left out" + (f"  ({STAR} highest of the subject)" if starred else ""),
        ylabel=label or metric.replace("_", " "),
    )
    ax.legend(
        frameon=False, ncols=len(methods), loc="lower left", bbox_to_anchor=(0, 1), handlelength=1.5
    )
    bare(ax)
    return ax


def _bars(
    ax: Axes,
    places: ArrayLike,
    heights: ArrayLike,
    spreads: ArrayLike,
    *,
    capsize: float = 0,
    **style: Any,
) -> None:
    """Bars where there is a height, and error bars where there is a spread."""
    places, heights, spreads = (
        np.asarray(values, dtype=float) for values in (places, heights, spreads)
    )
    drawn = np.isfinite(heights)
    ax.bar(places[drawn], heights[drawn], **style)
    drawn &= np.isfinite(spreads)
    if drawn.any():
        ax.errorbar(
            places[drawn],
            heights[drawn],
            spreads[drawn],
            fmt="none",
            ecolor="0.15",
            elinewidth=1,
            capsize=capsize,
        )


def _star_winners(
    ax: Axes, means: pd.DataFrame, spreads: pd.DataFrame, offsets: np.ndarray
) -> bool:
    """Write a star over the one highest bar of each subject; say whether there was any."""
    if means.shape[1] < 2:
        return False
    starred = False
    for i, values in enumerate(means.to_numpy()):
        best = values.max()  # NaN if any is
        winners = np.flatnonzero(np.isclose(values, best))
        if len(winners) != 1:
            continue
        [winner] = winners
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
    if starred:
        ax.margins(y=0.1)
    return starred
