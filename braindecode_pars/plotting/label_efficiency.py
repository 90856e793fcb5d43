"""Label efficiency: scores over the number of labelled training subjects."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from braindecode_pars.plotting._scores import (
    chosen_methods,
    in_order,
    over_seeds,
    per_seed,
    seeds_label,
    select,
)
from braindecode_pars.plotting._style import (
    axes_for,
    draw_chance,
    legend_columns,
    remove_frame,
    series_style,
)

__all__ = ["label_efficiency"]


def label_efficiency(
    scores: pd.DataFrame,
    metric: str = "kappa",
    label: str | None = None,
    ax: Axes | None = None,
    *,
    methods: Sequence[str] | None = None,
    chance: float | None = None,
) -> Axes:
    """Draw the scores of each method as a curve over the number of training subjects.

    The figure follows the paper's figure 3, "Label Efficiency Experiment". Lines are means over
    seeds. Bands extend one sample standard deviation over seeds to both sides. The value of a seed
    is the score pooled over test subjects (subject ``"all"``) if every seed, method and number of
    subjects has one, and the mean over test subjects otherwise.

    Parameters
    ----------
    scores : DataFrame
        Scores of :func:`evaluation.label_efficiency
        <braindecode_pars.evaluation.label_efficiency>`, or any table with the columns ``method``,
        ``subject``, ``n_train_subjects``, ``seed``, ``metric`` and ``value``.
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
        Axes with the curves. The horizontal axis is logarithmic when the numbers of subjects span
        more than a factor of four.

    Raises
    ------
    ValueError
        If the scores are empty, lack a column or the metric, or contain several datasets or
        protocols. Also if a method in ``methods`` is not in the scores.

    Examples
    --------
    Synthetic scores:

    .. plot::
        :include-source:
        :alt: Kappa against the number of training subjects as two lines with bands; both rise.

        >>> import numpy as np
        >>> import pandas as pd
        >>> from braindecode_pars import plotting
        >>> rng = np.random.default_rng(0)
        >>> scores = pd.DataFrame([
        ...     dict(method=method, subject="all", n_train_subjects=n, seed=seed,
        ...          metric="kappa",
        ...          value=level + 0.1 * np.log10(n) + rng.normal(0, 0.02))
        ...     for method, level in [("method A", 0.4), ("method B", 0.3)]
        ...     for n in (10, 30, 100, 300)
        ...     for seed in range(5)
        ... ])
        >>> ax = plotting.label_efficiency(scores, label="Cohen's kappa")

    >>> [line.get_label() for line in ax.get_lines()]
    ['method A', 'method B']
    """
    # Mean and standard deviation over seeds
    rows = select(
        scores,
        metric,
        ("method", "subject", "n_train_subjects", "seed"),
        one=("dataset", "protocol"),
    )
    styles = chosen_methods(rows, methods)
    rows = rows[rows["method"].isin(styles)]
    values = per_seed(rows, ("method", "n_train_subjects"))
    summary = over_seeds(values, ("method", "n_train_subjects"))
    # One curve for each method
    is_crowded = len(styles) > 4  # then the legend is beside the curves, else above them
    [ax] = axes_for(ax, 1, 1, (7.6 if is_crowded else 5.6, 4.0))
    for method, number in styles.items():
        style = series_style(number)
        if method not in summary.index:  # all values are NaN; keep the legend entry
            ax.plot([], [], label=method, **style)
            continue
        curve = summary.loc[method].sort_index()
        ax.plot(curve.index, curve["mean"], label=method, markersize=5, **style)
        low, high = curve["mean"] - curve["std"], curve["mean"] + curve["std"]
        ax.fill_between(curve.index, low, high, color=style["color"], alpha=0.18, lw=0)
    # Axes and legend
    draw_chance(ax, chance)
    _set_ticks(ax, in_order(values["n_train_subjects"]))
    ax.set(
        xlabel="training subjects",
        ylabel=f"{label or metric.replace('_', ' ')}\n({seeds_label(summary['count'])})",
    )
    if is_crowded:
        place = dict(loc="center left", bbox_to_anchor=(1.02, 0.5))
    else:
        n_columns = legend_columns(list(styles), ax.figure.get_figwidth())
        place = dict(loc="lower left", bbox_to_anchor=(0, 1), ncols=n_columns)
    ax.legend(frameon=False, handlelength=3, **place)
    ax.grid(axis="y", color="0.92")
    ax.set_axisbelow(True)
    remove_frame(ax)
    return ax


def _set_ticks(ax: Axes, sizes: Sequence[float]) -> None:
    """Put a tick at each number of subjects, except where its label would overlap another."""
    logarithmic = sizes[0] > 0 and sizes[-1] > 4 * sizes[0]
    if logarithmic:
        ax.set_xscale("log")
    positions = np.log(sizes) if logarithmic else np.asarray(sizes, dtype=float)
    # Go from the largest number to the smallest; skip ticks too close to the last one shown.
    min_distance = 0.07 * (positions[-1] - positions[0])
    shown = [len(sizes) - 1]
    for i in range(len(sizes) - 2, -1, -1):
        if positions[shown[-1]] - positions[i] >= min_distance:
            shown.append(i)
    ax.set_xticks([sizes[i] for i in shown], [f"{sizes[i]:g}" for i in shown])
    ax.set_xticks([], minor=True)
