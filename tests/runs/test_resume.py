"""A run that is killed at several moments and resumed ends like an uninterrupted run."""

from __future__ import annotations

import signal

import pandas as pd
import pytest
import torch
from support.small_runs import (
    make_store,
    run_until_killed,
    same_checkpoint,
    small_config,
    start_process,
)

from braindecode_pars.runs import pretrain
from braindecode_pars.runs.run_folder import Checkpoint

pytestmark = pytest.mark.slow


@pytest.fixture
def one_thread():
    """Use one thread, as in the child processes: rounding depends on the number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
def test_a_run_killed_repeatedly_ends_bit_identical(tmp_path):
    store = make_store(tmp_path / "store").path
    config = small_config(batch_size=8, micro_batch_size=4, drop_prob=0.1)
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
