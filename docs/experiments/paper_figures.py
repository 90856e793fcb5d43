"""Draw the figures of docs/paper.rst: docs/images/paper-NAME-{light,dark}.svg.

    python docs/experiments/paper_figures.py

Each is drawn twice, for light and for dark pages, with a transparent background. The first three
have the same five patches of a recording in the package. tests/test_paper_figures.py compares the
numbers in the files with those that the package computes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from braindecode_pars import datasets
from braindecode_pars.plotting.style import COLORS
from braindecode_pars.pretext import PARS
from braindecode_pars.pretext.pairwise import CrossAttentionDecoder
from braindecode_pars.pretext.pars import relative_shifts
from braindecode_pars.tokens import extract_patches, instance_norm

IMAGES = Path(__file__).parents[1] / "images"
#: Part of the recording, and the draw of the patches: two of them overlap.
CHANNEL, BEGIN, SECONDS, N_PATCHES, SEED = "P3", 20, 10, 5, 222
SIZES = dict(embed_dim=16, num_layers=1, num_heads=1, mlp_dim=16)
WIDTH = 6.0


@dataclass(frozen=True)
class Theme:
    """Colors of a light or a dark page."""

    ink: str
    shown: str
    hidden: str
    #: Negative, zero and positive numbers of a matrix
    low: str
    middle: str
    high: str

    @property
    def signed(self) -> LinearSegmentedColormap:
        return LinearSegmentedColormap.from_list("signed", [self.low, self.middle, self.high])

    @property
    def positive(self) -> LinearSegmentedColormap:
        return LinearSegmentedColormap.from_list("positive", [self.middle, self.high])


THEMES = {
    "light": Theme("#222832", COLORS[0], COLORS[6], "#8fc4ea", "#ffffff", "#f5b98f"),
    "dark": Theme("#dfe2e7", COLORS[5], "#F0955A", "#1f5f8f", "#14181e", "#9a4a12"),
}


class Example(NamedTuple):
    """Ten seconds of one channel and five patches, of which the first four have no position."""

    signal: Tensor  #: shape (1, n_times)
    starts: Tensor  #: shape (1, n_patches), first samples
    n_hidden: int
    sfreq: int

    @property
    def order(self) -> list[int]:
        """Indices of the patches, sorted by time."""
        return self.starts[0].argsort().tolist()

    @property
    def letters(self) -> dict[int, str]:
        """Letter of each patch, sorted by time."""
        return dict(zip(self.order, "ABCDE", strict=True))

    def seconds(self, i: int) -> float:
        return self.starts[0, i].item() / self.sfreq


@cache
def example() -> Example:
    """Return the input of PARS for one crop, as drawn by the pretext task."""
    raw = datasets.mental_arithmetic(["Subject05"]).datasets[0].raw
    sfreq = int(raw.info["sfreq"])
    x = torch.as_tensor(raw.get_data([CHANNEL])).float()
    x = instance_norm(x[:, BEGIN * sfreq : (BEGIN + SECONDS) * sfreq])
    task = PARS(x.shape[1], sfreq, n_patches=N_PATCHES, **SIZES)
    starts = task.sample_starts(1, generator=torch.Generator().manual_seed(SEED))
    return Example(x, starts, task.n_masked, sfreq)


def hidden_shifts() -> tuple[str, np.ndarray]:
    """Return the letters of the hidden patches sorted by time, and the shifts between them."""
    e = example()
    order = [i for i in e.order if i < e.n_hidden]
    shifts = relative_shifts(e.starts[:, order], e.signal.shape[1])[0].numpy()
    return "".join(e.letters[i] for i in order), shifts


def misfit(first: np.ndarray, second: np.ndarray, smallest: int) -> tuple[np.ndarray, np.ndarray]:
    """Compare two patches under the assumption that the second starts some samples later.

    Returns
    -------
    lags : ndarray of int
        Assumed shifts at which the patches have at least ``smallest`` samples in common.
    misfits : ndarray
        Root mean square of the difference of these samples; 0 where they are the same.
    """
    n = len(first)
    lags = np.arange(n - smallest + 1)
    common = [first[lag:] - second[: n - lag] for lag in lags]
    return lags, np.array([np.sqrt(np.mean(np.square(difference))) for difference in common])


class Decoder(NamedTuple):
    """One head of the pair decoder with random weights, for four of five patches."""

    e: Tensor  #: shape (n_hidden, n_patches)
    g: Tensor  #: shape (n_hidden, n_patches)
    v: Tensor  #: shape (n_patches,), with the constant c added
    weights: Tensor  #: shape (n_hidden, n_hidden, n_patches), the softmax of each pair
    prediction: Tensor  #: shape (n_hidden, n_hidden)


@cache
def decoder(n_hidden: int = 4, n_patches: int = 5, embed_dim: int = 16) -> Decoder:
    """Factorize a decoder by the formulas of docs/paper.rst, independently of the package."""
    torch.manual_seed(5)
    module = CrossAttentionDecoder(embed_dim, num_heads=1).double()
    y = 4 * torch.randn(n_patches, embed_dim, dtype=torch.double)
    with torch.no_grad():
        attention, pair = module.attention, module.pair_query
        first, second = pair.weight.chunk(2, dim=1)  # A_1, A_2
        keys = attention.key(y) / embed_dim**0.5
        a = attention.query(y[:n_hidden] @ first.T + pair.bias) @ keys.T
        b = y[:n_hidden] @ second.T @ attention.query.weight.T @ keys.T
        v = module.head(attention.output(attention.value(y)))[:, 0]
        e = torch.exp(a - a.amax(dim=1, keepdim=True))
        g = torch.exp(b - b.amax(dim=1, keepdim=True))
        weights = (a[:, None] + b[None]).softmax(dim=-1)
        prediction = module(y[None, :n_hidden], y[None])[0]
    return Decoder(e, g, v, weights, prediction)


def patches(theme: Theme) -> Figure:
    """Draw the signal with its patches, and below the input of the model."""
    e = example()
    x, cut = e.signal[0].numpy(), extract_patches(e.signal, e.starts, e.sfreq)[0].numpy()
    fig = plt.figure(figsize=(WIDTH, 4.3), layout="constrained")
    rows = fig.add_gridspec(2, 1, height_ratios=[3, 1.15], hspace=0.12)
    ax = fig.add_subplot(rows[0])
    ax.plot(np.arange(len(x)) / e.sfreq, x, color=theme.ink, lw=0.7, alpha=0.75)
    heights = {"C": -7.2}  # below B, which it overlaps
    for i, letter in e.letters.items():
        color, start = _color(theme, i, e), e.seconds(i)
        ax.plot(start + np.arange(e.sfreq) / e.sfreq, cut[i], color=color, lw=1.4)
        low = heights.get(letter, -5.2)
        face = color if i >= e.n_hidden else "none"
        ax.add_patch(Rectangle((start, low), 1, 1.5, facecolor=face, edgecolor=color, lw=1.6))
        name = dict(color=theme.middle if i >= e.n_hidden else color, weight="bold")
        ax.text(start + 0.5, low + 0.72, letter, ha="center", va="center", **name)
    ax.set(xlim=(0, SECONDS), ylim=(-7.6, 4), xlabel="seconds", yticks=[], xticks=range(0, 11, 2))
    ax.spines[["left", "right", "top"]].set_visible(False)
    inputs = rows[1].subgridspec(1, N_PATCHES)
    for i in range(N_PATCHES):
        small = fig.add_subplot(inputs[i])
        color = _color(theme, i, e)
        small.plot(cut[i], color=color, lw=1)
        small.set(xticks=[], yticks=[], ylim=(-3.2, 3.8))
        small.spines[:].set(color=color, lw=1.6)
        title = "?" if i < e.n_hidden else f"{e.seconds(i):.2f} s"
        small.set_title(title, color=color, size=13, weight="bold", pad=4)
    return fig


def shifts(theme: Theme) -> Figure:
    """Draw the target: the shifts between the four patches without a position."""
    e = example()
    letters, values = hidden_shifts()
    fig, (line, ax) = plt.subplots(
        2, 1, figsize=(WIDTH, 4.9), height_ratios=[1, 3.6], layout="constrained"
    )
    fig.get_layout_engine().set(hspace=0.12)
    starts = {e.letters[i]: e.seconds(i) for i in range(N_PATCHES)}
    for letter in letters:
        line.vlines(starts[letter], 0, 1, color=theme.hidden, lw=2)
        line.text(starts[letter], 1.15, letter, color=theme.hidden, ha="center", weight="bold")
    one, other = letters[0], letters[-1]
    arrow = dict(arrowstyle="<->", color=theme.ink)
    line.annotate("", (starts[one], 0.45), (starts[other], 0.45), arrowprops=arrow)
    difference = f"({starts[one]:.2f} \N{MINUS SIGN} {starts[other]:.2f}) / {SECONDS}"
    result = f"{difference} = {_number(values[0, -1])}"
    line.text(starts[other] + 0.15, 0.45, result, va="center")
    line.set(xlim=(0, SECONDS), ylim=(0, 2), yticks=[], xticks=range(0, 11, 2))
    line.set_xlabel("start in seconds")
    line.spines[["left", "right", "top"]].set_visible(False)
    _matrix(ax, values, theme.signed, limit=0.5)
    for row, column in np.ndindex(values.shape):
        number = _number(values[row, column])
        ax.text(column + 0.5, row + 0.5, number, ha="center", va="center", size=13)
    ax.set_xticks(np.arange(4) + 0.5, letters, weight="bold", color=theme.hidden)
    ax.set_yticks(np.arange(4) + 0.5, letters, weight="bold", color=theme.hidden)
    ax.set(xlabel="patch k", ylabel="patch j")
    ax.xaxis.set(label_position="top", ticks_position="top")
    ax.tick_params(length=0)
    return fig


def overlap(theme: Theme) -> Figure:
    """Compare the samples of two patches that overlap, and of two patches that do not."""
    e = example()
    cut = extract_patches(e.signal, e.starts, e.sfreq)[0].numpy()
    of = {letter: i for i, letter in e.letters.items()}
    fig, (top, bottom) = plt.subplots(
        2, 1, figsize=(WIDTH, 4.6), height_ratios=[1, 1.2], layout="constrained"
    )
    seconds = np.arange(e.sfreq) / e.sfreq
    begin = e.seconds(of["B"])
    for letter, offset in (("B", 3.2), ("C", -3.2)):
        start = e.seconds(of[letter])
        top.plot(start + seconds, cut[of[letter]] + offset, color=theme.hidden, lw=1.3)
        top.text(start - 0.03, offset, letter, color=theme.hidden, weight="bold", ha="right")
    common = e.seconds(of["C"]), begin + 1
    top.axvspan(*common, color=theme.shown, alpha=0.2, lw=0)
    top.text(np.mean(common), 7.4, "the same samples", ha="center", va="bottom", color=theme.ink)
    top.set(xlim=(begin - 0.25, common[0] + 1.1), ylim=(-6.5, 7), yticks=[], xlabel="seconds")
    top.spines[["left", "right", "top"]].set_visible(False)
    styles = {"C": (theme.hidden, "-"), "D": (theme.shown, "--")}
    for letter, (color, dashes) in styles.items():
        lags, misfits = misfit(cut[of["B"]], cut[of[letter]], smallest=e.sfreq // 8)
        bottom.plot(lags / e.sfreq, misfits, dashes, color=color, lw=1.8, label=f"B and {letter}")
    shift = e.seconds(of["C"]) - begin
    bottom.annotate(
        f"0 at {shift:.2f} s",
        (shift, 0.02),
        (shift + 0.12, 0.35),
        arrowprops=dict(arrowstyle="->", color=theme.ink),
        va="center",
    )
    bottom.set(xlim=(0, 0.9), xlabel="assumed shift in seconds", ylabel="difference of samples")
    bottom.set_ylim(bottom=0)
    bottom.spines[["right", "top"]].set_visible(False)
    bottom.legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
    return fig


def factorized(theme: Theme) -> Figure:
    """Draw the weights of all pairs, and the small matrices with the same product."""
    d = decoder()
    n_hidden, n_patches = d.e.shape
    n_columns, n_rows = 23.5, 24.0  # of the figure, in cells
    fig = plt.figure(figsize=(WIDTH, WIDTH * n_rows / n_columns), layout="none")
    limit = d.v.abs().max().item()

    def panel(x: float, y: float, values: Tensor, name: str = "", signed: bool = False) -> None:
        """Draw a matrix with its lower left corner at (x, y), in cells."""
        height, width = values.shape
        box = (x / n_columns, y / n_rows, width / n_columns, height / n_rows)
        ax = fig.add_axes(box, label=name)
        _matrix(ax, values.numpy(), theme.signed if signed else theme.positive, limit**signed)
        ax.set(xticks=[], yticks=[])
        ax.set_title(name, size=12, pad=4)

    def text(x: float, y: float, words: str, **kwargs: object) -> None:
        fig.text(x / n_columns, y / n_rows, words, **{"va": "center", **kwargs})

    text(0.4, 23.2, f"As written: {n_hidden**2} queries, one for each pair,", weight="bold")
    text(0.4, 22.2, f"each with a softmax over {n_patches} patches")
    for j, k in np.ndindex(n_hidden, n_hidden):
        panel(0.4 + 5.4 * k, 20.3 - 1.5 * j, d.weights[j, k][None])

    text(0.4, 14.2, "Here: the same prediction from small matrices", weight="bold")
    transposed = "G\N{MODIFIER LETTER CAPITAL T}"
    panel(0.4, 7.9, d.e, "E")
    panel(5.9, 7.4, torch.diag(d.v), "diag(v)", signed=True)
    panel(11.4, 7.4, d.g.T, transposed)
    fig.add_artist(
        plt.Line2D([0.4 / n_columns, 15.4 / n_columns], [6.8 / n_rows] * 2, color=theme.ink)
    )
    panel(3.1, 0.9, d.e, "E")
    panel(8.6, 0.4, d.g.T, transposed)
    text(16.4, 6.8, "=", size=18)
    panel(18, 4.8, d.prediction, "prediction", signed=True)
    return fig


def _matrix(ax: Axes, values: np.ndarray, colors: LinearSegmentedColormap, limit: float) -> None:
    """Draw cells with lines between them, the first row on top."""
    low = -limit if colors.name == "signed" else 0
    ink = plt.rcParams["text.color"]
    ax.pcolormesh(values, cmap=colors, vmin=low, vmax=limit, edgecolor=ink, linewidth=0.5)
    ax.set_aspect("equal")
    ax.invert_yaxis()
    ax.spines[:].set_visible(False)


def _color(theme: Theme, i: int, e: Example) -> str:
    return theme.hidden if i < e.n_hidden else theme.shown


def _number(value: float) -> str:
    """Format a number with two decimals and a typographic minus sign."""
    return f"{value + 0.0:.2f}".replace("-", "\N{MINUS SIGN}")


FIGURES = dict(patches=patches, shifts=shifts, overlap=overlap, factorized=factorized)


def style(theme: Theme) -> dict[str, object]:
    """Return matplotlib settings that store text as text, in the font of the browser."""
    inks = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    fixed = {"svg.fonttype": "none", "svg.hashsalt": "paper", "font.family": "sans-serif"}
    return dict.fromkeys(inks, theme.ink) | fixed | {"font.size": 12}


def main() -> None:
    for of_page, theme in THEMES.items():
        for name, draw in FIGURES.items():
            with plt.rc_context(style(theme)):
                fig = draw(theme)
                file = IMAGES / f"paper-{name}-{of_page}.svg"
                fig.savefig(file, transparent=True, metadata={"Date": None})
                plt.close(fig)


if __name__ == "__main__":
    main()
