"""Mean and spread of scores."""

from __future__ import annotations

import pandas as pd

from braindecode_pars._columns import POOLED

__all__ = ["score_table", "summarize"]

_GROUPS = ["protocol", "dataset", "method", "n_train_subjects", "metric"]


def by_subject(scores: pd.DataFrame) -> pd.DataFrame:
    """Mean over seeds for each subject, without the pooled rows, in the order of the scores."""
    single = scores[scores["subject"] != POOLED]
    keys = [*_GROUPS, "subject"]
    return single.groupby(keys, sort=False, dropna=False)["value"].mean().reset_index()


def summarize(scores: pd.DataFrame, over: str = "subjects") -> pd.DataFrame:
    """Mean and standard deviation of every method and metric.

    Parameters
    ----------
    scores : DataFrame
        Of any protocol.
    over : "subjects" | "seeds"
        ``"subjects"``: the seeds of each subject are averaged first, pooled rows are left out;
        what the paper reports of people left out one at a time. ``"seeds"``: of the pooled rows;
        what it reports where the test subjects are fixed.

    Returns
    -------
    pandas.DataFrame
        Columns ``protocol``, ``dataset``, ``method``, ``n_train_subjects``, ``metric``, ``mean``,
        ``sd`` (with n - 1; NaN for one), ``n`` (subjects or seeds with a defined score).

    Raises
    ------
    ValueError
        When there are no rows of that kind.

    Examples
    --------
    >>> import pandas as pd
    >>> from braindecode_pars.evaluation import summarize
    >>> same = dict(protocol="compare", dataset="", n_train_subjects=1, seed=0)
    >>> scores = pd.DataFrame([
    ...     dict(same, method="PARS", subject="P01", metric="kappa", value=0.5),
    ...     dict(same, method="PARS", subject="P02", metric="kappa", value=0.7),
    ... ])
    >>> summarize(scores)[["method", "mean", "sd", "n"]].round(3)
      method  mean     sd  n
    0   PARS   0.6  0.141  2
    """
    if over not in ("subjects", "seeds"):
        raise ValueError(f"over must be 'subjects' or 'seeds', got {over!r}.")
    units = by_subject(scores) if over == "subjects" else scores[scores["subject"] == POOLED]
    if len(units) == 0:
        kind = "of single subjects" if over == "subjects" else f"pooled (subject {POOLED!r})"
        raise ValueError(f"No row of these scores is {kind}.")
    groups = units.groupby(_GROUPS, sort=False, dropna=False)["value"]
    return groups.agg(mean="mean", sd="std", n="count").reset_index()


def score_table(scores: pd.DataFrame, over: str = "subjects") -> pd.DataFrame:
    """Mean ± standard deviation as text: a row for each method, a column for each metric.

    Parameters
    ----------
    scores : DataFrame
        Of any protocol.
    over : "subjects" | "seeds"
        As in :func:`summarize`.

    Returns
    -------
    pandas.DataFrame
        Indexed by dataset, number of training subjects and method. Only the mean is shown where
        there is one value. ``attrs["n"]`` is the largest number of values of a mean.

    Raises
    ------
    ValueError
        As :func:`summarize`.

    Examples
    --------
    >>> import pandas as pd
    >>> from braindecode_pars.evaluation import score_table
    >>> same = dict(protocol="compare", dataset="", n_train_subjects=1, seed=0)
    >>> scores = pd.DataFrame([
    ...     dict(same, method="PARS", subject="P01", metric="kappa", value=0.5),
    ...     dict(same, method="PARS", subject="P02", metric="kappa", value=0.7),
    ... ])
    >>> score_table(scores)["kappa"].tolist()
    ['0.600 ± 0.141']
    """
    summary = summarize(scores, over)
    summary["score"] = [
        f"{mean:.3f}" if pd.isna(sd) else f"{mean:.3f} ± {sd:.3f}"
        for mean, sd in zip(summary["mean"], summary["sd"], strict=True)
    ]
    table = summary.pivot_table(
        index=["dataset", "n_train_subjects", "method"],
        columns="metric",
        values="score",
        aggfunc="first",
        sort=False,
    )
    table.attrs["n"] = int(summary["n"].max())
    return table
