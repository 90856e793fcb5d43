"""Figures of stored scores on the results pages, with the same style per method."""

from __future__ import annotations

import textwrap

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from stored_few_labels import few_labels_scores
from stored_scores import RESULTS, result_scores

from braindecode_pars import plotting

__all__ = ["few_labels", "label_efficiency", "subject_dots"]

#: Style number of each method, which is the same in all figures.
STYLES = {
    "log band power": 0,
    "from scratch": 1,
    "tangent space": 2,
    "PARS without overlap": 3,
    "SpectralMAE": 4,
    "PARS": 5,
    "MAE": 6,
    "PARS without overlap, seed 1": 10,  # another marker, in the color of 3
    "EEGNet": 11,
    "ShallowFBCSPNet": 12,
}
#: Methods in the upper panel of a label efficiency figure.
PRETRAINED = ("from scratch", "PARS", "PARS without overlap", "SpectralMAE", "MAE")
#: Methods in the lower panel of a label efficiency figure.
BASELINES = ("from scratch", "log band power", "tangent space", "EEGNet", "ShallowFBCSPNet")


def label_efficiency(name: str) -> Figure:
    """Plot scores against the number of labeled subjects: encoders above, baselines below."""
    scores = result_scores(name)
    run = set(scores["method"])
    scores = _in_order(scores)
    figure, axes = plt.subplots(2, figsize=(5.4, 7.0), sharey=True, layout="constrained")
    for ax, methods in zip(axes, (PRETRAINED, BASELINES), strict=True):
        plotting.label_efficiency(
            scores,
            scores["metric"].iloc[0],
            RESULTS[name].label,
            ax,
            methods=[method for method in methods if method in run],
            chance=RESULTS[name].chance,
        )
        ax.legend(frameon=False, handlelength=3, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
        ax.set_xlabel("number of labeled subjects")
    # Baselines may have been run with fewer numbers of labeled subjects.
    low, high = axes[0].get_xlim()
    axes[1].set_xlim(low, high)
    return figure


def subject_dots(name: str, n: int, methods: tuple[str, ...]) -> Axes:
    """Plot the score of each held-out subject, for one number of labeled subjects."""
    scores = result_scores(name)
    scores = _in_order(scores[scores["n_train_subjects"] == n])
    _, ax = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
    plotting.subject_dots(
        scores,
        scores["metric"].iloc[0],
        RESULTS[name].label,
        ax,
        methods=methods,
        chance=RESULTS[name].chance,
    )
    # A legend is not needed, because each column has a name.
    ax.get_legend().remove()
    ax.set_xticks(range(len(methods)), [_narrow(method) for method in methods])
    ax.set(xlabel="dots: held-out subjects, black bars: mean over subjects")
    ax.set_xlim(-0.5, len(methods) - 0.1)
    return ax


def _narrow(method: str) -> str:
    return textwrap.fill(method.replace("MAE", " MAE").strip(), 9).replace(
        "Spectral\n", "Spectral-\n"
    )


def _in_order(scores: pd.DataFrame) -> pd.DataFrame:
    """Sort rows by method, and add an empty row for each missing method to keep the styles."""
    names = {number: name for name, number in STYLES.items()}
    order = [names.get(number, f"none {number}") for number in range(max(names) + 1)]
    missing = [method for method in order if method not in set(scores["method"])]
    empty = pd.DataFrame({**scores.iloc[0], "value": None, "method": missing})
    rows = pd.concat([empty.astype(scores.dtypes), scores])
    return rows.sort_values("method", key=lambda names: names.map(order.index), kind="stable")


#: Methods in the figure of results with few labeled subjects, and their labels.
FEW_LABELS = {
    "feature ensemble": "feature ensemble",
    "small": "encoder small",
    "noise": "encoder noise",
    "hand-crafted features": "hand-crafted features",
    "tangent space": "tangent space",
    "log band power": "log band power",
    "random encoder": "random encoder",
}


def few_labels(names: tuple[str, ...]) -> Figure:
    """Plot scores of frozen, subject-centered features against the number of labeled subjects."""
    figure, axes = plt.subplots(
        1, len(names), figsize=(3.6 * len(names), 4.0), sharey=True, layout="constrained"
    )
    titles = {
        "arithmetic": "rest vs. mental arithmetic",
        "imagery": "imagined movement vs. rest",
    }
    for ax, name in zip(axes, names, strict=True):
        scores = few_labels_scores(name)
        scores = scores[scores["centered"] & scores["method"].isin(FEW_LABELS)]
        shown = scores.assign(method=scores["method"].map(FEW_LABELS))
        plotting.label_efficiency(
            shown,
            "balanced_accuracy",
            "balanced accuracy, subject-centered",
            ax,
            methods=list(FEW_LABELS.values()),
            chance=0.5,
        )
        ax.set(title=titles[name], xlabel="number of labeled subjects", ylabel="")
        ax.get_legend().remove()
    axes[0].set_ylabel("balanced accuracy, subject-centered\n(mean and 95 % CI over subjects)")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure
