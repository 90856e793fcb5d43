"""The folder of an encoder is made from a run and a store of held-out subjects."""

from __future__ import annotations

import json

import make_encoder
import mne
import numpy as np
import pytest
import torch
from audit import store_on_card
from braindecode.datasets import BaseConcatDataset, RawDataset
from held_out_loss import held_out_loss
from make_encoder import command_of, make
from safetensors.torch import load_file
from support.small_runs import run, small_config
from typer.testing import CliRunner

from braindecode_pars import runs
from braindecode_pars.cli import app
from braindecode_pars.pretrained import load_encoder
from braindecode_pars.runs import RunConfig
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
    started = json.loads((finished / "run.json").read_text())["sessions"][0]["started"]
    assert started.startswith(card.about["date"])
    assert card.about["machine"].startswith("1 process on cpu, 0 minutes, Python 3.")


def test_the_readme_has_license_attribution_changes_and_command(made):
    text = (made / "README.md").read_text(encoding="utf-8")
    about = load_encoder(made).card.about
    assert text.startswith("# spectral-noise\n")
    assert "opendatacommons.org/licenses/by/1-0" in text
    for piece in (*about["attribution"], about["command"], "What was changed", "What was"):
        assert piece in text
    assert f"{about['held_out']['loss_relative']:.3f}" in text
    assert "{" not in text


def test_an_audit_is_written_onto_the_card_and_no_weight_changes(made):
    before, card = load_file(made / "encoder.safetensors"), load_encoder(made).card
    readme = (made / "README.md").read_bytes()
    audit = [dict(recordings="noise", table={"property": ["slope"], "encoder": [0.5]})]
    store_on_card(made, audit)
    after = load_file(made / "encoder.safetensors")
    assert list(after) == list(before)
    for name, tensor in before.items():
        assert after[name].dtype == torch.float16
        assert after[name].numpy().tobytes() == tensor.numpy().tobytes(), name
    changed = load_encoder(made).card
    assert changed.about.pop("audit") == audit
    assert changed == card
    assert json.loads((made / "encoder.json").read_text())["pretraining"]["about"]["audit"] == audit
    assert (made / "README.md").read_bytes() == readme


@pytest.mark.parametrize(
    "changes",
    [
        {},
        dict(task="spectral", task_params={"mask_ratio": 0.4}, tokenizer="spectral", lr=2e-3),
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


def test_one_process_takes_whole_batches():
    """A finished run has the size that its process took."""
    assert "micro" not in command_of(RunConfig(batch_size=128, micro_batch_size=128))


def test_a_large_encoder_is_refused_and_nothing_is_written(finished, others, tmp_path, monkeypatch):
    monkeypatch.setattr(make_encoder, "LARGEST", 10_000)
    with pytest.raises(ValueError, match=r"0\.01 MB"):
        make(finished, others, "spectral-noise", tmp_path / "out")
    assert not (tmp_path / "out").exists()


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
    with pytest.raises(ValueError, match="Spectral"):
        make(finished, folder / "others", "../Spectral", tmp_path / "out")
    for taken in ("small", "features-eegmmidb"):
        with pytest.raises(ValueError, match=taken):
            make(finished, folder / "others", taken, tmp_path / "out")
    assert not (tmp_path / "out").exists()
