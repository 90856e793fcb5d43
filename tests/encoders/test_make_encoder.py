"""The folder of an encoder is made from a run and a store of held-out subjects."""

from __future__ import annotations

import make_encoder
import mne
import numpy as np
import pytest
import torch
from braindecode.datasets import BaseConcatDataset, RawDataset
from held_out_loss import held_out_loss
from make_encoder import command_of, make
from support.small_runs import run, small_config
from typer.testing import CliRunner

from braindecode_pars import runs
from braindecode_pars.cli import app
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.signal_store import SignalStore


def noise_of(path, subjects, names=("C3", "Cz", "C4"), further=()):
    rng = np.random.default_rng(0)
    recordings = []
    for subject in subjects:
        info = mne.create_info(list(names), 100.0, "eeg")
        raw = mne.io.RawArray(1e-5 * rng.normal(size=(len(names), 900)), info, verbose="error")
        recordings.append(RawDataset(raw, {"subject": subject}))
    return SignalStore.create(path, BaseConcatDataset([*recordings, *further]), verbose=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("make")


@pytest.fixture(scope="module")
def finished(folder):
    seen = noise_of(folder / "seen", [1, 2, 3])
    return run(seen, folder / "run", task="spectral", task_params={"mask_ratio": 0.4}, epochs=2)


@pytest.fixture(scope="module")
def others(folder):
    return noise_of(folder / "others", [4, 5])


@pytest.fixture(scope="module")
def made(folder, finished, others):
    return make(finished, others.path, "spectral-noise", folder / "package" / "spectral-noise")


def test_the_folder_is_an_encoder_with_a_complete_card(made, finished, others):
    assert sorted(file.name for file in made.iterdir()) == [
        "README.md",
        "encoder.json",
        "encoder.safetensors",
    ]
    loaded, card, report = load_encoder(made)
    assert report.complete
    before = load_encoder(finished)
    assert loaded.config == before.encoder.config
    for name, weight in loaded.state_dict().items():  # rounded to half precision
        assert torch.equal(weight, before.encoder.state_dict()[name].half().float())
    assert (card.subjects, card.loss_relative) == ([1, 2, 3], before.card.loss_relative)

    loss = held_out_loss(finished, others)
    held_out = card.about["held_out"]
    assert held_out["loss_relative"] == pytest.approx(loss.loss_relative)
    assert held_out["parts"] == pytest.approx(loss.parts)
    assert held_out["people"] == "2 volunteers (subjects 4 to 5)"
    assert card.about["people"] == ["3 volunteers (subjects 1 to 3)"]
    assert card.about["channels"] == ["C3", "Cz", "C4"]


@pytest.mark.parametrize(
    "changes",
    [
        dict(task_params={"sampling": "random", "n_patches": 5}, exclude_subjects=["a b", "7"]),
        dict(compile=True, micro_batch_size=4, precision="bfloat16", warmup=0.05, seed=3),
        dict(task="joint", task_params={"tasks": {"mae": 1.0}}, window_seconds=(3.0, 2.5)),
    ],
)
def test_the_command_starts_a_run_with_the_same_configuration(changes, monkeypatch):
    started = []
    monkeypatch.setattr(runs, "pretrain", lambda store, out, config, resume: started.append(config))
    config = small_config(**changes)
    words = make_encoder.shlex.split(command_of(config))
    assert words[0] == "braindecode-pars"
    result = CliRunner().invoke(app, words[1:])
    assert result.exit_code == 0, result.output
    (found,) = started
    for name, value in vars(config).items():
        if name != "device":  # it does not change the result
            assert getattr(found, name) == value, name


def test_subjects_of_the_run_another_montage_and_a_wrong_name_are_refused(
    finished, folder, tmp_path
):
    with pytest.raises(ValueError, match="1, 2, 3"):
        make(finished, folder / "seen", "spectral-noise", tmp_path / "out")
    noise = 1e-5 * np.random.default_rng(1).normal(size=(1, 900))
    one = mne.io.RawArray(noise, mne.create_info(["Pz"], 100.0, "eeg"), verbose="error")
    mixed = noise_of(tmp_path / "mixed", [6], further=[RawDataset(one, {"subject": 7})])
    with pytest.raises(ValueError, match="channels"):
        make(finished, mixed, "spectral-noise", tmp_path / "out")
    with pytest.raises(ValueError, match="small"):
        make(finished, folder / "others", "small", tmp_path / "out")
    assert not (tmp_path / "out").exists()
