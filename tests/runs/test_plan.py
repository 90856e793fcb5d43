"""A plan has the numbers of the run that follows."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from support.small_runs import SMALL, run, small_config

from braindecode_pars.runs import CorpusSize, RunConfig, plan
from braindecode_pars.runs import planning as module
from braindecode_pars.runs.run import build_task


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(module, "_MIN_STEP_SECONDS", 1e-6)


def test_the_run_does_what_was_planned(store, tmp_path, quick):
    size = CorpusSize.of_store(store, SMALL["window_seconds"])
    planned = plan(size, small_config(steps_per_epoch=None, epochs=3))
    folder = run(store, tmp_path / "run", steps_per_epoch=None, epochs=3)
    described = json.loads((folder / "run.json").read_text())["configuration"]
    assert planned.steps_per_epoch == described["steps_per_epoch"]
    metrics = pd.read_csv(folder / "metrics.csv")
    assert planned.n_steps == metrics["step"].iloc[-1]
    # Disk, but for the headers of the files
    written = sum(file.stat().st_size for file in folder.rglob("*.safetensors"))
    assert 0 < written - planned.run_bytes < 100_000
    card = json.loads((folder / "encoder.json").read_text())["pretraining"]
    assert card["n_steps"] == planned.n_steps
    assert card["n_examples"] == 8 * planned.n_steps


def test_parameters_and_hours(quick):
    config = small_config(task_params={"n_patches": 7}, epochs=2, steps_per_epoch=5)
    planned = plan(CorpusSize.of_numbers(100, sfreq=100, window_seconds=3), config)
    task = build_task(config, 100.0)
    assert planned.parameters == sum(parameter.numel() for parameter in task.parameters())
    assert planned.hours == pytest.approx(80 / planned.windows_per_second / 3600)
    assert planned.measured_windows <= 8


@pytest.mark.parametrize(
    ("limits", "n_steps"),
    [(dict(), 2000), (dict(max_steps=70), 70), (dict(minutes=0.5), 60), (dict(minutes=9.0), 1080)],
)
def test_a_run_without_epochs_has_at_most_its_budget(monkeypatch, limits, n_steps):
    """Sixteen windows in a second are two steps of eight."""
    monkeypatch.setattr(module, "_measured", lambda *_: (8, 16.0))
    size = CorpusSize.of_numbers(100, sfreq=100, window_seconds=3)
    assert plan(size, small_config(epochs=None, **limits)).n_steps == n_steps


def test_a_window_shorter_than_a_patch():
    with pytest.raises(ValueError, match="patch"):
        plan(CorpusSize.of_numbers(10, sfreq=100), RunConfig(window_seconds=0.5, device="cpu"))


def test_a_plan_of_several_lengths_is_the_mean_of_theirs(monkeypatch):
    found = {300: (8, 4.0), 600: (4, 12.0)}
    monkeypatch.setattr(module, "_measured", lambda task, *_: found[task.n_times])

    def planned(window_seconds):
        size = CorpusSize.of_numbers(100, sfreq=100, window_seconds=6)
        config = small_config(task="mae", window_seconds=window_seconds, steps_per_epoch=5)
        return plan(size, config)

    both, long, short = (planned(seconds) for seconds in ((3, 6), 6, 3))
    assert both.hours == pytest.approx((long.hours + short.hours) / 2)
    assert both.measured_windows == 4
