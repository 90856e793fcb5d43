"""Scores over two settings, as a grid of coloured cells."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from braindecode_pars.plotting._scores import in_order, over_seeds, per_seed, seeds_label, select
from braindecode_pars.plotting._style import axes_for, text_color

__all__ = ["ablation_grid"]


def ablation_grid(
    scores: pd.DataFrame,
    *,
    rows: str,
    columns: str,
    metric: str = "kappa",
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean score of each pair of settings as a coloured cell.

    Each cell also shows the mean and the sample standard deviation over seeds as numbers. The
    figure is meant for ablations such as the paper's masking ablation (appendix A.4, figure 6a).
    The value of a seed is the score pooled over test subjects (subject ``"all"``) if every seed and
    pair has one, and the mean over test subjects otherwise. It is averaged over all other columns
    that vary. Pairs without a score stay blank.

    Parameters
    ----------
    scores : DataFrame
        Scores with the columns ``subject``, ``seed``, ``metric``, ``value`` and one column for each
        setting, such as ``n_patches`` and ``position_mask_ratio``. Rows without a value for one of
        the two settings are ignored.
    rows, columns : str
        Names of the two settings.
    metric : str
        Metric to draw.
    label : str | None
        Label of the colour bar; None uses the name of the metric.
    ax : Axes | None
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        Axes with the grid. Numbers ascend from top to bottom and from left to right; other
        settings are in order of appearance.

    Raises
    ------
    ValueError
        If the scores are empty, lack a column or the metric, contain several datasets, or contain
        no row with both settings.

    Examples
    --------
    Synthetic scores:

    .. plot::
        :include-source:
        :alt: Table of scores as colours: five mask ratios by three numbers of patches, each with
            mean and standard deviation.

        >>> import numpy as np
        >>> import pandas as pd
        >>> from braindecode_pars import plotting
        >>> rng = np.random.default_rng(0)
        >>> scores = pd.DataFrame([
        ...     dict(subject="all", seed=seed, metric="kappa", n_patches=n,
        ...          position_mask_ratio=ratio,
        ...          value=0.5 + 0.1 * ratio + rng.normal(0, 0.01))
        ...     for n in (20, 30, 40)
        ...     for ratio in (0.2, 0.4, 0.6, 0.8, 1.0)
        ...     for seed in range(5)
        ... ])
        >>> ax = plotting.ablation_grid(
        ...     scores, rows="n_patches", columns="position_mask_ratio"
        ... )

    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['20', '30', '40']
    """
    if rows == columns:
        raise ValueError(f"rows and columns are both {rows!r}; pass two different settings.")
    chosen = select(scores, metric, ("subject", "seed", rows, columns), one=("dataset",))
    chosen = chosen.dropna(subset=[rows, columns])
    if chosen.empty:
        raise ValueError(
            f"No row of the scores has values of both {rows} and {columns}; choose other settings."
        )
    # Mean and standard deviation over seeds, as matrices of shape (n_rows, n_columns)
    summary = over_seeds(per_seed(chosen, (rows, columns)), (rows, columns))
    row_values, column_values = in_order(chosen[rows]), in_order(chosen[columns])
    grid, spread = (
        summary[what].unstack().reindex(index=row_values, columns=column_values).to_numpy()
        for what in ("mean", "std")
    )

    # Cells, with black or white text for contrast
    size = 2.6 + 0.95 * len(column_values), 1.5 + 0.65 * len(row_values)
    [ax] = axes_for(ax, 1, 1, size)
    image = ax.imshow(np.ma.masked_invalid(grid), cmap="cividis", aspect="auto")
    for (i, j), mean in np.ndenumerate(grid):
        if np.isfinite(mean):
            text = f"{mean:.3f}"
            if np.isfinite(spread[i, j]):
                text += f"\n±{spread[i, j]:.3f}"
            color = text_color(image.to_rgba(mean))
            ax.text(j, i, text, ha="center", va="center", color=color, fontsize=9)
    # Axes and colour bar
    ax.set_xticks(range(len(column_values)), [str(value) for value in column_values])
    ax.set_yticks(range(len(row_values)), [str(value) for value in row_values])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set(xlabel=columns.replace("_", " "), ylabel=rows.replace("_", " "))
    ax.set_title(seeds_label(summary["count"]), fontsize="medium")
    ax.figure.colorbar(image, ax=ax, label=label or metric.replace("_", " "))
    return ax
