"""What one pretrained encoder is worth on several data sets."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from braindecode_pars.plotting._scores import over_seeds, per_seed, select, told
from braindecode_pars.plotting._style import axes_for, bare, look

__all__ = ["transfer"]


def transfer(
    scores: pd.DataFrame, metric: str = "kappa", label: str | None = None, ax: Axes | None = None
) -> Axes:
    """One row for each data set, a dot for each method at its mean over seeds.

    Bars reach one sample standard deviation over seeds to both sides; every seed is drawn faintly
    below its mean. A seed's value is the one pooled over test subjects (subject ``"all"``) where a
    data set has that for all methods, otherwise the mean over subjects. It shows what the paper's
    table 1 lists.

    Parameters
    ----------
    scores : DataFrame
        Of :func:`evaluation.transfer <braindecode_pars.evaluation.transfer>`, or any with
        ``dataset``, ``method``, ``subject``, ``seed``, ``metric`` and ``value``.
    metric : str
        Which metric to draw.
    label : str | None
        For the horizontal axis; the metric's name when not given.
    ax : Axes | None
        Made when not given.

    Returns
    -------
    Axes
        The first data set is at the top.

    Raises
    ------
    ValueError
        If the scores are empty, or lack a column or the metric.

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
        ...     dict(dataset=dataset, method=method, subject="all", seed=seed,
        ...          metric="kappa", value=level + lead + rng.normal(0, 0.02))
        ...     for dataset, level in [("sleep", 0.6), ("imagery", 0.3)]
        ...     for method, lead in [("method A", 0.05), ("method B", 0.0)]
        ...     for seed in range(5)
        ... ])
        >>> ax = plotting.transfer(scores, label="Cohen's kappa")

    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['sleep', 'imagery']
    """
    rows = select(scores, metric, ("dataset", "method", "subject", "seed"))
    datasets = list(dict.fromkeys(rows["dataset"]))
    methods = list(dict.fromkeys(rows["method"]))
    # Each data set on its own: what is compared lies in one row of the figure.
    by = ("dataset", "method")
    values = pd.concat([per_seed(rows[rows["dataset"] == dataset], by) for dataset in datasets])
    summary = over_seeds(values, by)

    height = 1.2 + len(datasets) * (0.35 + 0.17 * len(methods))
    [ax] = axes_for(ax, 1, 1, (6.2, height))
    step = 0.7 / len(methods)
    for number, method in enumerate(methods):
        style = look(number)
        offset = (number - (len(methods) - 1) / 2) * step
        index = pd.MultiIndex.from_product([datasets, [method]])
        of_method = summary.reindex(index)
        places = np.arange(len(datasets)) + offset
        ax.errorbar(
            of_method["mean"].to_numpy(),
            places,
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
    for between in range(1, len(datasets)):
        ax.axhline(between - 0.5, color="0.88", lw=0.8, zorder=0)
    ax.set_yticks(range(len(datasets)), list(map(str, datasets)))
    ax.set_ylim(len(datasets) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="0.92")
    ax.set_axisbelow(True)
    seeds_told = told(summary["count"])
    faint = "" if seeds_told == "one seed" else "; faint: single seeds"
    ax.set_xlabel(f"{label or metric.replace('_', ' ')}\n({seeds_told}{faint})")
    ax.legend(frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
    bare(ax)
    return ax
