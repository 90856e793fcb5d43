"""Scores over two settings at once."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from braindecode_pars.plotting._scores import in_order, over_seeds, per_seed, select, told
from braindecode_pars.plotting._style import axes_for

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
    """Mean score for each pair of settings as a coloured cell with its number and spread.

    For the paper's masking ablation (appendix A.4, figure 6a) and its like. The spread is the
    sample standard deviation over seeds. A seed's value is the one pooled over test subjects
    (subject ``"all"``) where there is one, otherwise the mean over them; whatever else varies in
    the table is averaged within the seed. Pairs without a score stay blank.

    Parameters
    ----------
    scores : DataFrame
        With ``subject``, ``seed``, ``metric``, ``value`` and a column for each setting, such as
        ``n_patches`` and ``position_mask_ratio``. Rows that lack one of the two settings are left
        out.
    rows, columns : str
        The two settings.
    metric : str
        Which metric to draw.
    label : str | None
        For the colour bar; the metric's name when not given.
    ax : Axes | None
        Made when not given.

    Returns
    -------
    Axes
        Numbers ascend downwards and rightwards; other settings come in order of appearance.

    Raises
    ------
    ValueError
        If the scores are empty, lack a column or the metric, mix data sets, or hold no pair.

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
        raise ValueError(f"rows and columns are both {rows!r}; give two settings.")
    chosen = select(scores, metric, ("subject", "seed", rows, columns), one=("dataset",))
    chosen = chosen.dropna(subset=[rows, columns])
    if chosen.empty:
        raise ValueError(f"No row of the scores has both {rows} and {columns}.")
    summary = over_seeds(per_seed(chosen, (rows, columns)), (rows, columns))
    row_values, column_values = in_order(chosen[rows]), in_order(chosen[columns])
    grid, spread = (
        summary[what].unstack().reindex(index=row_values, columns=column_values).to_numpy()
        for what in ("mean", "std")
    )

    size = 2.6 + 0.95 * len(column_values), 1.5 + 0.65 * len(row_values)
    [ax] = axes_for(ax, 1, 1, size)
    image = ax.imshow(np.ma.masked_invalid(grid), cmap="cividis", aspect="auto")
    for (i, j), mean in np.ndenumerate(grid):
        if np.isfinite(mean):
            text = f"{mean:.3f}"
            if np.isfinite(spread[i, j]):
                text += f"\n±{spread[i, j]:.3f}"
            ink = _ink(image.to_rgba(mean))
            ax.text(j, i, text, ha="center", va="center", color=ink, fontsize=9)
    ax.set_xticks(range(len(column_values)), [str(value) for value in column_values])
    ax.set_yticks(range(len(row_values)), [str(value) for value in row_values])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set(xlabel=columns.replace("_", " "), ylabel=rows.replace("_", " "))
    ax.set_title(told(summary["count"]), fontsize="medium")
    ax.figure.colorbar(image, ax=ax, label=label or metric.replace("_", " "))
    return ax


def _ink(rgba: tuple[float, float, float, float]) -> str:
    """Black or white, whichever stands out more on a colour (WCAG 2 contrast)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgba[:3]]
    luminance = np.dot([0.2126, 0.7152, 0.0722], linear)
    return "black" if luminance + 0.05 > (1.05 * 0.05) ** 0.5 else "white"
