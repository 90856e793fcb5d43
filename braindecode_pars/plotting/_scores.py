"""Select, check and average the rows of a table of scores."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from braindecode_pars._columns import POOLED

__all__ = [
    "chosen_methods",
    "in_order",
    "is_pooled",
    "over_seeds",
    "per_seed",
    "seeds_label",
    "select",
]


def select(
    scores: pd.DataFrame, metric: str, columns: Sequence[str], one: Sequence[str] = ()
) -> pd.DataFrame:
    """Return the rows of one metric.

    Parameters
    ----------
    scores : DataFrame
        Scores with the columns ``metric``, ``value`` and ``columns``.
    metric : str
        Metric to select.
    columns : sequence of str
        Other columns that the figure needs.
    one : sequence of str
        Columns that must not contain more than one value, because the figure would average over
        several. The columns may be absent.

    Raises
    ------
    TypeError
        If ``scores`` is not a DataFrame.
    ValueError
        If the scores are empty, lack a column or the metric, or have several values in a column of
        ``one``.
    """
    # Check the table
    if not isinstance(scores, pd.DataFrame):
        raise TypeError(
            f"scores is a {type(scores).__name__}; pass the DataFrame that a protocol returns."
        )
    missing = [name for name in ("metric", "value", *columns) if name not in scores]
    if missing:
        raise ValueError(
            f"scores lack the column{'s' if len(missing) > 1 else ''} {', '.join(missing)}; they "
            f"have {', '.join(map(str, scores.columns)) or 'none'}."
        )
    if scores.empty:
        raise ValueError("scores are empty; there is nothing to draw.")
    # Select the metric
    rows = scores[scores["metric"] == metric]
    if rows.empty:
        raise ValueError(
            f"scores have no metric {metric!r}; they have {', '.join(in_order(scores['metric']))}."
        )
    # Do not average over several datasets or protocols
    for column in one:
        if column in rows and rows[column].nunique() > 1:
            found = ", ".join(map(str, in_order(rows[column])))
            raise ValueError(
                f"scores have several values of {column} ({found}), which would be averaged; "
                f"select one, as in scores[scores[{column!r}] == ...]."
            )
    return rows


def chosen_methods(rows: pd.DataFrame, methods: Sequence[str] | None) -> dict[str, int]:
    """Return the methods to draw, and the position of each among all methods of the rows.

    A method has the style of its position, so that figures of a part of the methods agree.

    Raises
    ------
    ValueError
        If a method is not in the rows, is given twice, or none is given.
    """
    found = list(dict.fromkeys(rows["method"]))
    names = found if methods is None else list(methods)
    unknown = [name for name in names if name not in found]
    if unknown or not names or len(set(names)) < len(names) or isinstance(methods, str):
        raise ValueError(
            f"methods must be different methods of the scores, which have {', '.join(found)}; got "
            f"{methods!r}."
        )
    return {name: found.index(name) for name in names}


def in_order(values: pd.Series) -> list:
    """Return the unique values: numbers in ascending order, others in order of appearance."""
    found = list(dict.fromkeys(values.dropna()))
    numeric = pd.api.types.is_numeric_dtype(pd.Series(found).infer_objects())
    return sorted(found) if numeric else found


def is_pooled(rows: pd.DataFrame) -> pd.Series:
    """Return which rows are pooled over subjects, as a boolean mask."""
    return rows["subject"].astype(str) == POOLED


def per_seed(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return one value for each seed: the pooled score, or the mean over subjects.

    Pooled scores and means over subjects are different quantities. All values are therefore pooled
    scores if every seed and group has one, and means over subjects otherwise. Means ignore NaN.

    Parameters
    ----------
    rows : DataFrame
        Scores of one metric.
    by : sequence of str
        Grouping columns besides ``seed``. Values are averaged over all other columns.

    Returns
    -------
    DataFrame
        Table with the columns ``by``, ``seed`` and ``value``.

    Raises
    ------
    ValueError
        If neither pooled rows nor rows of single subjects exist for every group.
    """
    # Try the pooled rows first, then the rows of single subjects.
    keys = [*by, "seed"]
    wanted = rows.groupby(keys).ngroups
    pooled = is_pooled(rows)
    for part in (rows[pooled], rows[~pooled]):
        values = part.groupby(keys, sort=False)["value"].mean().reset_index()
        if len(values) == wanted:
            return values
    raise ValueError(
        f"Some scores have only rows pooled over subjects (subject {POOLED!r}) and some have only "
        "rows of single subjects, which cannot be compared; draw them in separate figures."
    )


def over_seeds(values: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return mean, sample standard deviation (NaN for one seed) and number of seeds by group."""
    groups = values.dropna(subset="value").groupby(list(by), sort=False)["value"]
    return groups.agg(["mean", "std", "count"])


def seeds_label(counts: pd.Series) -> str:
    """Return the label of an interval over seeds, from the numbers of seeds.

    Examples
    --------
    >>> seeds_label(pd.Series([5, 3]))
    'mean ± SD over 3 to 5 seeds'
    >>> seeds_label(pd.Series([1]))
    'one seed'
    """
    if counts.empty or counts.max() == 1:
        return "one seed"
    low, high = counts.min(), counts.max()
    return f"mean ± SD over {high if low == high else f'{low} to {high}'} seeds"
