"""The loss of a run on held-out subjects."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch
from held_out_loss import held_out_loss
from support.small_runs import interrupt, make_store, run

from braindecode_pars.pretext import MAE, Joint, SpectralMAE
from braindecode_pars.runs.run_folder import Checkpoint

SIZES = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=16)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("held_out")


@pytest.fixture(scope="module")
def whole(folder):
    """Recordings of subject-0 to subject-5; that of subject-2 is shorter than a crop."""
    return make_store(folder / "store", seconds=(20, 7, 2, 12, 9, 15))


@pytest.fixture(scope="module")
def others(whole):
    return whole.select(exclude=["subject-0", "subject-1"])


@pytest.fixture(scope="module")
def make_run(whole, folder):
    seen = whole.select(exclude=[f"subject-{number}" for number in range(2, 6)])

    def make(task, **changes):
        out = folder / task
        return out if out.exists() else run(seen, out, task=task, drop_prob=0.5, **changes)

    return make


def plain_losses(task, file, store, crops_per_recording, batch_size, seed=0):
    """Losses relative to chance of each batch, with its size, in plain torch."""
    weights = {
        name.removeprefix("module."): tensor
        for name, tensor in Checkpoint.read(file).tensors.items()
        if name.startswith("module.")
    }
    task.load_state_dict(weights, strict=False)
    task.eval()
    rng = np.random.default_rng(seed)
    table = store.recordings
    long_enough = [row for row in table.index if table["n_times"][row] >= 300]
    drawn = rng.permutation([row for row in long_enough for _ in range(crops_per_recording)])
    channels = rng.integers([len(table["ch_names"][row]) for row in drawn])
    starts = rng.integers([table["n_times"][row] - 300 + 1 for row in drawn])
    crops = [
        store.crops(np.array([table["first_signal"][row] + channel]), np.array([start]), 300)[0]
        for row, channel, start in zip(drawn, channels, starts, strict=True)
    ]
    torch.manual_seed(seed)
    rows = []
    for batch in np.array_split(np.array(crops), int(np.ceil(len(crops) / batch_size))):
        with torch.no_grad():
            prediction, target = task(torch.from_numpy(batch))
            loss = task.criterion()(prediction, target).item() / task.chance_loss()
            parts = task.part_losses(prediction, target)
        rows.append((len(batch), loss, {name: part.item() for name, part in parts.items()}))
    return rows


@pytest.mark.parametrize(("task", "kind"), [("mae", MAE), ("spectral", SpectralMAE)])
def test_it_equals_a_plain_computation(make_run, others, task, kind):
    out = make_run(task)
    found = held_out_loss(out, others, crops_per_recording=7, seed=3, device="cpu")
    rows = plain_losses(
        kind(300, 50, **SIZES, drop_prob=0.5),
        max((out / "checkpoints").iterdir()),
        others,
        crops_per_recording=7,
        batch_size=8,
        seed=3,
    )
    sizes, losses, parts = zip(*rows, strict=True)
    assert sizes == (7, 7, 7)
    assert found.loss_relative == pytest.approx(np.mean(losses), rel=1e-5)
    assert set(found.parts) == set(parts[0])
    for name, value in found.parts.items():
        assert value == pytest.approx(np.mean([part[name] for part in parts]), rel=1e-5)
    assert found.subjects == ["subject-3", "subject-4", "subject-5"]
    assert found.n_crops == 21


def test_parts_of_a_joint_task(make_run, others):
    found = held_out_loss(make_run("joint"), others, crops_per_recording=4, device="cpu")
    assert {"pars", "mae"} <= set(found.parts)
    weights = Joint(300, 50, **SIZES).chance_loss()
    mean = (found.parts["pars"] + found.parts["mae"]) / weights
    assert found.loss_relative == pytest.approx(mean, rel=1e-5)


def test_the_same_seed_gives_the_same_loss_and_leaves_global_draws(make_run, others):
    out = make_run("mae")
    before = torch.get_rng_state()
    one, again, other = (held_out_loss(out, others, seed=seed, device="cpu") for seed in (1, 1, 2))
    assert one == again
    assert one.loss_relative != other.loss_relative
    assert torch.equal(torch.get_rng_state(), before)


def test_subjects_of_the_run_are_refused(make_run, whole):
    with pytest.raises(ValueError, match="subject-0, subject-1"):
        held_out_loss(make_run("mae"), whole.path)


def test_short_recordings_only(make_run, whole):
    short = whole.select(exclude=[f"subject-{number}" for number in (0, 1, 3, 4, 5)])
    with pytest.raises(ValueError, match=r"300 .* 200"):
        held_out_loss(make_run("mae"), short)


def test_another_sampling_rate(make_run, folder):
    store = make_store(folder / "fast", sfreq=128.0)
    with pytest.raises(ValueError, match=r"128 Hz, .*sfreq=100"):
        held_out_loss(make_run("mae"), store)


def test_runs_that_cannot_be_used(make_run, others, tmp_path, whole, monkeypatch):
    with monkeypatch.context() as patched:
        interrupt(patched, step=5)
        with pytest.raises(KeyboardInterrupt):
            run(whole, tmp_path / "unfinished", task="mae")
    with pytest.raises(ValueError, match="not finished"):
        held_out_loss(tmp_path / "unfinished", others)

    copy = shutil.copytree(make_run("mae"), tmp_path / "copy")
    max((copy / "checkpoints").iterdir()).unlink()
    with pytest.raises(ValueError, match="last step, 9"):
        held_out_loss(copy, others)
    shutil.rmtree(copy / "checkpoints")
    with pytest.raises(ValueError, match="checkpoint of its last step"):
        held_out_loss(copy, others)
