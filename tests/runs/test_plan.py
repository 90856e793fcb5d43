"""A plan has the numbers of the run that follows; the size of a corpus."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from support import own_recipe
from support.small_runs import SMALL, run, small_config

from braindecode_pars.runs import CorpusSize, RunConfig, plan
from braindecode_pars.runs import planning as module
from braindecode_pars.runs.run import build_task
from braindecode_pars.runs.steps import Steps
from braindecode_pars.signal_store import SignalStore


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


def test_the_size_of_a_store(store):
    """Of many channels, windows are counted once; 10 s // 0.1 s is 99 in floating point."""
    assert CorpusSize.of_store(store, 3) == (6 + 2 + 0 + 4, 100.0, store.n_bytes, 4)
    assert CorpusSize.of_store(store.select(exclude=["subject-0"]), 3).n_windows == 2 + 4
    expected = Steps(store, 10, 1).n_windows
    assert CorpusSize.of_store(store, 0.1).n_windows == expected == 200 + 70 + 20 + 120
    with pytest.raises(ValueError, match="0 samples"):
        CorpusSize.of_store(store, 0.001)


def test_the_size_of_numbers():
    size = CorpusSize.of_numbers(1200, sfreq=200, window_seconds=30, n_chans=6)
    assert size.store_bytes == 1200 * 30 * 200 * 6 * 2
    for name, value in (("n_windows", 0), ("sfreq", -1), ("n_chans", 1.5), ("sfreq", "200")):
        with pytest.raises((TypeError, ValueError), match=name):
            CorpusSize.of_numbers(**{"n_windows": 5, "sfreq": 200, name: value})


def test_a_store_with_shares_has_the_windows_of_its_pass(tmp_path):
    for name, folder, seconds in (("P1", "a", 20), ("P2", "b", 11)):
        own_recipe.write(tmp_path / folder, f"{name}_train", seconds)
    corpora = [own_recipe.corpus_of(tmp_path / name, name) for name in "ab"]
    store = SignalStore.create(tmp_path / "store", corpora, shares={"a": 1, "b": 1}, verbose=0)
    assert CorpusSize.of_store(store, 5).n_windows == 2 + 2
    plain = SignalStore.create(tmp_path / "plain", corpora, verbose=0)
    assert CorpusSize.of_store(plain, 5).n_windows == 4 + 2
