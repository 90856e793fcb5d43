"""Mean and standard deviation of scores."""

from __future__ import annotations

import pandas as pd

from braindecode_pars._columns import POOLED

__all__ = ["score_table", "summarize"]

_GROUPS = ["protocol", "dataset", "method", "n_train_subjects", "metric"]


def by_subject(scores: pd.DataFrame) -> pd.DataFrame:
    """Average the scores of each subject over seeds; pooled rows are excluded."""
    single = scores[scores["subject"] != POOLED]
    keys = [*_GROUPS, "subject"]
    return single.groupby(keys, sort=False, dropna=False)["value"].mean().reset_index()


def summarize(scores: pd.DataFrame, over: str = "subjects") -> pd.DataFrame:
    """Return the mean and standard deviation of every method and metric.

    Parameters
    ----------
    scores : DataFrame
        Scores of any protocol.
    over : "subjects" | "seeds"
        Unit of the mean and the standard deviation. ``"subjects"``: the scores of each subject are
        first averaged over seeds, and pooled rows are excluded; the paper reports this for
        leave-one-subject-out. ``"seeds"``: only the pooled rows are used; the paper reports this
        for fixed test subjects.

    Returns
    -------
    pandas.DataFrame
        Table with the columns ``protocol``, ``dataset``, ``method``, ``n_train_subjects``,
        ``metric``, ``mean``, ``sd`` (sample standard deviation with n - 1; NaN for n = 1) and ``n``
        (number of subjects or seeds with a defined score).

    Raises
    ------
    ValueError
        When ``over`` is unknown, or the scores have no row of that kind.

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
        raise ValueError(f"No row of these scores is {kind}; choose another value of over.")
    groups = units.groupby(_GROUPS, sort=False, dropna=False)["value"]
    return groups.agg(mean="mean", sd="std", n="count").reset_index()


def score_table(scores: pd.DataFrame, over: str = "subjects") -> pd.DataFrame:
    """Return mean ± standard deviation as text: methods as rows, metrics as columns.

    Parameters
    ----------
    scores : DataFrame
        Scores of any protocol.
    over : "subjects" | "seeds"
        As in :func:`summarize`.

    Returns
    -------
    pandas.DataFrame
        Table indexed by dataset, number of training subjects and method. A single value is shown
        without a standard deviation. ``attrs["n"]`` is the largest number of subjects or seeds
        that a mean is taken over.

    Raises
    ------
    ValueError
        In the cases of :func:`summarize`.

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
    # A single value has no standard deviation.
    summary = summarize(scores, over)
    summary["score"] = [
        f"{mean:.3f}" if pd.isna(sd) else f"{mean:.3f} ± {sd:.3f}"
        for mean, sd in zip(summary["mean"], summary["sd"], strict=True)
    ]
    # aggfunc="first" keeps text; each cell has one score.
    table = summary.pivot_table(
        index=["dataset", "n_train_subjects", "method"],
        columns="metric",
        values="score",
        aggfunc="first",
        sort=False,
    )
    table.attrs["n"] = int(summary["n"].max())
    return table
