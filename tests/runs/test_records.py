"""The curves for TensorBoard; test_run.py tests metrics.csv."""

from __future__ import annotations

import time

import pytest
from support.small_runs import make_store, small_config

from braindecode_pars.runs import pretrain


def test_curves_of_a_resumed_run_have_each_step_once(tmp_path, monkeypatch):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    store, out = make_store(tmp_path / "store"), tmp_path / "run"
    with monkeypatch.context() as patched:
        # The curves of the first epoch are written, but its checkpoint is not.
        def interrupt(*args, **kwargs):
            raise KeyboardInterrupt

        patched.setattr("braindecode_pars.runs.net.Checkpoint.write", interrupt)
        with pytest.raises(KeyboardInterrupt):
            pretrain(store, out, small_config(), verbose=0)
    # TensorBoard orders files by the second in their names, then as text: .10 before .9.
    time.sleep(1)
    pretrain(store, out, small_config(), resume=True, verbose=0)
    events = accumulator.EventAccumulator(str(out / "tensorboard")).Reload()
    assert set(events.Tags()["scalars"]) == {
        *("train_loss", "train_loss_relative", "lr", "seconds", "windows_per_second"),
        *(f"train_loss_relative_{part}" for part in ("lag_0_1", "lag_1_2", "lag_2_5")),
    }
    assert [event.step for event in events.Scalars("train_loss")] == [3, 6, 9, 12, 15]


def test_without_tensorboard_there_are_no_curves(tmp_path, monkeypatch):
    monkeypatch.setattr("braindecode_pars.runs.run.find_spec", lambda name: None)
    out = pretrain(make_store(tmp_path / "store"), tmp_path / "run", small_config(), verbose=0)
    assert not (out / "tensorboard").exists()
    assert (out / "metrics.csv").exists()
