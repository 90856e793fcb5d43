"""Figures show the numbers they are given."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from braindecode_pars import plotting
from braindecode_pars.datasets.simulated import STAGES


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def test_shift_matrices():
    target = np.linspace(-1, 1, 5)[:, None] - np.linspace(-1, 1, 5)[None] / 2
    axes = plotting.shift_matrices(target + 0.1, target)
    np.testing.assert_array_equal(axes[0].images[0].get_array(), target)
    np.testing.assert_array_equal(axes[1].images[0].get_array(), target + 0.1)
    assert "RMSE 0.10" in axes[2].get_title()
    np.testing.assert_allclose(axes[2].collections[0].get_offsets()[:, 0], target.ravel())


def test_paired_bars():
    scores = pd.DataFrame(
        [
            dict(method=method, subject=subject, metric="kappa", value=value, seed=seed)
            for method, base in (("PARS", 0.5), ("scratch", 0.3))
            for subject, value in (("S1", base), ("S2", base + 0.2))
            for seed in (0, 1)
        ]
    )
    ax = plotting.paired_bars(scores, "kappa", "Cohen's kappa")
    heights = [bar.get_height() for bar in ax.patches]
    np.testing.assert_allclose(sorted(heights), sorted([0.5, 0.7, 0.6, 0.3, 0.5, 0.4]))
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["PARS", "scratch"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["S1", "S2", "mean ± SD"]
    assert ax.get_ylabel() == "Cohen's kappa"


def test_night(nights):
    windows = np.stack([nights[i][0] for i in range(24)])
    stages = np.array([nights[i][1] for i in range(24)])
    axes = plotting.night(windows, stages, STAGES, 100.0)
    assert len(axes) == 6
    drawn = [ax for ax in axes[1:] if ax.lines]
    assert len(drawn) == len(set(stages))
    assert axes[0].get_xlim() == (0, 0.2)
