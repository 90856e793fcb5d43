"""Figures of stored scores, for the pages of the results. A method looks the same in all."""

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

#: Number of the style of each method, whichever others are in the figure.
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
#: Methods of the two parts of a figure of label efficiency.
PRETRAINED = ("from scratch", "PARS", "PARS without overlap", "SpectralMAE", "MAE")
BASELINES = ("from scratch", "log band power", "tangent space", "EEGNet", "ShallowFBCSPNet")


def label_efficiency(name: str) -> Figure:
    """Draw scores over the number of labeled subjects: of encoders above, of baselines below."""
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
        ax.set_xlabel("labeled subjects")
    # The baselines may have been run with fewer numbers of subjects.
    low, high = axes[0].get_xlim()
    axes[1].set_xlim(low, high)
    return figure


def subject_dots(name: str, n: int, methods: tuple[str, ...]) -> Axes:
    """Draw each held-out subject with one number of labeled subjects."""
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
    # One group needs no legend: each column has a name.
    ax.get_legend().remove()
    ax.set_xticks(range(len(methods)), [_narrow(method) for method in methods])
    ax.set(xlabel="a dot is a held-out subject, a black bar the mean")
    ax.set_xlim(-0.5, len(methods) - 0.1)
    return ax


def _narrow(method: str) -> str:
    return textwrap.fill(method.replace("MAE", " MAE").strip(), 9).replace(
        "Spectral\n", "Spectral-\n"
    )


def _in_order(scores: pd.DataFrame) -> pd.DataFrame:
    """Sort the rows by method; missing methods have a row without a value, and so a style."""
    names = {number: name for name, number in STYLES.items()}
    order = [names.get(number, f"none {number}") for number in range(max(names) + 1)]
    missing = [method for method in order if method not in set(scores["method"])]
    empty = pd.DataFrame({**scores.iloc[0], "value": None, "method": missing})
    rows = pd.concat([empty.astype(scores.dtypes), scores])
    return rows.sort_values("method", key=lambda names: names.map(order.index), kind="stable")


#: Methods in the figure of few labels, and their names there.
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
    """Draw the scores of frozen features, centered by subject, over the number of people."""
    figure, axes = plt.subplots(
        1, len(names), figsize=(3.6 * len(names), 4.0), sharey=True, layout="constrained"
    )
    titles = {"arithmetic": "rest or arithmetic", "imagery": "imagery or rest"}
    for ax, name in zip(axes, names, strict=True):
        scores = few_labels_scores(name)
        scores = scores[scores["centered"] & scores["method"].isin(FEW_LABELS)]
        shown = scores.assign(method=scores["method"].map(FEW_LABELS))
        plotting.label_efficiency(
            shown,
            "balanced_accuracy",
            "balanced accuracy, centered",
            ax,
            methods=list(FEW_LABELS.values()),
            chance=0.5,
        )
        ax.set(title=titles[name], xlabel="labeled people", ylabel="")
        ax.get_legend().remove()
    axes[0].set_ylabel("balanced accuracy, centered\n(mean and 95 % CI over subjects)")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure
