"""Checkpoints: complete state, damaged files, and the number of files that are kept."""

from __future__ import annotations

import itertools
import json
import os
import shutil

import pytest
import safetensors.torch
import torch
from safetensors import safe_open
from support.small_runs import run, run_interrupted, same_checkpoint

from braindecode_pars.runs import run_folder
from braindecode_pars.runs.run import RunNet
from braindecode_pars.runs.run_folder import Checkpoint


def interrupted_run(store, out, n_epochs=2, **changes):
    """Interrupt a session after some epochs, and return the checkpoints, oldest first."""
    run_interrupted(3 * n_epochs + 1, store, out, **changes)
    return sorted((out / "checkpoints").iterdir())


@pytest.fixture(scope="module")
def checkpoint(store, tmp_path_factory):
    """A checkpoint of which tests edit copies."""
    return interrupted_run(store, tmp_path_factory.mktemp("original") / "run")[-1]


def test_a_checkpoint_has_weights_and_moments(checkpoint):
    older, newer = sorted(checkpoint.parent.iterdir())
    assert [older.name, newer.name] == ["step-00000003.safetensors", "step-00000006.safetensors"]
    with safe_open(newer, "pt") as file:
        rest = json.loads(file.metadata()["run"])
        names = set(file.keys())
    assert rest["step"] == 6
    assert [row["epoch"] for row in rest["history"]] == [1, 2]
    assert not any(row["batches"] for row in rest["history"])
    assert "module.mask_token" in names
    for moment in ("step", "exp_avg", "exp_avg_sq"):
        assert f"optimizer.{moment}.decoder.head.weight" in names


def test_a_checkpoint_with_random_states_of_an_earlier_version_is_read(checkpoint, tmp_path):
    def add(metadata, tensors):
        metadata["random"] = {"python": [3, [1, 2], None]}
        tensors["random.cpu"] = torch.get_rng_state()

    copy = tmp_path / checkpoint.name
    rewrite(checkpoint, copy, add, is_signed=True)
    assert Checkpoint.read(copy).step == 6


def test_a_damaged_checkpoint_is_skipped_with_a_warning(store, tmp_path, whole):
    out = tmp_path / "run"
    older, newer = interrupted_run(store, out)
    assert [older.name, newer.name] == ["step-00000003.safetensors", "step-00000006.safetensors"]
    os.truncate(newer, newer.stat().st_size - 100)
    with pytest.warns(UserWarning, match=r"step-00000006.*step-00000003"):
        run(store, out, resume=True)
    assert same_checkpoint(out, whole)
    assert older not in (out / "checkpoints").iterdir()


def test_resume_raises_if_no_checkpoint_can_be_used(store, tmp_path):
    for file in interrupted_run(store, tmp_path / "run"):
        file.write_bytes(b"")
    with pytest.raises(ValueError, match="step-00000003"):
        run(store, tmp_path / "run", resume=True)


def rewrite(file, copy, edit, *, is_signed=False):
    """Write a copy of a checkpoint with other content, and the old checksum unless it is signed."""
    with safe_open(file, "pt") as content:
        header = content.metadata()
    metadata, tensors = json.loads(header["run"]), safetensors.torch.load_file(file)
    edit(metadata, tensors)
    header["run"] = json.dumps(metadata)
    if is_signed:
        header["checksum"] = run_folder._checksum(header["run"], tensors)
    copy.write_bytes(safetensors.torch.save(tensors, metadata=header))


def exchange(metadata, tensors):
    one, other = "module.encoder.norm.weight", "module.encoder.norm.bias"
    tensors[one], tensors[other] = tensors[other], tensors[one]


@pytest.mark.parametrize(
    "edit",
    [
        exchange,
        lambda metadata, tensors: tensors.pop("optimizer.exp_avg.mask_token"),
        lambda metadata, tensors: tensors["module.mask_token"].add_(1e-7),
        lambda metadata, tensors: metadata["history"].pop(),
        lambda metadata, tensors: metadata.update(run_id="another"),
    ],
)
def test_an_edited_checkpoint_is_noticed(checkpoint, tmp_path, edit):
    copy = tmp_path / checkpoint.name
    rewrite(checkpoint, copy, lambda metadata, tensors: None)
    assert Checkpoint.read(copy).step == 6
    rewrite(checkpoint, copy, edit)
    with pytest.raises(ValueError, match="checksum"):
        Checkpoint.read(copy)


def test_a_flipped_bit_anywhere_is_noticed(checkpoint, tmp_path):
    content = checkpoint.read_bytes()
    for place in range(9, len(content), 2999):
        flipped = bytearray(content)
        flipped[place] ^= 4
        copy = tmp_path / checkpoint.name
        copy.write_bytes(flipped)
        with pytest.raises(ValueError, match="invalid checkpoint"):
            Checkpoint.read(copy)
    copy = tmp_path / "step-00000099.safetensors"  # the name of another step
    copy.write_bytes(content)
    with pytest.raises(ValueError, match="step-00000006"):
        Checkpoint.read(copy)


def test_tensors_are_copied_from_the_file(checkpoint, tmp_path):
    """Windows cannot remove a file that is mapped into memory."""
    copy = shutil.copy(checkpoint, tmp_path / checkpoint.name)
    read = Checkpoint.read(copy)
    before = {name: tensor.clone() for name, tensor in read.tensors.items()}
    copy.write_bytes(bytes(copy.stat().st_size))
    assert all(torch.equal(read.tensors[name], before[name]) for name in before)


def test_the_checkpoints_of_another_run_are_not_used(store, tmp_path):
    checkpoints = tmp_path / "run/checkpoints"
    first_files = interrupted_run(store, tmp_path / "run", epochs=5)
    for file in interrupted_run(store, tmp_path / "another", 4, epochs=5):
        file.rename(checkpoints / file.name)
    with pytest.warns(UserWarning, match="step-00000012.*step-00000009.*step-00000006"):
        interrupted_run(store, tmp_path / "run", 1, epochs=5, resume=True)
    # The later files of the other run do not push out the run's own checkpoints.
    assert first_files[-1] in checkpoints.iterdir()
    run_id = Checkpoint.read(first_files[-1]).run_id
    assert Checkpoint.read(checkpoints / "step-00000009.safetensors").run_id == run_id
    for file in checkpoints.glob("step-*"):
        if Checkpoint.read(file).run_id == run_id:
            file.unlink()
    with pytest.raises(ValueError, match="another run"):
        run(store, tmp_path / "run", resume=True, epochs=5)


def test_weights_that_are_not_finite_are_not_written(store, tmp_path, monkeypatch):
    """If weights overflow in the last step of an epoch, the loss of that epoch is still finite."""
    step, steps = RunNet._step_optimizer, itertools.count(1)

    def overflow(net, *args):
        step(net, *args)
        if next(steps) == 3:
            torch.nn.init.constant_(net.task_.mask_token, torch.inf)

    older, newer = interrupted_run(store, tmp_path / "run")
    monkeypatch.setattr(RunNet, "_step_optimizer", overflow)
    with pytest.raises(ValueError, match=r"module\.mask_token"):
        run(store, tmp_path / "run", resume=True)
    assert sorted((tmp_path / "run/checkpoints").glob("step-*")) == [older, newer]
