"""The experiments on what pretraining needs: their signals and their table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from braindecode_pars.baselines import CENTERED
from braindecode_pars.evaluation.random_effects import crossed_mean

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(autouse=True)
def own_modules(monkeypatch):
    for folder in ("_ext", "experiments"):
        monkeypatch.syspath_prepend(DOCS / folder)


def test_random_phases_keep_the_power_and_nothing_of_the_waveform():
    from pretraining_factor import RandomPhases

    rng = np.random.default_rng(0)
    crops = (1e-5 * rng.standard_normal((6, 1280)).cumsum(axis=1)).astype(np.float32)

    class Store:
        sfreq = 128.0

        def __len__(self):
            return 6

        def batch(self, signals, n_times, rng):
            self.drawn = crops[signals, :n_times]
            return self.drawn

    store = Store()
    changed = RandomPhases(store).draw(4, 1280, np.random.default_rng(1))
    power, before = (np.abs(np.fft.rfft(signal)) for signal in (changed, store.drawn))
    np.testing.assert_allclose(power, before, rtol=1e-3, atol=1e-6 * before.max())
    correlations = [np.corrcoef(a, b)[0, 1] for a, b in zip(changed, store.drawn, strict=True)]
    assert np.abs(correlations).max() < 0.95
    assert changed.dtype == np.float32


def test_the_table_has_the_means_and_the_test_of_three_factors(monkeypatch, tmp_path):
    import stored_pretraining
    from stored_pretraining import pretraining_table

    rng = np.random.default_rng(0)
    cubes = {
        "random encoder": rng.uniform(0.4, 0.6, (5, 4, 3)),
        "PARS": rng.uniform(0.5, 0.7, (5, 4, 3)),
        "log band power": rng.uniform(0.5, 0.7, (5, 4, 1)),
    }
    rows = [
        {
            "method": method + (f", seed {seed}" if cube.shape[2] > 1 else "") + CENTERED,
            "n_train_subjects": 4,
            "seed": draw,
            **{f"S{subject}": cube[subject, draw, seed] for subject in range(5)},
        }
        for method, cube in cubes.items()
        for draw in range(4)
        for seed in range(cube.shape[2])
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "task.csv", index=False)
    monkeypatch.setattr(stored_pretraining, "FOLDER", tmp_path)
    table = pretraining_table("task", 4, centered=True).set_index("pretraining")
    seeds = cubes["PARS"].mean(axis=(0, 1))
    shown = table.loc["PARS", "balanced accuracy"]
    assert shown.startswith(f"{cubes['PARS'].mean():.3f} ± ")
    assert shown.endswith(f"({seeds.min():.3f} to {seeds.max():.3f})")
    for method in ("PARS", "log band power"):
        difference = crossed_mean(cubes[method] - cubes["random encoder"])
        text = table.loc[method, "difference from random encoder (uncorrected 95 % CI)"]
        assert (
            text
            == f"{difference.mean:+.3f} ({difference.ci_low:+.3f} to {difference.ci_high:+.3f})"
        )
    assert table.loc["random encoder", "p (Holm)"] == ""
