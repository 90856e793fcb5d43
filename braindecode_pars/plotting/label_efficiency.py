"""How a score grows with the number of people who are labelled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from braindecode_pars.plotting._scores import in_order, over_seeds, per_seed, select, told
from braindecode_pars.plotting._style import axes_for, bare, look

__all__ = ["label_efficiency"]


def label_efficiency(
    scores: pd.DataFrame, metric: str = "kappa", label: str | None = None, ax: Axes | None = None
) -> Axes:
    """A curve for each method over the number of training subjects, with the seeds' spread.

    After the paper's figure 3, "Label Efficiency Experiment". Lines are means over seeds, bands
    their sample standard deviation to both sides. A seed's value is the one pooled
    over test subjects (subject ``"all"``) where there is one, otherwise the mean over them.

    Parameters
    ----------
    scores : DataFrame
        Of :func:`evaluation.label_efficiency <braindecode_pars.evaluation.label_efficiency>`, or
        any with ``method``, ``subject``, ``n_train_subjects``, ``seed``, ``metric`` and ``value``.
    metric : str
        Which metric to draw.
    label : str | None
        For the vertical axis; the metric's name when not given.
    ax : Axes | None
        Made when not given.

    Returns
    -------
    Axes
        With a logarithmic axis where the numbers of subjects span more than a factor of four.

    Raises
    ------
    ValueError
        If the scores are empty, lack a column or the metric, or mix data sets or protocols.

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
    rows = select(
        scores,
        metric,
        ("method", "subject", "n_train_subjects", "seed"),
        one=("dataset", "protocol"),
    )
    values = per_seed(rows, ("method", "n_train_subjects"))
    summary = over_seeds(values, ("method", "n_train_subjects"))
    [ax] = axes_for(ax, 1, 1, (5.6, 4.0))
    methods = list(dict.fromkeys(rows["method"]))
    for number, method in enumerate(methods):
        style = look(number)
        if method not in summary.index:  # no value at all is defined
            ax.plot([], [], label=method, **style)
            continue
        curve = summary.loc[method].sort_index()
        ax.plot(curve.index, curve["mean"], label=method, markersize=5, **style)
        low, high = curve["mean"] - curve["std"], curve["mean"] + curve["std"]
        ax.fill_between(curve.index, low, high, color=style["color"], alpha=0.18, lw=0)
    _size_axis(ax, in_order(values["n_train_subjects"]))
    ax.set(
        xlabel="subjects in the training set",
        ylabel=f"{label or metric.replace('_', ' ')}\n({told(summary['count'])})",
    )
    ax.legend(frameon=False, handlelength=3)
    ax.grid(axis="y", color="0.92")
    ax.set_axisbelow(True)
    bare(ax)
    return ax


def _size_axis(ax: Axes, sizes: Sequence[float]) -> None:
    """Ticks at the sizes themselves, without those that would run into their neighbours."""
    logarithmic = sizes[0] > 0 and sizes[-1] > 4 * sizes[0]
    if logarithmic:
        ax.set_xscale("log")
    places = np.log(sizes) if logarithmic else np.asarray(sizes, dtype=float)
    closest = 0.07 * (places[-1] - places[0])
    shown = [len(sizes) - 1]
    for i in range(len(sizes) - 2, -1, -1):
        if places[shown[-1]] - places[i] >= closest:
            shown.append(i)
    ax.set_xticks([sizes[i] for i in shown], [f"{sizes[i]:g}" for i in shown])
    ax.set_xticks([], minor=True)
