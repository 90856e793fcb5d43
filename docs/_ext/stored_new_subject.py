"""Scores of ``docs/measured/new_subject``: what was given of a new person, and what it helps."""

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
TITLES = {"arithmetic": "rest or arithmetic", "sleep": "wake or deep sleep"}
FEATURES = ("small", "hand-crafted features", "log band power", "tangent space")
#: Rows of the table, and numbers of labeled windows a class.
_ROWS = (
    *(("nothing", 0), ("centered", 0), ("centered, running", 0), ("mean replaced", 0)),
    *(("recentered, rescaled", 0), ("T3A", 0), ("T3A, running", 0)),
    *((method, n) for method in ("own only", "prior", "prior, centered") for n in (1, 4, 16)),
)


def new_subject_scores(task: str) -> pd.DataFrame:
    """Return balanced accuracies: a row for each features, method and number; people as columns."""
    wide = pd.read_csv(FOLDER / f"{task}.csv", comment="#")
    return wide.drop(columns="test_subject_data").set_index(["features", "method", "n_labeled"])


def difference(scores: pd.DataFrame, features: str, method: str, n: int) -> tuple[float, float]:
    """Return the mean gain over nothing, and the half of its 95 % interval over people."""
    gains = scores.loc[(features, method, n)] - scores.loc[(features, "nothing", 0)]
    half = t.ppf(0.975, len(gains) - 1) * gains.std() / np.sqrt(len(gains))
    return float(gains.mean()), float(half)


def new_subject_table(task: str) -> pd.DataFrame:
    """Return means, and gains over nothing with their intervals, by method and features."""
    scores, rows = new_subject_scores(task), []
    for method, n in _ROWS:
        row = {}
        for features in FEATURES:
            if (features, method, n) in scores.index:
                gain, half = difference(scores, features, method, n)
                told = f" ({gain:+.3f} ± {half:.3f})" * (method != "nothing")
                row[features] = f"{scores.loc[(features, method, n)].mean():.3f}{told}"
        if row:
            rows.append({"given": f"{method}, {n} a class" if n else method, **row})
    return pd.DataFrame(rows).fillna("")


def new_subject_curves() -> Figure:
    """Draw the scores over the number of labeled windows of the new person."""
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 4.0), sharey=True, layout="constrained")
    for ax, (task, title) in zip(axes, TITLES.items(), strict=True):
        means = new_subject_scores(task).mean(axis=1)
        numbers = sorted({n for _, _, n in means.index if n})
        for i, features in enumerate(FEATURES):
            if features in means.index.levels[0]:
                own = [means[features, "own only", n] for n in numbers]
                prior = [means[features, "prior, centered", n] for n in numbers]
                drawn = style.series_style(i) | {"linestyle": ":"}
                ax.plot(range(1, len(numbers) + 1), own, **drawn)
                prior = [means[features, "centered", 0], *prior]
                ax.plot(prior, label=features, **drawn | {"linestyle": "-"})
        ax.set(title=title, xlabel="labeled windows a class of the new person")
        ax.set_xticks(range(len(numbers) + 1), [0, *numbers])
        style.draw_chance(ax, 0.5)
        style.remove_frame(ax, "y")
    axes[0].set_ylabel("balanced accuracy")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure
