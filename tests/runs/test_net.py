"""Runs in several processes, with micro-batches, and after kills."""

from __future__ import annotations

import signal

import pandas as pd
import pytest
import torch
from support.small_runs import (
    last_checkpoint,
    make_store,
    run,
    run_until_killed,
    same_checkpoint,
    small_config,
    start_process,
    start_processes,
)

from braindecode_pars.runs import pretrain
from braindecode_pars.runs.run_folder import Checkpoint


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


@pytest.fixture
def one_thread():
    """Use one thread, as in the child processes: rounding depends on the number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_a_run_killed_repeatedly_ends_bit_identical(tmp_path):
    store = make_store(tmp_path / "store").path
    config = small_config(epochs=5, batch_size=8, micro_batch_size=4, drop_prob=0.1)
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    for moment, nth in [
        ("before the rename", 1),  # in the first epoch, before any checkpoint
        ("half a checkpoint", 2),
        ("after the rename", 2),  # before the oldest checkpoint is removed
        ("after the rename", 2),  # the last checkpoint exists, the encoder does not
        ("after the rename", 1),  # the encoder's weights exist, its description does not
    ]:
        process = start_process(run_until_killed, store, killed, config, moment, nth)
        process.join(300)
        assert process.exitcode == -signal.SIGKILL, moment
        for file in killed.glob("checkpoints/step-*"):
            assert Checkpoint.read(file).step % 3 == 0
    assert (killed / "encoder.safetensors").exists()
    assert not (killed / "encoder.json").exists()
    pretrain(store, killed, config, resume=True, verbose=0)
    pretrain(store, whole, config, verbose=0)

    assert same_checkpoint(killed, whole)
    assert (killed / "encoder.json").exists()
    columns = ["epoch", "step", "train_loss", "train_loss_relative", "lr"]
    tables = [pd.read_csv(out / "metrics.csv")[columns] for out in (killed, whole)]
    pd.testing.assert_frame_equal(*tables, check_exact=True)
    # A kill before the oldest checkpoint is removed leaves three, so the last two are compared.
    files = [
        sorted(file.name for file in (out / "checkpoints").iterdir())[-2:]
        for out in (killed, whole)
    ]
    assert files == [["step-00000012.safetensors", "step-00000015.safetensors"]] * 2
    assert (killed / "encoder.safetensors").read_bytes() == (
        whole / "encoder.safetensors"
    ).read_bytes()
