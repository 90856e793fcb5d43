"""The numbers in the figures of docs/paper.rst are those that the package computes."""

from __future__ import annotations

import html
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.patches import Rectangle

from braindecode_pars.pretext import PARS
from braindecode_pars.pretext.pars import relative_shifts
from braindecode_pars.tokens import extract_patches

DOCS = Path(__file__).parents[1] / "docs"
THEMES = ("light", "dark")


@pytest.fixture
def drawing(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "experiments")
    import paper_figures

    yield paper_figures
    plt.close("all")


def texts(name: str, theme: str) -> list[str]:
    """Return the words in a figure of the page, in the order in which they were drawn."""
    svg = (DOCS / "images" / f"paper-{name}-{theme}.svg").read_text(encoding="utf-8")
    return [html.unescape(text) for text in re.findall(r"<text [^>]*>([^<]*)</text>", svg)]


def starts_of_the_task(drawing) -> tuple[PARS, torch.Tensor]:
    """Draw the patches again, as the pretext task does in training."""
    n_times = drawing.example().signal.shape[1]
    sizes = dict(embed_dim=8, num_layers=1, num_heads=1, mlp_dim=8)
    task = PARS(n_times, 128, n_patches=5, **sizes)
    return task, task.sample_starts(1, generator=torch.Generator().manual_seed(drawing.SEED))


@pytest.mark.parametrize("theme", THEMES)
def test_the_hidden_positions_are_those_of_the_task(drawing, theme):
    task, starts = starts_of_the_task(drawing)
    seconds = starts[0].numpy() / 128
    top, *inputs = drawing.patches(drawing.THEMES[theme]).axes
    # Boxes in the signal: empty without a position.
    boxes = [patch for patch in top.patches if isinstance(patch, Rectangle)]
    drawn = {box.get_x(): box.get_facecolor()[3] == 0 for box in boxes}
    assert drawn == {start: i < task.n_masked for i, start in enumerate(seconds)}
    # The input: waveforms as the encoder gets them, in its order, and the positions that it gets.
    expected = extract_patches(drawing.example().signal, starts, 128)[0]
    for ax, patch in zip(inputs, expected, strict=True):
        np.testing.assert_array_equal(ax.lines[0].get_ydata(), patch)
    titles = [text for text in texts("patches", theme) if text == "?" or text.endswith(" s")]
    shown = [f"{start:.2f} s" for start in seconds[task.n_masked :]]
    assert titles == ["?"] * task.n_masked + shown


@pytest.mark.parametrize("theme", THEMES)
def test_the_relative_shifts_are_those_of_the_task(drawing, theme):
    task, starts = starts_of_the_task(drawing)
    hidden = starts[:, : task.n_masked].sort().values
    expected = relative_shifts(hidden, task.n_times)[0].flatten().tolist()
    written = [text.replace("\N{MINUS SIGN}", "-") for text in texts("shifts", theme)]
    numbers = [float(text) for text in written if re.fullmatch(r"-?\d\.\d\d", text)]
    assert numbers == pytest.approx(expected, abs=0.005)
