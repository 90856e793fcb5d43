"""Draw the thumbnails of the gallery: docs/images/thumbnails/*.png.

    python docs/experiments/thumbnails.py

One image of 400 x 280 pixels per page, with large marks and little text. The background is white,
like the figures of the pages, so that they look the same on light and dark pages. EEG is from the
bundled dataset, scores are from docs/measured, and nights are simulated.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import mne
import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from braindecode_pars import datasets
from braindecode_pars.plotting.style import COLORS
from braindecode_pars.pretext.pars import relative_shifts
from braindecode_pars.tokens import random_starts

DOCS = Path(__file__).parents[1]
BLUE, ORANGE, GRAY, GREEN, PINK, SKY, RED = COLORS
INK = "#222832"


def arithmetic(fig: Figure) -> None:
    """Stored scores of twelve subjects as dots, joined by lines."""
    means = _means("arithmetic", ["log band power", "from scratch", "SpectralMAE"], 4)
    _dots(_axes(fig), means)


def scikit_learn(fig: Figure) -> None:
    """Folds of a cross-validation: one subject is held out in each row."""
    ax = _axes(fig)
    for row in range(5):
        for column in range(5):
            color = ORANGE if row == column else BLUE
            ax.add_patch(plt.Rectangle((column, -row), 0.86, 0.78, color=color))
    ax.set(xlim=(-0.3, 5.2), ylim=(-4.3, 1.1))


def regression(fig: Figure) -> None:
    """Dots along a rising line: predicted against true numbers."""
    ax = _axes(fig)
    rng = np.random.default_rng(0)
    true = rng.uniform(0, 3, size=60)
    ax.plot([-0.2, 3.2], [-0.2, 3.2], color=ORANGE, lw=5)
    ax.plot(true, true + rng.normal(0, 0.35, size=60), "o", color=BLUE, ms=9)


def own_edf_folder(fig: Figure) -> None:
    """Traces of six channels of a bundled recording."""
    _traces(_axes(fig), _recording("Subject05"), seconds=4)


def pars_on_sleep(fig: Figure) -> None:
    """Ten seconds of deep sleep of a bundled recording, and two hidden patches."""
    ax = _axes(fig)
    window = datasets.sleep(["ucddb006"])[100][0][0, : 10 * 128]
    seconds = np.arange(len(window)) / 128
    ax.plot(seconds, window / np.abs(window).max(), color=INK, lw=2)
    for start in (2, 7):
        ax.axvspan(start, start + 1, color=ORANGE, alpha=0.6, lw=0)
    ax.annotate("", (2.5, -1.3), (7.5, -1.3), arrowprops=dict(arrowstyle="<->", color=RED, lw=4))
    ax.set(xlim=(0, 10), ylim=(-1.5, 1.1))


def sleep_staging(fig: Figure) -> None:
    """The hypnogram of a simulated night, above bars of its stages."""
    stages = _night()
    top, bottom = fig.subplots(2, 1, height_ratios=[3, 1])
    # From deep sleep to wake, with REM below wake.
    level = np.array([4, 2, 1, 0, 3])[stages]
    top.stairs(level, baseline=None, color=INK, lw=3)
    colors = np.array([ORANGE, SKY, BLUE, INK, PINK])[stages]
    bottom.bar(np.arange(len(stages)), 1, 1, color=colors)
    for ax in (top, bottom):
        ax.set_xlim(0, len(stages))
        ax.axis("off")


def seizures(fig: Figure) -> None:
    """A burst of spike-and-wave in noise, on a colored ground."""
    ax = _axes(fig)
    rng = np.random.default_rng(0)
    t = np.arange(0, 8, 1 / 128)
    phase = 3 * t % 1
    burst = 3 * np.exp(-(((phase - 0.1) / 0.04) ** 2)) - np.sin(2 * np.pi * phase)
    noise = np.convolve(rng.normal(size=len(t)), np.ones(9) / 5, "same")
    inside = (t > 2.3) & (t < 6)
    for row, gain in enumerate((1.0, 0.8, 0.6)):
        signal = np.where(inside, gain * burst, 0) + 0.5 * np.roll(noise, 50 * row)
        ax.plot(t, signal - 5 * row, color=INK, lw=2)
    ax.axvspan(2.3, 6, color=ORANGE, alpha=0.35, lw=0)


def motor_imagery(fig: Figure) -> None:
    """Two scalp maps: the expected patterns for the right and the left fist."""
    montage = mne.channels.make_standard_montage("biosemi64")
    info = mne.create_info(montage.ch_names, 100, "eeg").set_montage(montage)
    places = np.array([channel["loc"][:3] for channel in info["chs"]])
    bumps = {
        name: np.exp(-(((places - places[info.ch_names.index(name)]) / 0.035) ** 2).sum(axis=1))
        for name in ("C3", "C4")
    }
    left_map = bumps["C4"] - bumps["C3"]
    for ax, values in zip(fig.subplots(1, 2), (left_map, -left_map), strict=True):
        mne.viz.plot_topomap(values, info, axes=ax, contours=0, sensors=False, show=False)


def label_efficiency(fig: Figure) -> None:
    """Stored scores on left vs. right fist against the number of labeled subjects."""
    ax = _axes(fig)
    methods = {"log band power": GRAY, "from scratch": ORANGE, "PARS without overlap, seed 1": BLUE}
    for (method, color), marker in zip(methods.items(), "^so", strict=True):
        curve = [_means("hands", [method], n)[method].mean() for n in (2, 4, 8, 16)]
        ax.plot(curve, color=color, lw=5, marker=marker, markersize=13)
    ax.margins(0.08)


def transfer(fig: Figure) -> None:
    """Two heads, one with many electrodes and one with few, and an arrow between them."""
    ax = _axes(fig)
    for x, montage in ((0, "biosemi64"), (3.4, "biosemi16")):
        places = mne.channels.make_standard_montage(montage).get_positions()["ch_pos"]
        xyz = np.array(list(places.values()))
        polar = np.arccos(xyz[:, 2] / np.linalg.norm(xyz, axis=1)) / 2
        around = np.arctan2(xyz[:, 1], xyz[:, 0])
        ax.add_patch(plt.Circle((x, 0), 1.15, fill=False, color=INK, lw=3))
        ax.plot([x - 0.15, x, x + 0.15], [1.13, 1.33, 1.13], color=INK, lw=3)
        size = 5 if len(xyz) > 20 else 10
        ax.plot(x + polar * np.cos(around), polar * np.sin(around), "o", color=BLUE, ms=size)
    arrow = dict(arrowstyle="-|>,head_width=.6,head_length=.9", color=ORANGE, lw=5)
    ax.annotate("", (2.1, 0), (1.25, 0), arrowprops=arrow)
    ax.set(xlim=(-1.3, 4.7), ylim=(-2.1, 2.1), aspect="equal")


def recording_to_tokens(fig: Figure) -> None:
    """A channel, and patches at random places: some keep their position."""
    ax = _axes(fig)
    x = _recording("Subject05", ["P3"])[0, : 12 * 128]
    x = 1.6 * (x - x.mean()) / x.std()
    ax.plot(np.arange(len(x)) / 128, x, color=INK, lw=1.3)
    for start in (0.4, 3.1, 6.2, 9.9):
        ax.axvspan(start, start + 1.4, 0.42, 1, color=BLUE, alpha=0.25, lw=0)
        ax.add_patch(plt.Rectangle((start, -9), 1.4, 2.2, color=BLUE))
    for start in (1.7, 4.6, 8.1):
        box = dict(facecolor="none", edgecolor=RED, lw=3)
        ax.add_patch(plt.Rectangle((start, -12.5), 1.4, 2.2, **box))
        ax.text(start + 0.7, -11.5, "?", color=RED, fontsize=20, ha="center", va="center")
    ax.set(xlim=(0, 12), ylim=(-13.5, 5))


def five_tasks(fig: Figure) -> None:
    """Rows of patches: which patches each pretext task uses, hides and removes."""
    ax = _axes(fig)
    rng = np.random.default_rng(3)
    shares = [(2, 8, 0), (5, 0, 5), (0, 10, 0), (2, 4, 4)]
    for row, counts in enumerate(shares):
        colors = np.repeat([BLUE, RED, "#d0d0d0"], counts)
        for column, color in enumerate(rng.permutation(colors)):
            ax.add_patch(plt.Rectangle((column, -1.25 * row), 0.84, 0.95, color=color))
    ax.set(xlim=(-0.3, 10.2), ylim=(-4.1, 1.3))


def inside_the_model(fig: Figure) -> None:
    """The matrix of shifts of 24 patches in the order of time."""
    starts = random_starts(1, 24, 3000, 100, generator=torch.Generator().manual_seed(0))
    shifts = relative_shifts(starts.sort(dim=1).values, 3000)[0].numpy()
    _axes(fig).imshow(shifts, cmap="cividis", aspect="auto")


def folds_on_dask(fig: Figure) -> None:
    """One dataset whose folds are sent to four workers."""
    ax = _axes(fig)
    ax.add_patch(plt.Rectangle((-0.9, -0.9), 1.5, 1.8, color=BLUE))
    for y, color in zip((2.4, 0.8, -0.8, -2.4), (ORANGE, GREEN, PINK, SKY), strict=True):
        arrow = dict(arrowstyle="-|>,head_width=.5,head_length=.7", color=INK, lw=3)
        ax.annotate("", (3.0, y), (0.8, y / 4), arrowprops=arrow)
        ax.add_patch(plt.Rectangle((3.2, y - 0.6), 1.9, 1.2, color=color))
    ax.set(xlim=(-1.2, 5.4), ylim=(-3.3, 3.3))


PAGES = (
    arithmetic,
    scikit_learn,
    regression,
    own_edf_folder,
    pars_on_sleep,
    sleep_staging,
    seizures,
    motor_imagery,
    label_efficiency,
    transfer,
    recording_to_tokens,
    five_tasks,
    inside_the_model,
    folds_on_dask,
)


def main() -> None:
    folder = DOCS / "images" / "thumbnails"
    folder.mkdir(exist_ok=True)
    for draw in PAGES:
        fig = plt.figure(figsize=(4, 2.8), layout="constrained", facecolor="white")
        draw(fig)
        fig.savefig(folder / f"{draw.__name__}.png", dpi=100, metadata={"Software": None})
        plt.close(fig)


def _axes(fig: Figure) -> Axes:
    ax = fig.subplots()
    ax.axis("off")
    return ax


def _means(file: str, methods: list[str], n_train_subjects: int) -> pd.DataFrame:
    """Return stored scores by held-out subject and method."""
    scores = pd.read_csv(DOCS / "measured" / f"{file}.csv", comment="#")
    scores = scores[(scores["subject"] != "all") & (scores["n_train_subjects"] == n_train_subjects)]
    return scores.groupby(["subject", "method"])["value"].mean().unstack()[methods]


def _dots(ax: Axes, means: pd.DataFrame) -> None:
    ax.plot(range(means.shape[1]), means.T, color=GRAY, lw=2, alpha=0.6)
    for column, color in enumerate((BLUE, ORANGE, GREEN)):
        ax.plot(np.full(len(means), column), means.iloc[:, column], "o", color=color, ms=10)
        ax.hlines(means.iloc[:, column].mean(), column - 0.3, column + 0.3, color=INK, lw=5)


def _recording(subject: str, channels: list[str] | None = None) -> np.ndarray:
    return datasets.mental_arithmetic([subject]).datasets[0].raw.get_data(channels)


def _traces(ax: Axes, x: np.ndarray, seconds: float) -> None:
    x = x[1:7, : int(seconds * 128)]
    step = 5 * np.median(x.std(axis=1))
    for row, signal in enumerate(x):
        color = BLUE if row % 2 else INK
        ax.plot(np.arange(len(signal)) / 128, signal - row * step, color=color, lw=2)


def _night() -> np.ndarray:
    night = datasets.simulated.sleep(
        n_subjects=1, hours=4, n_chans=1, sfreq=100, random_state=4
    ).datasets[0]
    return night.metadata["target"].to_numpy()


if __name__ == "__main__":
    main()
