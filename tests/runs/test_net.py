"""Runs in several processes, with micro-batches, and with a process that is killed."""

from __future__ import annotations

import json
import os
import signal
import time

import pandas as pd
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from support.small_runs import (
    last_checkpoint,
    make_store,
    run,
    small_config,
    start_processes,
)


@pytest.fixture
def store(tmp_path):
    return make_store(tmp_path / "store").path


def run_on_two(store, out, **changes):
    processes = start_processes(store, out, small_config(**changes), 2)
    for process in processes:
        process.join(300)
    assert [process.exitcode for process in processes] == [0, 0]
    return out


def assert_same_run(one, other):
    """Compare up to rounding, without the biases of keys.

    Softmax removes these biases, so their gradients and values are rounding errors only.
    """
    a, b = map(last_checkpoint, (one, other))
    for name, tensor in a.items():
        if name.startswith("module.") and not name.endswith("key.bias"):
            torch.testing.assert_close(tensor, b[name], rtol=1e-3, atol=1e-6, msg=name)
    names = ["train_loss", "train_loss_relative_mae"]
    losses = [pd.read_csv(out / "metrics.csv").filter(names) for out in (one, other)]
    pd.testing.assert_frame_equal(*losses, rtol=1e-5)


@pytest.mark.slow
def test_two_processes_equal_one_with_the_doubled_batch(store, tmp_path):
    """A task without random draws gives the same result with 4 + 4 examples as with 8."""
    two = run_on_two(store, tmp_path / "two", task="smallest")
    assert_same_run(two, run(store, tmp_path / "one", task="smallest"))
    processes = [tmp_path / f"two-{number}.safetensors" for number in range(2)]
    first, second = map(load_file, processes)
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name
    with safe_open(processes[0], "pt") as a, safe_open(processes[1], "pt") as b:
        assert json.loads(a.metadata()["losses"]) == json.loads(b.metadata()["losses"])
    recorded = json.loads((two / "run.json").read_text())
    assert recorded["sessions"][0]["processes"] == 2
    assert recorded["configuration"]["micro_batch_size"] == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        dict(task="joint", micro_batch_size=2),  # draws depend on micro-batches
        # Losses are relative to the chance of a micro-batch.
        dict(task="pars_space_time", micro_batch_size=2),
        dict(task="features"),
        dict(task="smallest", window_seconds=(3.0, 2.0)),
    ],
    ids=["draws", "several channels", "measured signals", "several lengths"],
)
def test_the_number_of_processes_does_not_matter(store, tmp_path, changes):
    two = run_on_two(store, tmp_path / "two", **changes)
    one = run(store, tmp_path / "one", **changes)
    assert_same_run(two, one)
    if changes["task"] == "features":
        a, b = map(last_checkpoint, (one, two))
        assert all(torch.equal(a[f"module.{n}"], b[f"module.{n}"]) for n in ("mean", "scale"))


def test_micro_batches_add_up_to_the_batch(store, tmp_path):
    whole = run(store, tmp_path / "whole", task="smallest")
    assert_same_run(run(store, tmp_path / "parts", task="smallest", micro_batch_size=2), whole)


@pytest.mark.slow
def test_when_a_process_is_killed_the_other_ends_with_an_error(store, tmp_path):
    out = tmp_path / "run"
    survivor, killed = start_processes(store, out, small_config(epochs=100_000), 2)
    while not any(out.glob("checkpoints/step-*")):
        assert survivor.is_alive()
        time.sleep(0.05)
    os.kill(killed.pid, signal.SIGKILL)
    survivor.join(300)
    assert survivor.exitcode == 1
    message = (tmp_path / "run-0.txt").read_text()
    assert "Connection" in message
    assert "module.mask_token" in last_checkpoint(out)
    killed.join()
