"""Draw the figures of the README and the start page: docs/images/patches*.svg, cards.

    python docs/experiments/site_figures.py

The figures are drawn twice, for light and dark pages, with a transparent background. The small
images of docs/images/cards have no text, and colors for both. The recording is bundled with the
package, and the scores are in docs/measured.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from braindecode_pars import datasets
from braindecode_pars.tokens import instance_norm, random_starts

DOCS = Path(__file__).parents[1]
THEMES = {"light": ("#222832", "#0072B2", "#D55E00"), "dark": ("#dfe2e7", "#56B4E9", "#F0955A")}
SECONDS, N_PATCHES, N_KNOWN = 30, 20, 4
#: Indices in time of the hidden patches that an arrow connects.
ASKED = (4, 8)
#: Methods in docs/measured/hands.csv, with name, color and marker in the figure.
METHODS = {
    "log band power": ("log band power", "#0072B2", "o"),
    "from scratch": ("from scratch", "#E69F00", "s"),
    "PARS without overlap": ("pretrained", "#009E73", "D"),
}
#: Size of a card image in inches, and a gray that is visible on white and on black.
SIZE, GRAY = (4, 2), "#7d8794"


def main() -> None:
    for theme, (ink, known, hidden) in THEMES.items():
        style = dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), ink)
        style |= {"axes.edgecolor": ink, "svg.fonttype": "none", "svg.hashsalt": "site"}
        style |= {"font.family": "sans-serif", "font.size": 12}
        with plt.rc_context(style):
            _save(patches(ink, known, hidden).figure, f"patches-{theme}.svg")
    style = {"svg.hashsalt": "site", "lines.linewidth": 2.5, "axes.edgecolor": GRAY}
    with plt.rc_context(style):
        for card in CARDS:
            _save(card(), f"cards/{card.__name__}.svg")


def patches(ink: str, known: str, hidden: str) -> Axes:
    """Draw 30 seconds of real EEG and the input of PARS: patches, most without a position."""
    raw = datasets.mental_arithmetic(["Subject05"]).datasets[0].raw
    sfreq = int(raw.info["sfreq"])
    x = torch.as_tensor(raw.get_data(["P3"])[:, : SECONDS * sfreq]).float()
    x = instance_norm(x)[0].numpy()
    generator = torch.Generator().manual_seed(4)
    starts = random_starts(1, N_PATCHES, len(x), sfreq, generator=generator)[0].numpy() / sfreq

    _, ax = plt.subplots(figsize=(6.4, 2.9), layout="constrained")
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
    first, second = (np.sort(starts[N_KNOWN:])[i] + 0.5 for i in ASKED)
    ax.annotate("", (first, lowest), (second, lowest), arrowprops=dict(arrowstyle="<->", color=ink))
    ax.text(
        (first + second) / 2,
        lowest - 0.25,
        "how far apart?",
        ha="center",
        va="top",
        color=ink,
        size=14,
    )
    ax.tick_params(labelsize=14)  # legible when a phone shows the figure at half its size
    ax.set(xlim=(0, SECONDS), ylim=(lowest - 2.4, 5), yticks=[])
    ax.set_xlabel("seconds", size=14)
    ax.spines[["left", "right", "top"]].set_visible(False)
    return ax


def recordings() -> Figure:
    """Draw ten seconds of five channels."""
    raw = datasets.mental_arithmetic(["Subject05"]).datasets[0].raw
    x = raw.get_data()[:5, : 10 * int(raw.info["sfreq"])]
    figure, ax = _card()
    colors = ["#0072B2", GRAY, "#009E73", GRAY, "#0072B2"]
    for i, (channel, color) in enumerate(zip(x, colors, strict=True)):
        ax.plot((channel - channel.mean()) / x.std() - 5 * i, color=color, lw=1.1)
    ax.margins(x=0)
    return figure


def braindecode() -> Figure:
    """Draw four windows of one channel, two of another class."""
    raw = datasets.mental_arithmetic(["Subject05"]).datasets[0].raw
    sfreq = int(raw.info["sfreq"])
    x = raw.get_data()[0, : 8 * sfreq]
    figure, ax = _card()
    for i, color in enumerate(["#0072B2", "#E69F00", "#E69F00", "#0072B2"]):
        window = x[2 * i * sfreq : 2 * (i + 1) * sfreq]
        time = np.arange(len(window)) / sfreq + 2.3 * i
        ax.plot(time, window / x.std(), color=color, lw=1.4)
        ax.add_patch(plt.Rectangle((2.3 * i - 0.1, -4.4), 2.2, 8.8, fill=False, color=color, lw=3))
    ax.set(xlim=(-0.3, 9.2), ylim=(-5.5, 5.5))
    return figure


def comparing() -> Figure:
    """Draw the dots of :func:`hands` without text."""
    means = _hands(4)
    figure, ax = _card()
    ax.plot(range(len(METHODS)), means.T, color=GRAY, alpha=0.5, lw=0.8)
    for column, (method, (_, color, marker)) in enumerate(METHODS.items()):
        ax.plot(np.full(len(means), column), means[method], marker, color=color, markersize=7)
    ax.margins(y=0.08)
    ax.set(xlim=(-0.4, len(METHODS) - 0.6))
    return figure


def scale() -> Figure:
    """Draw blocks of a store, and arrows from each to one of three processes."""
    figure, ax = _card()
    colors = ["#0072B2", "#E69F00", "#009E73"]
    for i in range(12):
        color = colors[i % 3]
        ax.add_patch(plt.Rectangle((i, 2), 0.8, 0.8, color=color))
        style = dict(arrowstyle="-", color=color, lw=1.5)
        ax.annotate("", (4 * (i % 3) + 1.9, 0.95), (i + 0.4, 1.95), arrowprops=style)
    for i, color in enumerate(colors):
        ax.add_patch(plt.Rectangle((4 * i + 0.65, 0), 2.5, 0.9, fill=False, color=color, lw=3))
    ax.set(xlim=(-0.2, 12), ylim=(-0.1, 2.9))
    return figure


def _card() -> tuple[Figure, Axes]:
    figure, ax = plt.subplots(figsize=SIZE, layout="constrained")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return figure, ax


def _hands(n_train_subjects: int) -> pd.DataFrame:
    """Return the mean of each subject and method over draws of labeled subjects."""
    scores = pd.read_csv(DOCS / "measured/hands.csv", comment="#")
    scores = scores[scores["subject"] != "all"]
    scores = scores[scores["n_train_subjects"] == n_train_subjects]
    return scores.groupby(["subject", "method"])["value"].mean().unstack()[list(METHODS)]


def _rows(starts: np.ndarray) -> list[int]:
    """Return the lowest row of each patch in which it touches no earlier one."""
    ends: list[float] = []
    rows = np.zeros(len(starts), dtype=int)
    for i in np.argsort(starts):
        row = next((r for r, end in enumerate(ends) if end + 0.1 < starts[i]), len(ends))
        ends[row : row + 1] = [starts[i] + 1]
        rows[i] = row
    return rows.tolist()


def _save(figure: Figure, name: str) -> None:
    file = DOCS / "images" / name
    figure.savefig(file, transparent=True, metadata={"Date": None})
    plt.close(figure)
    # matplotlib ends lines with spaces.
    lines = file.read_text(encoding="utf-8").splitlines()
    file.write_text("".join(f"{line.rstrip()}\n" for line in lines), encoding="utf-8")


#: Images of the cards on the start page
CARDS: tuple[Callable[[], Figure], ...] = (recordings, braindecode, comparing, scale)

if __name__ == "__main__":
    main()
