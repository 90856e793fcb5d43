"""Scores of each held-out subject as dots, joined from method to method."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from braindecode_pars.plotting._scores import chosen_methods, in_order, is_pooled, select
from braindecode_pars.plotting._style import (
    axes_for,
    draw_chance,
    legend_columns,
    remove_frame,
    series_style,
)

__all__ = ["subject_dots"]


def subject_dots(
    scores: pd.DataFrame,
    metric: str = "kappa",
    label: str | None = None,
    ax: Axes | None = None,
    *,
    methods: Sequence[str] | None = None,
    chance: float | None = None,
) -> Axes:
    """Draw a dot for each held-out subject and method, and a line between those of one subject.

    A mean does not show whether a method is a little better for all subjects or much better for a
    few. There is one group of columns for each number of training subjects. Seeds of a subject are
    averaged. The black bar is the mean over subjects. NaN values are not drawn. Rows pooled over
    subjects are ignored.

    Parameters
    ----------
    scores : DataFrame
        Scores of a protocol of :mod:`braindecode_pars.evaluation`, or any table with the columns
        ``method``, ``subject``, ``n_train_subjects``, ``metric`` and ``value``.
    metric : str
        Metric to draw.
    label : str | None
        Label of the vertical axis; None uses the name of the metric.
    ax : Axes | None
        Axes to draw on; None makes a new figure.
    methods : sequence of str | None
        Methods to draw, in this order; None draws all. Each keeps the style that it has among all
        methods of the scores.
    chance : float | None
        Chance level of the metric, drawn as a dotted line; None draws none.

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        If the scores are empty, lack a column or the metric, contain several datasets or
        protocols, or contain only pooled rows. Also if a method in ``methods`` is not in the
        scores.

    Examples
    --------
    Synthetic scores:

    .. plot::
        :include-source:
        :alt: Dots of twelve subjects for two methods, joined by lines, with 2 and with 8 training
            subjects.

        >>> import numpy as np
        >>> import pandas as pd
        >>> from braindecode_pars import plotting
        >>> rng = np.random.default_rng(0)
        >>> levels = rng.uniform(0.3, 0.7, 12)
        >>> scores = pd.DataFrame([
        ...     dict(method=method, subject=subject, n_train_subjects=n, metric="kappa",
        ...          value=level + gain / n + rng.normal(0, 0.03))
        ...     for method, gain in [("method A", 0), ("method B", 0.2)]
        ...     for n in (2, 8)
        ...     for subject, level in enumerate(levels)
        ... ])
        >>> ax = plotting.subject_dots(scores, label="Cohen's kappa")

    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['2', '8']
    """
    # Mean over seeds, with subjects as rows and methods as columns, for each number of subjects
    rows = select(
        scores, metric, ("method", "subject", "n_train_subjects"), one=("dataset", "protocol")
    )
    rows = rows[~is_pooled(rows)]
    if rows.empty:
        raise ValueError(
            "All scores are pooled over subjects (subject 'all'); this figure needs a row for each "
            "subject."
        )
    styles = chosen_methods(rows, methods)
    rows = rows[rows["method"].isin(styles)]
    methods = list(styles)
    sizes = in_order(rows["n_train_subjects"])
    means = rows.pivot_table("value", ["n_train_subjects", "subject"], "method", dropna=False)

    # One column for each method, and a gap after each group
    step = len(methods) + 1
    [ax] = axes_for(ax, 1, 1, (np.clip(2 + 0.26 * step * len(sizes), 4.6, 14), 4.0))
    for group, size in enumerate(sizes):
        values = means.loc[size].reindex(columns=methods).to_numpy()
        columns = group * step + np.arange(len(methods))
        ax.plot(columns, values.T, color="0.85", lw=0.7, zorder=1)
        for method, column, of_method in zip(methods, columns, values.T, strict=True):
            _draw_column(ax, column, of_method, styles[method], label="" if group else method)
    # Axes and legend
    draw_chance(ax, chance)
    ax.set_xticks(np.arange(len(sizes)) * step + (len(methods) - 1) / 2, [f"{n:g}" for n in sizes])
    ax.tick_params(axis="x", length=0)
    # The label has 5 inches on one line.
    width = ax.figure.get_figwidth() * ax.get_position().width
    space = " " if width > 5 else "\n"
    ax.set(
        xlabel=f"training subjects{space}(a dot is a held-out subject, a black bar the mean)",
        ylabel=label or metric.replace("_", " "),
    )
    n_columns = legend_columns(methods, ax.figure.get_figwidth())
    ax.legend(frameon=False, ncols=n_columns, loc="lower left", bbox_to_anchor=(0, 1))
    ax.grid(axis="y", color="0.92")
    ax.set_axisbelow(True)
    remove_frame(ax)
    return ax


def _draw_column(ax: Axes, x: float, values: np.ndarray, number: int, label: str) -> None:
    """Draw the dots of one method, and the bar of their mean."""
    style = {**series_style(number), "linestyle": ""}
    ax.plot(np.full(len(values), x), values, markersize=4, alpha=0.8, label=label, **style)
    if np.isfinite(values).any():
        ax.hlines(np.nanmean(values), x - 0.4, x + 0.4, color="black", lw=2, zorder=3)
