"""Figures of stored scores, for the pages of the results. A method looks the same in all."""

from __future__ import annotations

import textwrap

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from stored_scores import RESULTS, result_scores

from braindecode_pars import plotting

__all__ = ["label_efficiency", "subject_dots"]

#: Order of the methods; the position gives colour and marker.
ORDER = (
    *("band power", "scratch", "tangent space", "PARS without overlap", "SpectralMAE", "PARS"),
    *("MAE", "PARS without overlap, seed 1", "ShallowFBCSPNet", "EEGNet"),
)
#: Methods of the two parts of a figure of label efficiency.
PRETRAINED = ("scratch", "PARS", "PARS without overlap", "SpectralMAE", "MAE")
BASELINES = ("scratch", "band power", "tangent space", "EEGNet", "ShallowFBCSPNet")


def label_efficiency(name: str) -> Figure:
    """Draw scores over the number of labelled subjects: of encoders above, of baselines below."""
    scores = _in_order(result_scores(name))
    figure, axes = plt.subplots(2, figsize=(5.4, 7.0), sharey=True, layout="constrained")
    for ax, methods in zip(axes, (PRETRAINED, BASELINES), strict=True):
        plotting.label_efficiency(
            scores,
            scores["metric"].iloc[0],
            RESULTS[name].label,
            ax,
            methods=[method for method in methods if method in set(scores["method"])],
            chance=RESULTS[name].chance,
        )
        ax.legend(frameon=False, handlelength=3, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
        ax.set_xlabel("labelled subjects")
    # The baselines may have been run with fewer numbers of subjects.
    low, high = axes[0].get_xlim()
    axes[1].set_xlim(low, high)
    return figure


def subject_dots(name: str, n: int, methods: tuple[str, ...]) -> Axes:
    """Draw each held-out subject with one number of labelled subjects."""
    scores = _in_order(result_scores(name))
    _, ax = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
    plotting.subject_dots(
        scores[scores["n_train_subjects"] == n],
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
    return scores.sort_values("method", key=lambda names: names.map(ORDER.index), kind="stable")
