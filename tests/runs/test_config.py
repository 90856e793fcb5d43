"""Settings of a run, its plan, and its folder, which accepts only that run."""

from __future__ import annotations

import errno
import json
import os

import numpy as np
import pandas as pd
import pytest
from support.small_runs import SMALL, make_store, run, run_interrupted, small_config

from braindecode_pars import PARSEmbedder, paper
from braindecode_pars._common import results_folder
from braindecode_pars.pretext.base import params_of
from braindecode_pars.runs import CorpusSize, RunConfig, plan
from braindecode_pars.runs import planning as module
from braindecode_pars.runs.run import build_task
from braindecode_pars.runs.run_folder import RunFolder
from braindecode_pars.runs.steps import Steps


def test_defaults_are_the_settings_of_the_paper():
    config = RunConfig()
    for name, value in paper.ENCODER.items():
        assert getattr(config, name) == value
    assert config.epochs == paper.PRETRAINING["max_epochs"]
    assert (config.lr, config.batch_size, config.weight_decay) == (1e-4, 512, 1e-4)
    assert (config.window_seconds, config.patch_seconds, config.task) == (30, 1, "pars")


def test_settings_for_a_laptop_are_the_defaults_of_the_estimators():
    laptop, estimator = RunConfig.for_laptop(), PARSEmbedder()
    for name in ("embed_dim", "num_layers", "num_heads", "mlp_dim", "tokenizer", "patch_seconds"):
        assert getattr(laptop, name) == getattr(estimator, name)
    for name in ("epochs", "max_steps", "minutes", "batch_size", "lr"):
        assert getattr(laptop, name) == getattr(estimator, f"pretrain_{name}")
    assert laptop.task_params == params_of(estimator.pretext, estimator.pretext_params)
    assert laptop.weight_decay == estimator.weight_decay
    assert RunConfig.for_laptop(lr=0.25).lr == 0.25


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("task", "parts"),
        ("window_seconds", 0),
        ("patch_seconds", "1"),
        ("batch_size", True),
        ("lr", float("nan")),
        ("warmup", 1.5),
        ("tokenizer", "wavelet"),
        ("exclude_subjects", "S01"),
        *(("window_seconds", lengths) for lengths in ([], [3, 3], [10, -1])),
    ],
)
def test_invalid_settings(name, value):
    with pytest.raises((ValueError, TypeError), match=f"{name} "):
        RunConfig(**{name: value})


def test_numpy_numbers_and_the_order_of_subjects_do_not_matter():
    numpy = RunConfig(lr=np.float32(0.5), exclude_subjects=["b", 3, "b"])
    assert numpy == RunConfig(lr=0.5, exclude_subjects=("3", "b"))
    assert type(numpy.lr) is float


def test_of_a_task_in_a_file_a_configuration_keeps_the_name(own_task):
    assert RunConfig(task=f"{own_task}:Slope").task == "slope"
    assert RunConfig(task="slope").task == "slope"


def test_several_lengths_of_crops():
    config = RunConfig(window_seconds=[10, 3])
    assert config == RunConfig(window_seconds=(10.0, 3.0))
    assert config.lengths == (10.0, 3.0)
    assert RunConfig(window_seconds=(10,)).window_seconds == 10.0


def test_a_run_is_not_mixed_with_another(store, tmp_path):
    out = run_interrupted(8, store, tmp_path / "run")
    with pytest.raises(ValueError, match="already contains a run"):
        run(store, out)
    message = "task_params.n_patches is 5, .* epochs is 6, was 3; lr is 0.0001, was 0.001"
    with pytest.raises(ValueError, match=message):
        run(store, out, resume=True, lr=1e-4, epochs=6, task_params={"n_patches": 5})
    other = make_store(tmp_path / "other", seed=1)
    with pytest.raises(ValueError, match=other.checksum):
        run(other, out, resume=True)
    with pytest.raises(ValueError, match="no run to resume"):
        run(store, tmp_path / "nothing", resume=True)


def test_a_run_without_checkpoints_is_replaced(store, tmp_path):
    run_interrupted(1, store, tmp_path / "run")
    run(store, tmp_path / "run", epochs=1)
    assert len(json.loads((tmp_path / "run/run.json").read_text())["sessions"]) == 1


def test_other_folders_are_not_used(store, tmp_path, monkeypatch):
    """Those of models, of a store, and one that another process uses."""
    monkeypatch.setattr(results_folder, "_WAIT_ALONE", 0)
    (tmp_path / "model").mkdir()
    (tmp_path / "model/encoder.safetensors").write_text("{}")
    for path in (tmp_path / "model", store.path):
        with pytest.raises(ValueError, match=r"encoder\.safetensors|samples\.bin"):
            run(store, path)
    with RunFolder(tmp_path / "run").opened(), pytest.raises(BlockingIOError):
        run(store, tmp_path / "run")
    assert [file.name for file in (tmp_path / "run").iterdir()] == [".lock"]


def test_a_full_disk_ends_a_run_but_keeps_its_checkpoints(store, tmp_path, monkeypatch):
    out = tmp_path / "run"
    with monkeypatch.context() as patched:
        rename = os.replace

        def full(aside, path):
            if path.name == "step-00000009.safetensors":
                raise OSError(errno.ENOSPC, "No space left on device")
            rename(aside, path)

        patched.setattr(os, "replace", full)
        with pytest.raises(OSError, match=r"step-00000009.*No space left"):
            run(store, out)
    kept = sorted(file.name for file in (out / "checkpoints").iterdir())
    assert kept == ["step-00000003.safetensors", "step-00000006.safetensors"]
    run(store, out, resume=True)


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


@pytest.mark.parametrize(
    ("limits", "n_steps"),
    [(dict(), 2000), (dict(max_steps=70), 70), (dict(minutes=0.5), 60)],
)
def test_a_run_without_epochs_has_at_most_its_budget(monkeypatch, limits, n_steps):
    """Sixteen windows in a second are two steps of eight."""
    monkeypatch.setattr(module, "_throughput", lambda *_: 16.0)
    size = CorpusSize.of_numbers(100, sfreq=100, window_seconds=3)
    assert plan(size, small_config(epochs=None, **limits)).n_steps == n_steps


def test_a_plan_of_several_lengths_is_the_mean_of_theirs(monkeypatch):
    rates = {300: 4.0, 600: 12.0}
    monkeypatch.setattr(module, "_throughput", lambda task, *_: rates[task.n_times])

    def planned(window_seconds):
        size = CorpusSize.of_numbers(100, sfreq=100, window_seconds=6)
        config = small_config(task="mae", window_seconds=window_seconds, steps_per_epoch=5)
        return plan(size, config)

    both, long, short = (planned(seconds) for seconds in ((3, 6), 6, 3))
    assert both.hours == pytest.approx((long.hours + short.hours) / 2)


def test_the_size_of_a_store(store):
    """Of many channels, windows are counted once; 10 s // 0.1 s is 99 in floating point."""
    assert CorpusSize.of_store(store, 3) == (6 + 2 + 0 + 4, 100.0, store.n_bytes, 4)
    assert CorpusSize.of_store(store.select(exclude=["subject-0"]), 3).n_windows == 2 + 4
    expected = Steps(store, 10, 1).n_windows
    assert CorpusSize.of_store(store, 0.1).n_windows == expected == 200 + 70 + 20 + 120
