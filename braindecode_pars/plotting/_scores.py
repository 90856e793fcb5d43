"""Rows of a table of scores: selected, checked, averaged within a seed."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from braindecode_pars._columns import POOLED

__all__ = ["in_order", "is_pooled", "over_seeds", "per_seed", "select", "told"]


def select(
    scores: pd.DataFrame, metric: str, columns: Sequence[str], one: Sequence[str] = ()
) -> pd.DataFrame:
    """The rows of one metric.

    Parameters
    ----------
    scores : DataFrame
        With ``metric``, ``value`` and ``columns``.
    metric : str
    columns : sequence of str
        What the figure needs besides.
    one : sequence of str
        Columns that, where they are there, may hold one value only, because a figure that mixed
        several would average over them.

    Raises
    ------
    TypeError
        If ``scores`` is no DataFrame.
    ValueError
        If it is empty, lacks a column or the metric, or mixes what should be one.
    """
    if not isinstance(scores, pd.DataFrame):
        raise TypeError(
            f"scores is a {type(scores).__name__}; give the DataFrame that a protocol returns."
        )
    missing = [name for name in ("metric", "value", *columns) if name not in scores]
    if missing:
        raise ValueError(
            f"scores lack the column{'s' if len(missing) > 1 else ''} {', '.join(missing)}; they "
            f"have {', '.join(map(str, scores.columns)) or 'none'}."
        )
    if scores.empty:
        raise ValueError("scores are empty; there is nothing to draw.")
    rows = scores[scores["metric"] == metric]
    if rows.empty:
        raise ValueError(
            f"scores hold no metric {metric!r}; they hold {', '.join(in_order(scores['metric']))}."
        )
    for column in one:
        if column in rows and rows[column].nunique() > 1:
            found = ", ".join(map(str, in_order(rows[column])))
            raise ValueError(
                f"scores mix several values of {column} ({found}), which would be averaged; select "
                f"one, as in scores[scores[{column!r}] == ...]."
            )
    return rows


def in_order(values: pd.Series) -> list:
    """Each value once: numbers ascending, everything else in order of appearance."""
    found = list(dict.fromkeys(values.dropna()))
    numeric = pd.api.types.is_numeric_dtype(pd.Series(found).infer_objects())
    return sorted(found) if numeric else found


def is_pooled(rows: pd.DataFrame) -> pd.Series:
    """Which rows are pooled over subjects."""
    return rows["subject"].astype(str) == POOLED


def per_seed(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """One value for each seed: pooled over subjects where that is there, else their mean.

    The two are different quantities, so all that is compared takes the same one. Values that are
    NaN are left out of means.

    Parameters
    ----------
    rows : DataFrame
        Of one metric.
    by : sequence of str
        Columns besides ``seed`` that are kept; over all others is averaged.

    Returns
    -------
    DataFrame
        With ``by``, ``seed`` and ``value``.

    Raises
    ------
    ValueError
        If neither kind of rows covers everything.
    """
    keys = [*by, "seed"]
    wanted = rows.groupby(keys).ngroups
    pooled = is_pooled(rows)
    for part in (rows[pooled], rows[~pooled]):
        values = part.groupby(keys, sort=False)["value"].mean().reset_index()
        if len(values) == wanted:
            return values
    raise ValueError(
        f"Some scores have rows pooled over subjects (subject {POOLED!r}) only and some have rows "
        "of single subjects only, which do not compare; draw them apart."
    )


def over_seeds(values: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Mean, sample standard deviation (NaN for one seed) and number of seeds, indexed by ``by``."""
    groups = values.dropna(subset="value").groupby(list(by), sort=False)["value"]
    return groups.agg(["mean", "std", "count"])


def told(counts: pd.Series) -> str:
    """What an interval is, for a label.

    Examples
    --------
    >>> told(pd.Series([5, 3]))
    'mean ± SD over 3 to 5 seeds'
    >>> told(pd.Series([1]))
    'one seed'
    """
    if counts.empty or counts.max() == 1:
        return "one seed"
    low, high = counts.min(), counts.max()
    return f"mean ± SD over {high if low == high else f'{low} to {high}'} seeds"
