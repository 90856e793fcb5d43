"""Draw the figures of the README and of the start page: docs/images/{patches,hands}*.svg, cards.

    python docs/experiments/site_figures.py

The figures are drawn twice, for light and for dark pages, with a transparent background. The small
pictures of docs/images/cards have no text, and colours for both. The recording is in the package,
and the scores are in docs/measured. The maps of a head are of PhysioNet's recordings in the folder
BRAINDECODE_PARS_EEG, and are not drawn without it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import mne
import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from braindecode_pars import as_sklearn, datasets, plotting
from braindecode_pars.baselines import make_methods
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
#: Size of a card's picture in inches, and a grey that is seen on white and on black.
SIZE, GREY = (4, 2), "#7d8794"
#: Three people with different maps
SHOWN = (60, 52, 57)


def main() -> None:
    for theme, (ink, known, hidden) in THEMES.items():
        style = dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), ink)
        style |= {"axes.edgecolor": ink, "svg.fonttype": "none", "svg.hashsalt": "site"}
        style |= {"font.family": "sans-serif", "font.size": 12}
        with plt.rc_context(style):
            _save(patches(ink, known, hidden).figure, f"patches-{theme}.svg")
            _save(hands(ink).figure, f"hands-{theme}.svg")
    style = {"svg.hashsalt": "site", "lines.linewidth": 2.5, "axes.edgecolor": GREY}
    with plt.rc_context(style):
        for card in CARDS:
            if card is not motor_imagery or "BRAINDECODE_PARS_EEG" in os.environ:
                _save(card(), f"cards/{card.__name__}.svg")


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
    """Draw each of 20 held-out people, with four labelled people in training."""
    means = _hands(4)
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


def few_labels() -> Figure:
    """Draw the mean score of each method against the number of labelled people."""
    sizes = [2, 4, 8, 16]
    means = pd.DataFrame({n: _hands(n).mean() for n in sizes})
    figure, ax = _card()
    for method, (_, color, marker) in METHODS.items():
        ax.plot(means.loc[method], marker, ls="-", color=color, markersize=9)
    ax.set(
        xscale="log",
        xlim=(1.7, 19),
        xticks=[],
        ylim=(means.min().min() - 0.02, means.max().max() + 0.02),
    )
    ax.minorticks_off()  # of the logarithmic axis
    ax.spines[["left", "bottom"]].set_visible(True)
    return figure


def own_recordings() -> Figure:
    """Draw ten seconds of five channels."""
    raw = datasets.mental_arithmetic(["Subject05"]).datasets[0].raw
    x = raw.get_data()[:5, : 10 * int(raw.info["sfreq"])]
    figure, ax = _card()
    colors = ["#0072B2", GREY, "#009E73", GREY, "#0072B2"]
    for i, (channel, color) in enumerate(zip(x, colors, strict=True)):
        ax.plot((channel - channel.mean()) / x.std() - 5 * i, color=color, lw=1.1)
    ax.margins(x=0)
    return figure


def sleep() -> Figure:
    """Draw the stages of a simulated night, and the probabilities of band power below."""
    nights = datasets.simulated.sleep(4, hours=1, random_state=2)
    X, y, subjects = as_sklearn(nights)
    train = subjects != 4
    [method] = make_methods(["band-power"]).values()
    names = list(datasets.simulated.STAGES)
    columns = [f"probability_{name}" for name in names]
    frame = pd.DataFrame(method.fit(X[train], y[train]).predict_proba(X[~train]), columns=columns)
    frame = frame.assign(onset=30 * np.arange(len(frame)), duration=30, label=None)
    figure, axes = plt.subplots(2, figsize=SIZE, layout="constrained", height_ratios=[1, 1.3])
    plotting.hypnodensity(frame, axes=axes)
    for line in (*axes[0].lines, *axes[0].patches, *axes[0].collections):
        line.set(edgecolor=GREY) if hasattr(line, "set_edgecolor") else line.set(color=GREY)
        line.set(linewidth=2)
    for ax in axes:
        ax.set_axis_off()
        if (legend := ax.get_legend()) is not None:
            legend.remove()
    return figure


def motor_imagery() -> Figure:
    """Draw log power at 8 to 13 Hz, of the right fist minus the left, for three people."""
    folder = Path(os.environ["BRAINDECODE_PARS_EEG"]) / "eegmmidb-128Hz"
    prepared = dict(runs=[4, 8, 12], picks="motor and 10-20", reference="picks", sfreq=128)
    figure, axes = plt.subplots(1, len(SHOWN), figsize=SIZE, layout="constrained")
    for ax, subject in zip(axes, SHOWN, strict=True):
        windows = datasets.physionet_mi.load(folder, [subject], **prepared)
        x, y = (np.stack(values) for values in zip(*((w, y) for w, y, _ in windows), strict=True))
        spectrum, _ = mne.time_frequency.psd_array_welch(x, 128.0, 8, 13, n_fft=128, verbose=False)
        power = np.log(spectrum.mean(axis=-1))
        values = power[y == 1].mean(axis=0) - power[y == 0].mean(axis=0)
        style = dict(axes=ax, vlim=(-0.5, 0.5), contours=0, sensors=False, show=False)
        mne.viz.plot_topomap(values - values.mean(), windows.datasets[0].raw.info, **style)
        for line in ax.lines:
            line.set(color=GREY, linewidth=2)
    return figure


def comparing() -> Figure:
    """Draw the dots of :func:`hands` without text."""
    means = _hands(4)
    figure, ax = _card()
    ax.plot(range(len(METHODS)), means.T, color=GREY, alpha=0.5, lw=0.8)
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
    """Return the mean of each subject and method over the draws of labelled people."""
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


#: The pictures of the start page's cards
CARDS: tuple[Callable[[], Figure], ...] = (
    few_labels,
    own_recordings,
    sleep,
    motor_imagery,
    comparing,
    scale,
)

if __name__ == "__main__":
    main()
