"""Transfer: scores of several methods on several datasets."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from braindecode_pars.plotting._scores import over_seeds, per_seed, seeds_label, select
from braindecode_pars.plotting._style import axes_for, legend_columns, remove_frame, series_style

__all__ = ["transfer"]


def transfer(
    scores: pd.DataFrame, metric: str = "kappa", label: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the scores of each dataset as a row, with a dot for each method.

    The dot is the mean over seeds. Error bars extend one sample standard deviation over seeds to
    both sides. The values of single seeds are faint dots below the mean. The value of a seed is the
    score pooled over test subjects (subject ``"all"``) if every method and seed of the dataset has
    one, and the mean over test subjects otherwise. The figure shows the quantities of the paper's
    table 1.

    Parameters
    ----------
    scores : DataFrame
        Scores of :func:`evaluation.transfer <braindecode_pars.evaluation.transfer>`, or any table
        with the columns ``dataset``, ``method``, ``subject``, ``seed``, ``metric`` and ``value``.
    metric : str
        Metric to draw.
    label : str | None
        Label of the horizontal axis; None uses the name of the metric.
    ax : Axes | None
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        Axes with one row for each dataset; the first dataset is at the top.

    Raises
    ------
    ValueError
        If the scores are empty, or lack a column or the metric.

    Examples
    --------
    Synthetic scores:

    .. plot::
        :include-source:
        :alt: Mean and standard deviation of two methods on two datasets as dots with bars.

        >>> import numpy as np
        >>> import pandas as pd
        >>> from braindecode_pars import plotting
        >>> rng = np.random.default_rng(0)
        >>> scores = pd.DataFrame([
        ...     dict(dataset=dataset, method=method, subject="all", seed=seed,
        ...          metric="kappa", value=level + gain + rng.normal(0, 0.02))
        ...     for dataset, level in [("sleep", 0.6), ("imagery", 0.3)]
        ...     for method, gain in [("method A", 0.05), ("method B", 0.0)]
        ...     for seed in range(5)
        ... ])
        >>> ax = plotting.transfer(scores, label="Cohen's kappa")

    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['sleep', 'imagery']
    """
    # Mean and standard deviation over seeds
    rows = select(scores, metric, ("dataset", "method", "subject", "seed"))
    datasets = list(dict.fromkeys(rows["dataset"]))
    methods = list(dict.fromkeys(rows["method"]))
    # Each dataset by itself: one may have pooled scores and another only scores of subjects.
    # Methods are compared only within a row of the figure.
    by = ("dataset", "method")
    values = pd.concat([per_seed(rows[rows["dataset"] == dataset], by) for dataset in datasets])
    summary = over_seeds(values, by)

    # Dots of each method, slightly shifted between methods
    height = 1.2 + len(datasets) * (0.35 + 0.17 * len(methods))
    [ax] = axes_for(ax, 1, 1, (6.2, height))
    step = 0.7 / len(methods)
    for number, method in enumerate(methods):
        style = series_style(number)
        offset = (number - (len(methods) - 1) / 2) * step
        index = pd.MultiIndex.from_product([datasets, [method]])
        of_method = summary.reindex(index)
        positions = np.arange(len(datasets)) + offset
        ax.errorbar(
            of_method["mean"].to_numpy(),
            positions,
            xerr=of_method["std"].to_numpy(),
            fmt=style["marker"],
            color=style["color"],
            markersize=6,
            capsize=2.5,
            label=method,
        )
        seeds = values[(values["method"] == method) & values["value"].notna()]
        ax.scatter(
            seeds["value"],
            seeds["dataset"].map(datasets.index) + offset + 0.35 * step,
            s=10,
            color=style["color"],
            marker=style["marker"],
            alpha=0.45,
            lw=0,
            zorder=1,
        )
    # Axes and legend
    for row in range(1, len(datasets)):
        ax.axhline(row - 0.5, color="0.88", lw=0.8, zorder=0)
    ax.set_yticks(range(len(datasets)), list(map(str, datasets)))
    ax.set_ylim(len(datasets) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="0.92")
    ax.set_axisbelow(True)
    interval = seeds_label(summary["count"])
    faint = "" if interval == "one seed" else "; faint: single seeds"
    ax.set_xlabel(f"{label or metric.replace('_', ' ')}\n({interval}{faint})")
    n_columns = min(3, legend_columns(methods, ax.figure.get_figwidth()))
    ax.legend(frameon=False, ncols=n_columns, loc="lower left", bbox_to_anchor=(0, 1))
    remove_frame(ax)
    return ax
