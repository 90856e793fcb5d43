"""Scores of ``docs/measured/new_subject``: classification of a new subject by the data used."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import t
from stored_scores import MEASURED

from braindecode_pars.plotting import style

__all__ = ["FOLDER", "new_subject_curves", "new_subject_scores", "new_subject_table"]

FOLDER = MEASURED / "new_subject"
#: Stored names of tasks and their titles.
TITLES = {"arithmetic": "rest vs. arithmetic", "sleep": "wake vs. deep sleep"}
FEATURES = ("small", "hand-crafted features", "log band power", "tangent space")
#: Stored names of methods and their names in the table.
_METHODS = {
    "nothing": "none",
    "centered": "all unlabeled: centering",
    "centered, running": "past unlabeled: centering with the running mean",
    "mean replaced": "all unlabeled: mean of the classifier replaced",
    "recentered, rescaled": "all unlabeled: covariances recentered and rescaled",
    "T3A": "all unlabeled: T3A",
    "T3A, running": "past unlabeled: T3A",
    "own only": "labels of the new subject only",
    "prior": "labels, shrinkage",
    "prior, centered": "labels, shrinkage, centering",
}
#: Rows of the table: method, and number of labeled windows per class.
_ROWS = (
    *(("nothing", 0), ("centered", 0), ("centered, running", 0), ("mean replaced", 0)),
    *(("recentered, rescaled", 0), ("T3A", 0), ("T3A, running", 0)),
    *((method, n) for method in ("own only", "prior", "prior, centered") for n in (1, 4, 16)),
)


def new_subject_scores(task: str) -> pd.DataFrame:
    """Return balanced accuracies by features, method and number of labels; columns are subjects."""
    wide = pd.read_csv(FOLDER / f"{task}.csv", comment="#")
    return wide.drop(columns="test_subject_data").set_index(["features", "method", "n_labeled"])


def difference(scores: pd.DataFrame, features: str, method: str, n: int) -> tuple[float, float]:
    """Return the mean difference from no test-subject data, and half of its 95 % CI."""
    differences = scores.loc[(features, method, n)] - scores.loc[(features, "nothing", 0)]
    n_subjects = len(differences)
    half = t.ppf(0.975, n_subjects - 1) * differences.std() / np.sqrt(n_subjects)
    return float(differences.mean()), float(half)


def new_subject_table(task: str) -> pd.DataFrame:
    """Return mean scores, and differences from no test-subject data, by method and features."""
    scores, rows = new_subject_scores(task), []
    for method, n in _ROWS:
        row = {}
        for features in FEATURES:
            if (features, method, n) in scores.index:
                mean_difference, half = difference(scores, features, method, n)
                suffix = f" ({mean_difference:+.3f} ± {half:.3f})" * (method != "nothing")
                row[features] = f"{scores.loc[(features, method, n)].mean():.3f}{suffix}"
        if row:
            data = f"{_METHODS[method]}, {n} per class" if n else _METHODS[method]
            rows.append({"data of the new subject": data, **row})
    return pd.DataFrame(rows).fillna("")


def new_subject_curves() -> Figure:
    """Plot scores against the number of labeled windows of the new subject."""
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 4.0), sharey=True, layout="constrained")
    for ax, (task, title) in zip(axes, TITLES.items(), strict=True):
        means = new_subject_scores(task).mean(axis=1)
        numbers = sorted({n for _, _, n in means.index if n})
        for i, features in enumerate(FEATURES):
            if features in means.index.levels[0]:
                labels_only = [means[features, "own only", n] for n in numbers]
                prior = [means[features, "prior, centered", n] for n in numbers]
                drawn = style.series_style(i) | {"linestyle": ":"}
                ax.plot(range(1, len(numbers) + 1), labels_only, **drawn)
                prior = [means[features, "centered", 0], *prior]
                ax.plot(prior, label=features, **drawn | {"linestyle": "-"})
        ax.set(title=title, xlabel="labeled windows per class of the new subject")
        ax.set_xticks(range(len(numbers) + 1), [0, *numbers])
        style.draw_chance(ax, 0.5)
        style.remove_frame(ax, "y")
    axes[0].set_ylabel("balanced accuracy")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure
