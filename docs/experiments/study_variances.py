"""Variance of the difference between PARS and its sham by subject, draw and pretraining.

    python docs/experiments/study_variances.py docs/measured/study_variances.csv

The scores were stored by ``budgets.py``: one score per test subject, draw of four labeled subjects
and pretraining seed. Scores without and with centering are averaged. The effect of a draw is the
mean of the effects of its labeled subjects. The variances equate the quadratic forms of the
differences to their expectations (MINQUE with identity weights; Rao 1971, Estimation of variance
and covariance components, Journal of Multivariate Analysis 1). They are in units of 1e-4, and can
be negative.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from stored_table import store_table

from braindecode_pars.evaluation.splitting import draw_subjects

MEASURED = Path(__file__).parents[1] / "measured"
#: Number of groups of test subjects of each half in ``budgets.py``; each group has its own draws.
N_GROUPS = 3
UNIT = 1e-4


def main() -> None:
    rows = []
    for name in ("sleep", "arithmetic"):
        scores = pd.read_csv(MEASURED / "budgets" / f"{name}.csv", comment="#")
        scores = scores[scores["kind"].isin(["PARS", "sham"])]
        for steps, part in scores.groupby("steps"):
            if part["half"].nunique() == 2:  # the longest pretraining has one half
                halves = differences(part)
                mean = halves["difference"].mean()
                row = {"sample": name, "steps": steps, "mean": mean, **variances(halves)}
                rows.append(row | {"labeled_in_group": variance_in_groups(halves)})
    command = "python docs/experiments/study_variances.py docs/measured/study_variances.csv"
    table = pd.DataFrame(rows)
    store_table(table, Path(sys.argv[1]), command, index=False, float_format="%.4g")


def differences(scores: pd.DataFrame) -> pd.DataFrame:
    """Return one row per half, pretraining, draw and test subject, and the labeled subjects."""
    keys = ["kind", "half", "pretraining", "seed"]
    columns = ["steps", "features", "seconds", "loss", "n_train_subjects"]
    names = sorted(set(scores) - {*keys, *columns})
    means = scores.groupby(keys)[names].mean().rename_axis("subject", axis="columns")
    table = (means.loc["PARS"] - means.loc["sham"]).stack().dropna().rename("difference")
    table = table.reset_index()
    n_labeled = int(scores["n_train_subjects"].iloc[0])
    for (half, subject, seed), rows in table.groupby(["half", "subject", "seed"]):
        tested = names[1 - half :: 2]
        number = tested.index(subject) % N_GROUPS
        others = [name for name in names if name not in tested[number::N_GROUPS]]
        labeled = draw_subjects(others, n_labeled, seed)
        table.loc[rows.index, names] = np.isin(names, labeled) / n_labeled
        table.loc[rows.index, "group"] = f"{half} {number}"
    table.attrs["draw"] = 1 / n_labeled - 1 / len(others)
    return table


def variances(table: pd.DataFrame) -> dict[str, float]:
    """Return the variance of each effect, estimated from both halves."""
    forms, expected = 0, 0
    for _, part in table.groupby("half"):
        kernels = covariances(part)
        y = part["difference"].to_numpy()
        centered = [kernel - kernel.mean(axis=0) for kernel in kernels.values()]
        centered = [kernel - kernel.mean(axis=1, keepdims=True) for kernel in centered]
        forms += np.array([(y - y.mean()) @ kernel @ (y - y.mean()) for kernel in centered])
        expected += np.array([[np.sum(a * b) for b in centered] for a in centered])
    estimates = np.linalg.solve(expected, forms) / UNIT
    return dict(zip(kernels, estimates, strict=True))


def variance_in_groups(table: pd.DataFrame) -> float:
    """Return the variance of labeled subjects from test subjects with the same draws.

    It is the mean covariance over draws between two of these, divided by the variance of the mean
    of a draw of the finite pool. Unlike :func:`variances`, it includes effects of the set of
    labeled subjects.
    """
    found = []
    for _, part in table.groupby("group"):
        means = part.pivot_table(values="difference", index="seed", columns="subject")
        matrix = np.cov(means.to_numpy(), rowvar=False)
        found.append(matrix[~np.eye(len(matrix), dtype=bool)].mean())
    return float(np.mean(found)) / table.attrs["draw"] / UNIT


def covariances(part: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the covariance of the differences for a variance of one, by effect."""

    def is_same(column: str) -> np.ndarray:
        values = part[column].to_numpy()
        return (values[:, None] == values).astype(float)

    labeled = part.drop(columns=["half", "pretraining", "seed", "subject", "group", "difference"])
    overlap = labeled.to_numpy(float) @ labeled.to_numpy(float).T
    subject, draw = is_same("subject"), is_same("seed")
    kernels = {"subject": subject, "labeled": overlap, "subject_labeled": subject * overlap}
    kernels["subject_draw"] = subject * draw
    if part["pretraining"].nunique() > 1:
        pretraining = is_same("pretraining")
        kernels["pretraining"] = pretraining
        kernels["subject_pretraining"] = subject * pretraining
        kernels["labeled_pretraining"] = overlap * pretraining
        kernels["remainder"] = np.eye(len(part))
    return kernels


if __name__ == "__main__":
    main()
