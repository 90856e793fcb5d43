"""Stored scores as a table of means and spreads, and where they come from.

The files are tidy scores as the package's protocols write them. Lines at the top that begin with
``#`` say which command made them, when, and on what machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from braindecode_pars.evaluation import paired_tests, summarize
from braindecode_pars.evaluation.paired_tests import holm

__all__ = ["against", "provenance", "read_scores", "table"]


def read_scores(files: list[Path], own_people: bool = False) -> pd.DataFrame:
    """Stored scores of some files; with ``own_people`` a subject is another one in each seed."""
    scores = pd.concat(
        [pd.read_csv(file, comment="#", dtype={"subject": str}) for file in files],
        ignore_index=True,
    )
    if own_people:
        scores["subject"] = scores["seed"].astype(str) + "-" + scores["subject"]
    return scores


def provenance(files: list[Path]) -> list[str]:
    """What the files say of themselves, each line once: commands first, then when and where."""
    said = [
        line.removeprefix("#").strip()
        for file in files
        for line in file.read_text(encoding="utf-8").splitlines()
        if line.startswith("#")
    ]
    return sorted(dict.fromkeys(said), key=lambda line: line[:1].isdigit())


def table(scores: pd.DataFrame, over: str) -> pd.DataFrame:
    """A row a method; a column a metric, or a number of training subjects where there are some."""
    summary = summarize(scores, over=over)
    summary["score"] = [
        f"{mean:.3f} ± {sd:.3f}" for mean, sd in zip(summary["mean"], summary["sd"], strict=True)
    ]
    if over == "seeds":
        summary = summary[summary["metric"] == summary["metric"].iloc[0]]
        columns = "n_train_subjects"
    else:
        columns = "metric"
    wide = summary.pivot_table(
        index="method", columns=columns, values="score", aggfunc="first", sort=False
    )
    wide.columns = [_title(column, columns) for column in wide.columns]
    if over == "subjects" and scores["seed"].nunique() > 1:
        first = scores["metric"].iloc[0]
        means = scores[scores["metric"] == first].groupby(["method", "seed"])["value"].mean()
        wide[f"{first} by seed"] = [
            ", ".join(f"{value:.3f}" for value in means[method]) for method in wide.index
        ]
    return wide


def against(scores: pd.DataFrame, other: str) -> pd.Series:
    """How far each method is from another in the first metric, p after Holm over these pairs.

    Of two methods with different seeds, those that both have are compared.
    """
    metric = scores["metric"].iloc[0]
    seeds = scores.groupby("method")["seed"].agg(set)
    tests = {}
    for method in dict.fromkeys(scores["method"]):
        if method != other:
            common = scores["seed"].isin(seeds[method] & seeds[other])
            pair = scores[common & scores["method"].isin([method, other])]
            tests[method] = paired_tests(pair, metric).iloc[0]
    corrected = holm([test["p"] for test in tests.values()])
    return pd.Series(
        {
            method: _difference(test, 1 if test["method_a"] == method else -1, p)
            for (method, test), p in zip(tests.items(), corrected, strict=True)
        }
    )


def _difference(test: pd.Series, sign: int, p: float) -> str:
    wins = test["wins"] if sign == 1 else test["n_subjects"] - test["wins"]
    return (
        f"{sign * test['mean_difference']:+.3f} ± {test['sd_difference']:.3f}, ahead in {wins} of "
        f"{test['n_subjects']}, p = {p:.2g}"
    )


def _title(column: Any, kind: str) -> str:
    return str(column).replace("_", " ") if kind == "metric" else f"{column} people"
