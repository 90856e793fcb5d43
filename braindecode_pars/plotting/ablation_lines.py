"""Scores over one setting, with a line for each value of another."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from braindecode_pars.plotting._scores import in_order, over_seeds, per_seed, seeds_label, select
from braindecode_pars.plotting._style import axes_for, remove_frame, series_style

__all__ = ["ablation_lines"]


def ablation_lines(
    scores: pd.DataFrame,
    *,
    x: str,
    lines: str,
    metric: str = "kappa",
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean score over one setting, as a line for each value of another.

    Behind each line, a band extends one sample standard deviation over seeds to both sides, as in
    the paper's ablations of masking, patch sampling and decoder (appendix A.4, figure 6). The value
    of a seed is the score pooled over test subjects (subject ``"all"``) if every seed and pair has
    one, and the mean over test subjects otherwise. It is averaged over all other columns that vary.

    Parameters
    ----------
    scores : DataFrame
        Scores with the columns ``subject``, ``seed``, ``metric``, ``value`` and one column for each
        setting, such as ``decoder`` and ``position_mask_ratio``. Rows without a value for one of
        the two settings are ignored.
    x : str
        Name of the setting on the horizontal axis; its values are numbers.
    lines : str
        Name of the setting with one line for each value.
    metric : str
        Metric to draw.
    label : str | None
        Label of the vertical axis; None uses the name of the metric.
    ax : Axes | None
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        Axes with the lines. Numbers in the legend ascend; other settings are in order of
        appearance.

    Raises
    ------
    TypeError
        If the values of ``x`` are not numbers.
    ValueError
        If the scores are empty, lack a column or the metric, contain several datasets, or contain
        no row with both settings.

    Examples
    --------
    Synthetic scores:

    .. plot::
        :include-source:
        :alt: Kappa against the mask ratio as two lines with bands, one for each decoder; both
            rise.

        >>> import numpy as np
        >>> import pandas as pd
        >>> from braindecode_pars import plotting
        >>> rng = np.random.default_rng(0)
        >>> scores = pd.DataFrame([
        ...     dict(subject="all", seed=seed, metric="kappa", decoder=decoder,
        ...          position_mask_ratio=ratio,
        ...          value=level + 0.1 * ratio + rng.normal(0, 0.01))
        ...     for decoder, level in [("cross_attention", 0.55), ("mlp", 0.5)]
        ...     for ratio in (0.2, 0.4, 0.6, 0.8, 1.0)
        ...     for seed in range(5)
        ... ])
        >>> ax = plotting.ablation_lines(scores, x="position_mask_ratio", lines="decoder")

    >>> [line.get_label() for line in ax.get_lines()]
    ['cross_attention', 'mlp']
    """
    if x == lines:
        raise ValueError(f"x and lines are both {x!r}; pass two different settings.")
    chosen = select(scores, metric, ("subject", "seed", x, lines), one=("dataset",))
    chosen = chosen.dropna(subset=[x, lines])
    if chosen.empty:
        raise ValueError(
            f"No row of the scores has values of both {x} and {lines}; choose other settings."
        )
    if not pd.api.types.is_numeric_dtype(chosen[x].infer_objects()):
        found = ", ".join(map(str, in_order(chosen[x])))
        raise TypeError(f"{x} has values that are not numbers ({found}); use ablation_grid.")
    # Mean and standard deviation over seeds
    summary = over_seeds(per_seed(chosen, (lines, x)), (lines, x))

    # A line and a band for each value
    [ax] = axes_for(ax, 1, 1, (5.6, 4.0))
    for number, value in enumerate(in_order(chosen[lines])):
        style = series_style(number)
        if value not in summary.index:  # all scores are NaN; keep the legend entry
            ax.plot([], [], label=str(value), **style)
            continue
        line = summary.loc[value].sort_index()
        ax.plot(line.index, line["mean"], label=str(value), markersize=5, **style)
        low, high = line["mean"] - line["std"], line["mean"] + line["std"]
        ax.fill_between(line.index, low, high, color=style["color"], alpha=0.18, lw=0)
    # Axes and legend
    ax.set_xticks(in_order(chosen[x]))
    ax.set(
        xlabel=x.replace("_", " "),
        ylabel=f"{label or metric.replace('_', ' ')}\n({seeds_label(summary['count'])})",
    )
    ax.legend(frameon=False, handlelength=3, title=lines.replace("_", " "))
    ax.grid(axis="y", color="0.92")
    ax.set_axisbelow(True)
    remove_frame(ax)
    return ax
