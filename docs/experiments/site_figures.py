"""Draw the figures of the README and of the start page: docs/images/patches*.svg and hands*.svg.

    python docs/experiments/site_figures.py

Each is drawn twice, for light and for dark pages, with a transparent background. The recording is
in the package, and the scores are in docs/measured.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes

from braindecode_pars import datasets
from braindecode_pars.tokens import instance_norm, random_starts

DOCS = Path(__file__).parents[1]
THEMES = {"light": ("#222832", "#0072B2", "#D55E00"), "dark": ("#dfe2e7", "#56B4E9", "#F0955A")}
SECONDS, N_PATCHES, N_KNOWN = 30, 20, 4
#: Hidden patches, in the order of time, between which an arrow is drawn.
ASKED = (4, 8)
#: Rows of docs/measured/hands.csv, their names in the figure and their colours and markers.
METHODS = {
    "band power": ("band power", "#0072B2", "o"),
    "scratch": ("from scratch", "#E69F00", "s"),
    "PARS without overlap": ("pretrained", "#009E73", "D"),
}


def main() -> None:
    for theme, (ink, known, hidden) in THEMES.items():
        style = dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), ink)
        style |= {"axes.edgecolor": ink, "svg.fonttype": "none", "svg.hashsalt": "site"}
        style |= {"font.family": "sans-serif", "font.size": 12}
        with plt.rc_context(style):
            _save(patches(ink, known, hidden), f"patches-{theme}.svg")
            _save(hands(ink), f"hands-{theme}.svg")


def patches(ink: str, known: str, hidden: str) -> Axes:
    """Draw 30 seconds of real EEG and the input of PARS: patches, most without their position."""
    raw = datasets.mental_arithmetic(["Subject05"]).datasets[0].raw
    sfreq = int(raw.info["sfreq"])
    x = torch.as_tensor(raw.get_data(["P3"])[:, : SECONDS * sfreq]).float()
    x = instance_norm(x)[0].numpy()
    generator = torch.Generator().manual_seed(4)
    starts = random_starts(1, N_PATCHES, len(x), sfreq, generator=generator)[0].numpy() / sfreq

    _, ax = plt.subplots(figsize=(9.6, 3.3), layout="constrained")
    ax.plot(np.arange(len(x)) / sfreq, x, color=ink, lw=0.7)
    rows = _rows(starts)
    for i, (start, row) in enumerate(zip(starts, rows, strict=True)):
        color = known if i < N_KNOWN else hidden
        cut = slice(int(start * sfreq), int(start * sfreq) + sfreq)
        if i < N_KNOWN:
            ax.plot(np.arange(cut.start, cut.stop) / sfreq, x[cut], color=color, lw=1.2)
        ax.add_patch(
            plt.Rectangle(
                (start, -6.2 - 1.5 * row),
                1,
                1.1,
                facecolor=color if i < N_KNOWN else "none",
                edgecolor=color,
                lw=1.6,
            )
        )
    # One of the questions
    lowest = -6.6 - 1.5 * max(rows)
    one, other = (np.sort(starts[N_KNOWN:])[i] + 0.5 for i in ASKED)
    ax.annotate("", (one, lowest), (other, lowest), arrowprops=dict(arrowstyle="<->", color=ink))
    ax.text((one + other) / 2, lowest - 0.25, "how far apart?", ha="center", va="top", color=ink)
    ax.set(xlim=(0, SECONDS), ylim=(lowest - 2, 5), xlabel="seconds", yticks=[])
    ax.spines[["left", "right", "top"]].set_visible(False)
    return ax


def hands(ink: str) -> Axes:
    """Draw each of 20 held-out people, with two labelled people in training."""
    scores = pd.read_csv(DOCS / "measured/hands.csv", comment="#")
    scores = scores[scores["subject"] != "all"]
    shown = scores[scores["method"].isin(METHODS) & (scores["n_train_subjects"] == 2)]
    means = shown.groupby(["subject", "method"])["value"].mean().unstack()[list(METHODS)]
    _, ax = plt.subplots(figsize=(4.4, 3.6), layout="constrained")
    ax.plot(range(len(METHODS)), means.T, color=ink, alpha=0.25, lw=0.8)
    for column, (method, (_, color, marker)) in enumerate(METHODS.items()):
        ax.plot(np.full(len(means), column), means[method], marker, color=color, markersize=6)
        ax.hlines(means[method].mean(), column - 0.28, column + 0.28, color=ink, lw=2.5)
    ax.axhline(0.5, color=ink, lw=0.8, ls=":")
    ax.set_xticks(range(len(METHODS)), [name for name, *_ in METHODS.values()])
    ax.set(ylabel="balanced accuracy", xlim=(-0.5, len(METHODS) - 0.5))
    ax.spines[["right", "top"]].set_visible(False)
    return ax


def _rows(starts: np.ndarray) -> list[int]:
    """Return the lowest row of each patch in which it touches no earlier one."""
    ends: list[float] = []
    rows = np.zeros(len(starts), dtype=int)
    for i in np.argsort(starts):
        row = next((r for r, end in enumerate(ends) if end + 0.1 < starts[i]), len(ends))
        ends[row : row + 1] = [starts[i] + 1]
        rows[i] = row
    return rows.tolist()


def _save(ax: Axes, name: str) -> None:
    ax.figure.savefig(DOCS / "images" / name, transparent=True, metadata={"Date": None})
    plt.close(ax.figure)


if __name__ == "__main__":
    main()
