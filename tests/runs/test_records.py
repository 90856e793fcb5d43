"""The curves for TensorBoard; the table is tested with the run."""

from __future__ import annotations

import pytest
from support.small_runs import make_store, small_config

from braindecode_pars.runs import pretrain
from braindecode_pars.runs._records import TensorBoardCurves


def test_curves_go_over_steps_and_a_resumed_run_repeats_none(tmp_path, monkeypatch):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    store, out = make_store(tmp_path / "store"), tmp_path / "run"
    with monkeypatch.context() as patched:

        def die_after_the_curves(*args, **kwargs):
            raise KeyboardInterrupt

        patched.setattr("braindecode_pars.runs._records.Checkpoint.write", die_after_the_curves)
        with pytest.raises(KeyboardInterrupt):
            pretrain(store, out, small_config(), verbose=0)
    pretrain(store, out, small_config(), resume=True, verbose=0)
    events = accumulator.EventAccumulator(str(out / "tensorboard")).Reload()
    assert set(events.Tags()["scalars"]) == {
        *("train_loss", "train_loss_relative", "lr", "seconds", "windows_per_second")
    }
    assert [event.step for event in events.Scalars("train_loss")] == [3, 6, 9, 12, 15]


def test_without_tensorboard_there_are_no_curves(tmp_path, monkeypatch):
    monkeypatch.setattr(TensorBoardCurves, "is_available", lambda: False)
    out = pretrain(make_store(tmp_path / "store"), tmp_path / "run", small_config(), verbose=0)
    assert not (out / "tensorboard").exists()
    assert (out / "metrics.csv").exists()
