"""Scores of ``docs/measured/pretraining``: one encoder with different pretrainings."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from stored_few_labels import long_scores, score_cell
from stored_scores import DETECTABLE, MEASURED, P_HOLM, difference_cell

from braindecode_pars.evaluation import paired_tests

__all__ = [
    *("FOLDER", "RANDOM", "SCRATCH"),
    *("pretraining_scores", "pretraining_table", "pretrainings", "temporal_cue"),
]

FOLDER = MEASURED / "pretraining"

#: Method that linear probes are compared with.
RANDOM = "random encoder"
#: Method that fine-tuned networks are compared with.
SCRATCH = "from scratch"
#: Methods in the order of the tables, with the number of pretraining steps.
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
#: Stored names of temporal cues and their names in the table.
CUES = {
    "none": "none (pink noise)",
    "grows": "amplitude grows",
    "rises": "frequency rises",
    "grows or shrinks": "amplitude grows or shrinks",
    "rises or falls": "frequency rises or falls",
}


def pretraining_scores(name: str, *, centered: bool) -> pd.DataFrame:
    """Return tidy scores of a task, with the column ``pretraining_seed``."""
    scores = long_scores(FOLDER / f"{name}.csv")
    return scores[scores["centered"] == centered]


def pretraining_table(name: str, n: int, *, centered: bool, against: str = RANDOM) -> pd.DataFrame:
    """Return the mean of each pretraining, and its difference from no pretraining.

    Subjects, draws and pretraining seeds are crossed random effects; p-values are Holm-corrected
    over the table.
    """
    scores = pretraining_scores(name, centered=centered)
    scores = scores[scores["n_train_subjects"] == n]
    tests = paired_tests(scores, "balanced_accuracy", against=against)
    tests = tests.set_index("method_a").to_dict("index")
    rows = []
    for method in (*METHODS, *BASELINES):
        method_scores = scores[scores["method"] == method]
        if method_scores.empty:
            continue
        steps = f"{METHODS[method]:,}" if method in METHODS else ""
        cell = score_cell(method_scores)
        row = {"pretraining": method, "pretraining steps": steps, "balanced accuracy": cell}
        if test := tests.get(method):
            row |= {
                difference_from(against): difference_cell(test),
                P_HOLM: f"{test['p_holm']:.2g}",
                DETECTABLE: f"{test['detectable']:.3f}",
            }
        rows.append(row)
    return pd.DataFrame(rows).fillna("")


def difference_from(method: str) -> str:
    """Return the column head of the differences from a method."""
    reference = {SCRATCH: "training from scratch"}.get(method, method)
    return f"difference from {reference} (uncorrected 95 % CI)"


def pretrainings(names: tuple[str, ...], n: int, *, centered: bool) -> Figure:
    """Plot the mean score of every pretraining seed, one panel per task."""
    titles = dict(
        arithmetic="rest vs. arithmetic",
        imagery="imagined movement vs. rest",
        hands="left vs. right fist",
    )
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
    """Return relative losses of PARS on windows with a temporal cue, by patch settings."""
    stored = pd.read_csv(MEASURED / "temporal_cue.csv", comment="#")
    stored["patches"] = stored["overlap"].map({True: "overlap", False: "no overlap"})
    stored["visible"] = stored["mask_ratio"].map({0.8: "1 of 7", 0.5: "3 of 7"})
    groups = stored.groupby(["cue", "patches", "visible"], sort=False)["loss"]
    text = groups.agg(lambda losses: " and ".join(f"{loss:.2f}" for loss in sorted(losses)))
    wide = text.unstack(["patches", "visible"], sort=False).fillna("")
    wide.columns = [f"{patches}, position known for {n}" for patches, n in wide.columns]
    return wide.rename(index=CUES).rename_axis("temporal cue").reset_index()
