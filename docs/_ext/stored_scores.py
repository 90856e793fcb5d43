"""Tables of means and spreads from stored scores, and the origin of the scores.

The files contain tidy scores, as the package's protocols write them. Lines at the top that begin
with ``#`` give the command that made them, the date and the machine.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from braindecode_pars.evaluation import paired_tests, score_table
from braindecode_pars.evaluation.paired_tests import holm

__all__ = ["against", "provenance", "read_scores", "table"]


def read_scores(files: list[Path], own_subjects: bool = False) -> pd.DataFrame:
    """Read stored scores; with ``own_subjects``, each seed has subjects of its own."""
    scores = pd.concat(
        [pd.read_csv(file, comment="#", dtype={"subject": str}) for file in files],
        ignore_index=True,
    )
    if own_subjects:
        scores["subject"] = scores["seed"].astype(str) + "-" + scores["subject"]
    return scores


def provenance(files: list[Path]) -> list[str]:
    """Return the lines on the origin of the files, each once: commands, then dates and machines."""
    lines = [
        line.removeprefix("#").strip()
        for file in files
        for line in file.read_text(encoding="utf-8").splitlines()
        if line.startswith("#")
    ]
    # Lines on date and machine begin with the year.
    return sorted(dict.fromkeys(lines), key=lambda line: line[:1].isdigit())


def table(scores: pd.DataFrame, over: str) -> pd.DataFrame:
    """Return one row per method, and one column per metric or number of training subjects.

    Over subjects the columns are metrics. Over seeds they are numbers of training subjects, for the
    first metric.
    """
    wide = score_table(scores, over)
    first = scores["metric"].iloc[0]
    if over == "seeds":
        wide = wide.droplevel("dataset")[first].unstack("n_train_subjects", sort=False)
        wide.columns = [f"{n} subjects" for n in wide.columns]
        return wide
    wide = wide.droplevel(["dataset", "n_train_subjects"])
    wide.columns = [metric.replace("_", " ") for metric in wide.columns]
    if scores["seed"].nunique() > 1:
        means = scores[scores["metric"] == first].groupby(["method", "seed"])["value"].mean()
        wide[f"{first} by seed"] = [
            ", ".join(f"{value:.3f}" for value in means[method]) for method in wide.index
        ]
    return wide


def against(scores: pd.DataFrame, other: str) -> pd.Series:
    """Compare each method with another one in the first metric, with Holm's correction.

    Two methods are compared on the seeds that both have.
    """
    metric = scores["metric"].iloc[0]
    seeds = scores.groupby("method")["seed"].agg(set)
    # One test for each method.
    tests = {}
    for method in dict.fromkeys(scores["method"]):
        if method != other:
            common = scores["seed"].isin(seeds[method] & seeds[other])
            pair = scores[common & scores["method"].isin([method, other])]
            tests[method] = paired_tests(pair, metric).iloc[0]
    # All of them are corrected together.
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
