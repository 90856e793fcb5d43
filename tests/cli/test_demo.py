"""``braindecode-pars demo``: its methods and losses, and the command with short training."""

from __future__ import annotations

import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from braindecode_pars import PARSClassifier, PARSEmbedder, PatchEncoder, datasets
from braindecode_pars.cli import app, demo
from braindecode_pars.cli.demo import (
    describe_losses,
    draw_pretraining,
    make_classifiers,
    make_embedder,
)
from braindecode_pars.pretext import PRETEXT_TASKS
from braindecode_pars.pretrained import EncoderCard, save_encoder

runner = CliRunner()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--pretext", "parts"], "'parts'"), (["--data", "nowhere"], "--data")],
)
def test_user_errors_end_without_a_traceback(arguments, message, tmp_path):
    result = runner.invoke(app, ["demo", "--out", str(tmp_path / "out"), *arguments])
    assert result.exit_code != 0
    assert message in result.output
    assert "Traceback" not in result.output


@pytest.fixture
def short(monkeypatch, tiny, tmp_path_factory):
    """A tiny encoder to continue with, and one epoch."""
    encoder = PatchEncoder(128, **tiny, tokenizer="spectral")
    card = EncoderCard(
        sfreq=128.0, task="spectral", task_params=dict(mask_ratio=0.25), subjects=["S001"]
    )
    folder = save_encoder(encoder, card, tmp_path_factory.mktemp("shipped") / "encoder")
    monkeypatch.setattr(demo, "ENCODER", str(folder))
    monkeypatch.setitem(demo.CONTINUED, "pretrain_epochs", 1)
    monkeypatch.setitem(demo.NEW, "pretrain_epochs", 1)
    monkeypatch.setitem(demo.FINETUNE, "finetune_epochs", 1)
    return str(folder)


def test_an_encoder_continues_with_its_own_task(short):
    embedder = make_embedder(None, seed=7)
    assert (embedder.pretext, embedder.pretext_params) == ("spectral", dict(mask_ratio=0.25))
    assert (embedder.encoder, embedder.continue_pretraining) == (short, True)
    assert (embedder.pretrain_epochs, embedder.random_state) == (1, 7)


def test_methods_beside_the_encoder_in_the_package(short, tmp_path):
    found = make_classifiers(None, tmp_path / "encoder")
    assert list(found) == ["pretrained", "continued", "scratch", "pretrained probe", "band power"]
    # Fine-tuning is the same.
    pretrained, continued = (found[name].get_params() for name in ("pretrained", "continued"))
    assert pretrained["encoder"] == found["pretrained probe"][0].encoder == short
    assert continued["encoder"] == tmp_path / "encoder"
    assert {**pretrained, "encoder": None} == {**continued, "encoder": None}
    assert {found["scratch"].finetune_epochs, pretrained["finetune_epochs"]} == {1}


@pytest.fixture
def fitted(nights, tiny):
    def fit(task: str) -> PARSEmbedder:
        settings = dict(pretrain_epochs=2, random_state=0, verbose=0)
        return PARSEmbedder(task, **tiny, **settings).fit(nights)

    return fit


@pytest.mark.parametrize("task", sorted(PRETEXT_TASKS))
def test_losses_are_relative_to_chance(task, nights, fitted):
    embedder = fitted(task)
    lines = describe_losses(embedder, nights, seed=0).splitlines()
    last = embedder.pretraining_history_[-1]["train_loss_relative"]
    assert lines[0].startswith(f"Training loss relative to chance: {last:.2f}")
    held_out = float(lines[1].removeprefix("Loss relative to chance on held-out subjects: "))
    assert held_out == pytest.approx(last, abs=0.3)
    assert describe_losses(embedder, nights, seed=0).splitlines() == lines


def test_held_out_loss_of_pars_is_the_mean_squared_error_of_shifts(nights, fitted):
    embedder = fitted("pars")
    task = embedder.task_.eval()
    with demo.seeded(3), torch.inference_mode():
        prediction, target = task(demo._crops(nights, task.n_times))
    expected = (prediction - target).square().mean().item() / task.chance_loss()
    assert f"held-out subjects: {expected:.2f}" in describe_losses(embedder, nights, 3)


@pytest.mark.parametrize(
    ("task", "names"), [("pars", ["pretraining", "shifts"]), ("spectral", ["pretraining"])]
)
def test_figures(task, names, nights, fitted, tmp_path):
    files = draw_pretraining(fitted(task), nights, tmp_path, seed=0)
    assert [file.stem for file in files] == names
    for file in files:
        assert file.read_bytes().startswith(b"\x89PNG")


def test_demo_on_the_recordings_in_the_package(short, tmp_path):
    out = tmp_path / "out"
    result = runner.invoke(app, ["demo", "--out", str(out), "--seed", "5"])
    assert result.exit_code == 0, result.output
    assert "licence ODC-BY-1.0" in result.output
    assert "Zyma et al. 2019" in result.output
    assert "12 subjects without labels: 144 windows, 8 channels x 10 s at 128 Hz" in result.output
    assert "12 subjects with labels: 144 windows" in result.output
    assert "continues with its task 'spectral'" in result.output
    assert "Loss relative to chance on held-out subjects" in result.output
    written = {"demo.json", "encoder", "pretraining.png", "kappa.png", "scores.csv"}
    assert {file.name for file in out.iterdir()} == written
    # The package's defaults were chosen on the first twelve subjects, so none of them is scored.
    scores = pd.read_csv(out / "scores.csv")
    methods = ["pretrained", "continued", "scratch", "pretrained probe", "band power"]
    assert list(dict.fromkeys(scores["method"])) == methods
    scored = scores[scores["metric"] == "kappa"].groupby("method")["subject"].agg(list)
    assert all(list(s) == [f"Subject{number}" for number in range(12, 24)] for s in scored)
    assert set(scores["n_train_subjects"]) == {demo.N_LABELED}
    assert set(scores["seed"]) == {5}
    clf = PARSClassifier(encoder=out / "encoder", finetune_epochs=1, verbose=0)
    card = clf.fit(datasets.mental_arithmetic(["Subject12", "Subject13"])).encoder_card_
    assert set(card.subjects) == {"S001", *(f"eegmat:Subject{number:02}" for number in range(12))}


@pytest.mark.parametrize(("task", "name"), [("pars", "PARS"), ("joint", "Joint")])
def test_a_named_task_is_pretrained_from_new(task, name, short, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "load_encoder", pytest.fail)
    result = runner.invoke(app, ["demo", "--pretext", task, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert ("Training loss by part: pars" in result.output) == (task == "joint")
    assert (tmp_path / "shifts.png").exists() == (task == "pars")
    scores = pd.read_csv(tmp_path / "scores.csv")
    assert list(dict.fromkeys(scores["method"])) == [name, "scratch", "band power"]


def test_a_missing_encoder_ends_the_demo_before_training(short, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "ENCODER", str(tmp_path / "nowhere"))
    result = runner.invoke(app, ["demo", "--out", str(tmp_path / "out")])
    assert result.exit_code == 1
    assert "nowhere" in result.output
    assert not (tmp_path / "out").exists()


def test_other_files_are_not_overwritten(tmp_path, monkeypatch):
    monkeypatch.setattr(demo.datasets, "mental_arithmetic", pytest.fail)
    (tmp_path / "scores.csv").write_text("my own scores")
    for content in (None, "[]", '{"command": "another"}'):
        if content is not None:
            (tmp_path / "demo.json").write_text(content)
        result = runner.invoke(app, ["demo", "--out", str(tmp_path)])
        assert result.exit_code == 1
        assert "a demo" in " ".join(result.output.split())
    assert (tmp_path / "scores.csv").read_text() == "my own scores"
