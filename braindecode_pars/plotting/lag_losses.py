"""Losses of PARS by the lag between two patches."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from braindecode_pars._columns import lags_of
from braindecode_pars.plotting._style import axes_for, remove_frame, series_style

__all__ = ["lag_losses"]


def lag_losses(history: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the last pretraining loss of PARS, relative to chance, by the lag between two patches.

    A model that matches patches with common samples is good at lags below one patch, and one that
    matches the ends of adjacent patches at lags of one. Only a model that reads a drift, or the
    order of what happens, is below chance at long lags. Losses above 2 are cut off: there, an error
    is larger than the lag itself.

    Parameters
    ----------
    history : DataFrame
        Losses with one row per epoch: the ``history_`` of a
        :class:`~braindecode_pars.PARSClassifier`, the ``metrics.csv`` of a run, or several of them,
        joined with ``pandas.concat`` after adding the column ``method``. Each method is a line: the
        mean over its runs in their last epoch with these losses.
    ax : Axes | None
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        Axes with one line per method, and a line at 1 for the chance level.

    Raises
    ------
    TypeError
        If ``history`` is not a DataFrame.
    ValueError
        If ``history`` has no ``epoch``, or no losses by lag.

    Examples
    --------
    Synthetic losses, with the columns of an estimator's ``history_``:

    .. plot::
        :include-source:
        :alt: Loss relative to chance against the lag between two patches: it rises from .3 to 1.

        >>> import pandas as pd
        >>> from braindecode_pars import plotting
        >>> losses = {"lag_0_1": 0.3, "lag_1_2": 0.6, "lag_2_4": 0.9, "lag_4_8": 1.0}
        >>> columns = {f"train_loss_relative_{name}": loss for name, loss in losses.items()}
        >>> ax = plotting.lag_losses(pd.DataFrame([dict(epoch=50, method="PARS", **columns)]))

    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['< 1', '1-2', '2-4', '4-8']
    """
    if not isinstance(history, pd.DataFrame):
        raise TypeError(f"history is a {type(history).__name__}; pass a DataFrame of losses.")
    columns = {name: lags for name in history if (lags := lags_of(str(name)))}
    if not columns or "epoch" not in history:
        raise ValueError(
            "history has no losses by lag, such as train_loss_relative_lag_1_2, or no column "
            "epoch; pass the history_ of an estimator that was pretrained with PARS."
        )
    known = history.dropna(subset=list(columns), how="all")
    names = known["method"] if "method" in known else pd.Series("PARS", known.index)

    [ax] = axes_for(ax, 1, 1, (5.4, 3.4))
    bins = sorted(set(columns.values()))
    for number, (method, rows) in enumerate(known.groupby(names, sort=False)):
        last = rows[rows["epoch"] == rows["epoch"].max()]
        means = {lags: last[name].mean() for name, lags in columns.items()}
        heights = [means[lags] for lags in bins]
        ax.plot(range(len(bins)), heights, ms=5, label=method, **series_style(number))
    ax.axhline(1, color="0.3", lw=1, zorder=0)
    ax.set_xticks(range(len(bins)), [_label(*lags) for lags in bins])
    ax.set(xlabel="lag between two patches, in patches", ylabel="loss relative to chance")
    ax.set_ylim(0, min(2, max(1.12, ax.get_ylim()[1])))
    if "method" in known:
        ax.legend(frameon=False)
    remove_frame(ax)
    return ax


def _label(low: int, high: int) -> str:
    return f"{low}-{high}" if low else f"< {high}"
