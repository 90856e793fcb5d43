"""Scores of ``docs/measured/budgets`` and ``plateau.csv``: PARS by number of training steps."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from stored_few_labels import _test
from stored_scores import MEASURED, difference_cell

__all__ = ["FOLDER", "PLATEAU", "SHORTENING", "budget_table", "plateau_figure", "shortening_table"]

FOLDER = MEASURED / "budgets"
PLATEAU = MEASURED / "plateau.csv"
#: Stored kinds of encoders.
PARS = "PARS"
SHAM = "sham"
RANDOM = "random"
#: File of changes of the default settings.
SHORTENING = "shortening"
#: Entry of the default settings in that file.
DEFAULTS = "defaults"
#: Entry of the random encoder in that file.
RANDOM_WEIGHTS = "random encoder"
#: 1 for columns in which higher values are better, -1 for columns in which lower values are.
SIGNS = {"loss_with_defaults": -1, "plain": 1}
#: Stored names of features and their names in the tables.
SHOWN = {"plain": "balanced accuracy", "centered": "subject-centered (transductive)"}


def budget_scores(name: str) -> pd.DataFrame:
    """Return tidy scores of subjects, draws and pretraining seeds, by kind and number of steps."""
    stored = pd.read_csv(FOLDER / f"{name}.csv", comment="#")
    keys = ["kind", "steps", "pretraining", "half", "features", "seconds", "loss", "seed"]
    keys.append("n_train_subjects")
    long = stored.melt(keys, var_name="subject").dropna(subset="value")
    long = long.rename(columns={"kind": "method", "pretraining": "pretraining_seed"})
    return long.assign(protocol="label_efficiency", dataset=name, metric="balanced_accuracy")


def budget_table(name: str) -> pd.DataFrame:
    """Compare PARS with its sham, with one row per number of steps."""
    scores, rows = budget_scores(name), []
    for (method, steps), method_scores in scores.groupby(["method", "steps"], sort=False):
        if method == SHAM:
            continue
        losses = method_scores.drop_duplicates(["pretraining_seed", "half"])["loss"]
        row = {
            "pretraining": {RANDOM: "random encoder"}.get(str(method), str(method)),
            "steps": f"{steps:,}",
            "CPU seconds": f"{method_scores['seconds'].median():.0f}",
            "relative held-out loss": f"{losses.mean():.3f}" if losses.notna().all() else "",
        }
        for features, part in method_scores.groupby("features", sort=False):
            row[SHOWN[str(features)]] = f"{part['value'].mean():.3f}"
        for features, part in method_scores.groupby("features", sort=False):
            sham = scores[(scores["method"] == SHAM) & (scores["steps"] == steps)]
            sham = sham[sham["features"] == features]
            if method == PARS and not sham.empty:
                test = _test(pd.concat([part, sham]), PARS, SHAM)
                row[f"{SHOWN[str(features)]}: difference from sham (uncorrected 95 % CI)"] = (
                    difference_cell(test)
                )
        rows.append(row)
    return pd.DataFrame(rows).fillna("")


def shortening_table() -> pd.DataFrame:
    """Return mean and range over seeds, for each change of the default settings."""
    stored = pd.read_csv(FOLDER / f"{SHORTENING}.csv", comment="#").set_index("pretraining")
    defaults = stored[stored["entry"] == DEFAULTS]
    titles = {
        "loss": "relative held-out loss",
        "loss_with_defaults": "relative held-out loss with default patches",
        **SHOWN,
    }
    rows = []
    for entry, trainings in stored.groupby("entry", sort=False):
        row = {"change": str(entry), "seeds": str(len(trainings))}
        row["steps"] = f"{trainings['steps'].iloc[0]:,}"
        row["CPU seconds"] = f"{trainings['seconds'].mean():.0f}"
        for column, title in titles.items():
            values = trainings[column]
            cell = f"{values.mean():.3f} ({values.min():.3f} to {values.max():.3f})"
            row[title] = "" if entry == RANDOM_WEIGHTS and "loss" in column else cell
        improvements = (trainings[[*SIGNS]] - defaults[[*SIGNS]]).dropna() * pd.Series(SIGNS)
        n_better = int((improvements > 0).all(axis=1).sum())
        is_change = entry not in (DEFAULTS, RANDOM_WEIGHTS)
        cell = f"{n_better} of {len(improvements)}" if is_change else ""
        rows.append(row | {"seeds with lower loss and higher accuracy than the defaults": cell})
    return pd.DataFrame(rows)


def plateau_figure() -> Figure:
    """Plot losses and attention in the first steps, with mask ratios of 0.5 and 0.8."""
    stored = pd.read_csv(PLATEAU, comment="#")
    figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.4), layout="constrained")
    for (ratio, style), color in zip({0.5: "-", 0.8: "--"}.items(), ("C0", "C1"), strict=True):
        ratio_rows = stored[stored["ratio"] == ratio]
        label = f"mask ratio {ratio:g}"
        for _, seed in ratio_rows.groupby("seed"):
            for ax, column in zip(axes, ("all", "anchored", "attention"), strict=True):
                values = {
                    "all": seed["all"],
                    "anchored": seed["swapped positions"] - seed["all"],
                    "attention": seed[["attention 1", "attention 2"]].max(axis=1),
                }[column]
                ax.plot(seed["step"], values, style, color=color, label=label)
                label = "_" + label if ax is axes[-1] else label
    titles = (
        "relative held-out loss\n(1: chance level)",
        "rise of the loss when visible\npatches swap their positions",
        "attention to overlapping visible\npatches (1: uniform attention)",
    )
    for ax, title in zip(axes, titles, strict=True):
        ax.set(title=title, xlabel="step")
        ax.title.set_fontsize("medium")
    axes[0].axhline(1, color="0.6", linewidth=0.8)
    axes[2].axhline(1, color="0.6", linewidth=0.8)
    axes[0].legend(frameon=False)
    return figure
