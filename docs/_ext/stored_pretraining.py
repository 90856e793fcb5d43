"""Scores of ``docs/measured/pretraining``: the same encoder after different pretrainings."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from stored_few_labels import long_scores, score_cell
from stored_scores import MEASURED, difference_cell

from braindecode_pars.evaluation import paired_tests

__all__ = [
    *("FOLDER", "RANDOM", "SCRATCH"),
    *("pretraining_scores", "pretraining_table", "pretrainings", "temporal_cue"),
]

FOLDER = MEASURED / "pretraining"

#: What every other pretraining is compared with: frozen, and with all weights fine-tuned.
RANDOM, SCRATCH = "random encoder", "from scratch"
#: Methods in the order of a table, with the number of steps of pretraining.
METHODS = {
    RANDOM: 0,
    SCRATCH: 0,
    "PARS": 6_000,
    "PARS without overlap": 6_000,
    "SpectralMAE": 6_000,
    "features and spectra": 1_500,
    "features, spectra and PARS": 1_500,
    "slope": 1_500,
    "PARS without overlap, detrended": 6_000,
    "PARS without overlap, random phases": 6_000,
    "PARS without overlap, synthetic noise": 6_000,
    "PARS without overlap, white noise": 6_000,
}
BASELINES = ("hand-crafted features", "tangent space", "log band power")


def pretraining_scores(name: str, *, centered: bool) -> pd.DataFrame:
    """Return tidy scores of a task, with the column ``pretraining_seed``."""
    scores = long_scores(FOLDER / f"{name}.csv")
    return scores[scores["centered"] == centered]


def pretraining_table(name: str, n: int, *, centered: bool, against: str = RANDOM) -> pd.DataFrame:
    """Return the mean of each pretraining and its difference to a network without one.

    Subjects, draws and seeds of pretraining are random factors of the test; p-values have Holm's
    correction over the table.
    """
    scores = pretraining_scores(name, centered=centered)
    scores = scores[scores["n_train_subjects"] == n]
    tests = paired_tests(scores, "balanced_accuracy", against=against)
    tests = tests.set_index("method_a").to_dict("index")
    rows = []
    for method in (*METHODS, *BASELINES):
        own = scores[scores["method"] == method]
        if own.empty:
            continue
        steps = f"{METHODS[method]:,}" if method in METHODS else ""
        row = {"pretraining": method, "steps": steps, "balanced accuracy": score_cell(own)}
        if test := tests.get(method):
            row |= {
                f"minus {against} (95 %)": difference_cell(test),
                "p": f"{test['p_holm']:.2g}",
                "detectable": f"{test['detectable']:.3f}",
            }
        rows.append(row)
    return pd.DataFrame(rows).fillna("")


def pretrainings(names: tuple[str, ...], n: int, *, centered: bool) -> Figure:
    """Draw the mean of every pretraining seed, a panel for each task."""
    titles = dict(arithmetic="rest or arithmetic", imagery="imagery or rest", hands="left or right")
    figure, axes = plt.subplots(
        1, len(names), figsize=(2.6 * len(names) + 2.2, 4.6), sharey=True, layout="constrained"
    )
    order = [*METHODS, *BASELINES]
    for ax, name in zip(axes, names, strict=True):
        scores = pretraining_scores(name, centered=centered)
        scores = scores[scores["n_train_subjects"] == n]
        means = scores.groupby(["method", "pretraining_seed"], dropna=False)["value"].mean()
        shown = [method for method in order if method in means.index.levels[0]]
        for y, method in enumerate(shown):
            color = "tab:gray" if method in (RANDOM, *BASELINES) else "tab:blue"
            ax.plot(means[method], [y] * len(means[method]), "o", color=color, alpha=0.7, ms=5)
            ax.plot(means[method].mean(), y, "|", color=color, ms=14)
        ax.axvline(means[RANDOM].mean(), color="tab:gray", ls=":", lw=1)
        ax.set_yticks(range(len(shown)), shown)
        ax.set(title=titles[name], xlabel="balanced accuracy")
    axes[0].invert_yaxis()
    return figure


def temporal_cue() -> pd.DataFrame:
    """Return the loss of PARS on windows with a cue, relative to chance, by the form of patches."""
    stored = pd.read_csv(MEASURED / "temporal_cue.csv", comment="#")
    stored["patches"] = stored["overlap"].map({True: "overlap", False: "no overlap"})
    stored["keep"] = stored["mask_ratio"].map({0.8: "one keeps", 0.5: "three keep"})
    groups = stored.groupby(["cue", "patches", "keep"], sort=False)["loss"]
    text = groups.agg(lambda losses: " and ".join(f"{loss:.2f}" for loss in sorted(losses)))
    wide = text.unstack(["patches", "keep"], sort=False).fillna("")
    wide.columns = [f"{patches}, {keep} its place" for patches, keep in wide.columns]
    return wide.reset_index()
