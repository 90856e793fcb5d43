"""``braindecode-pars demo``: its data, methods and losses, and the command on small data."""

from __future__ import annotations

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from braindecode_pars import PARSClassifier, PARSEmbedder, PatchEncoder, datasets
from braindecode_pars.cli import app, demo
from braindecode_pars.cli.demo import (
    Scenario,
    classifiers,
    describe_losses,
    draw_losses,
    draw_shifts,
    embedders,
    mental_arithmetic,
    motor_imagery,
    simulated_nights,
)
from braindecode_pars.pretext import PRETEXT_TASKS
from braindecode_pars.pretrained import EncoderCard, save_encoder

runner = CliRunner()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pretext", "parts"], "'parts'; known are"),
        (["--data", "nowhere"], "nowhere"),
        (["--all", "--pretext", "mae"], "omit --pretext"),
        (["--simulated", "--data", "x"], "omit --data"),
    ],
)
def test_user_errors_end_without_a_traceback(arguments, message, tmp_path):
    result = runner.invoke(app, ["demo", "--out", str(tmp_path / "out"), *arguments])
    assert result.exit_code != 0
    assert message in " ".join(result.output.replace("│", " ").split())
    assert "Traceback" not in result.output


def subjects(windows) -> set:
    return set(windows.description["subject"])


def check_people(scenario: Scenario) -> None:
    assert subjects(scenario.unlabeled).isdisjoint(subjects(scenario.labeled))
    assert subjects(scenario.held_out) == subjects(scenario.labeled)
    assert scenario.held_out[0][0].shape == scenario.unlabeled[0][0].shape


def test_the_recordings_in_the_package():
    scenario = mental_arithmetic()
    check_people(scenario)
    # The package's defaults were chosen on the first twelve subjects, so none of them is scored.
    assert subjects(scenario.labeled) == {f"Subject{number}" for number in range(12, 24)}
    assert (len(scenario.unlabeled), len(scenario.labeled)) == (144, 144)
    assert "ODC-BY-1.0" in scenario.notice
    assert "Zyma et al. 2019" in scenario.notice


def test_the_seed_simulates_other_nights(monkeypatch):
    sleep = demo.simulated.sleep
    monkeypatch.setattr(demo.simulated, "sleep", lambda **given: sleep(**{**given, "hours": 0.1}))
    first, same, other = (simulated_nights(seed) for seed in (0, 0, 1))
    check_people(first)
    assert (len(subjects(first.unlabeled)), len(subjects(first.labeled))) == (8, 6)
    assert np.array_equal(first.labeled[0][0], same.labeled[0][0])
    assert not np.array_equal(first.labeled[0][0], other.labeled[0][0])
    assert len(first.labeled) == 6 * 12 / 4  # windows of 30 s in six minutes, every fourth
    assert first.encoder is None


def test_a_folder_with_few_subjects(tmp_path):
    for subject in (1, 2, 3):
        (tmp_path / f"S{subject:03}R04.edf").touch()
    with pytest.raises(ValueError, match="3 subjects"):
        motor_imagery(tmp_path)


@pytest.fixture
def scenario(tmp_path) -> Scenario:
    """Settings without data, and an encoder to continue with."""
    encoder = PatchEncoder(50, embed_dim=24, num_layers=1, num_heads=2, tokenizer="linear")
    card = EncoderCard(sfreq=100.0, task="mae", task_params=dict(mask_ratio=0.25))
    return Scenario(
        "nights",
        unlabeled=None,
        labeled=None,
        held_out=None,
        pretrain=dict(pretrain_epochs=3),
        finetune=dict(finetune_epochs=2),
        encoder=str(save_encoder(encoder, card, tmp_path / "shipped")),
        continued=dict(pretrain_epochs=1),
    )


def test_an_encoder_continues_with_its_own_task(scenario):
    [(name, embedder)] = embedders(scenario, ["pars"], seed=7).items()
    assert name == "continued"
    assert (embedder.pretext, embedder.pretext_params) == ("mae", dict(mask_ratio=0.25))
    assert (embedder.encoder, embedder.continue_pretraining) == (scenario.encoder, True)
    assert (embedder.pretrain_epochs, embedder.random_state) == (1, 7)


def test_methods_beside_the_encoder_in_the_package(scenario, tmp_path):
    found = classifiers(scenario, {"continued": tmp_path / "encoder"})
    assert list(found) == ["pretrained", "continued", "scratch", "pretrained probe", "band power"]
    # Fine-tuning is the same.
    pretrained, continued = (found[name].get_params() for name in ("pretrained", "continued"))
    assert pretrained["encoder"] == found["pretrained probe"][0].encoder == scenario.encoder
    assert continued["encoder"] == tmp_path / "encoder"
    assert {**pretrained, "encoder": None} == {**continued, "encoder": None}
    assert {found["scratch"].finetune_epochs, pretrained["finetune_epochs"]} == {2}


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
    task = fitted("pars").task_.eval()
    with demo.seeded(3), torch.inference_mode():
        prediction, target = task(demo._crops(nights, task.n_times))
    expected = (prediction - target).square().mean().item() / task.chance_loss()
    assert demo._held_out_loss(task, nights, 3) == pytest.approx(expected, rel=1e-5)


def test_figures(nights, fitted, tmp_path, monkeypatch):
    drawn = []
    close = plt.close
    monkeypatch.setattr(plt, "close", lambda figure: (drawn.append(figure), close(figure)))
    encoders = {"PARS": fitted("pars"), "SpectralMAE": fitted("spectral")}
    draw_losses(encoders, tmp_path / "pretraining.png")
    draw_shifts(encoders["PARS"].task_, nights, tmp_path / "shifts.png", seed=0)
    for name in ("pretraining.png", "shifts.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    # One line for each encoder and the chance level; the bands are in the sentence.
    [losses, _] = drawn
    assert len(losses.axes[0].lines) == 3


FIGURES = ("pretraining.png", "kappa.png")


@pytest.fixture
def small(monkeypatch):
    """Nights of fewer subjects and minutes, so that the demo takes seconds."""

    def scenario(seed):
        nights = datasets.simulated.sleep(5, 0.2, n_chans=2, sfreq=100, random_state=seed)
        labeled = demo.BaseConcatDataset(nights.datasets[2:])
        return demo.Scenario(
            "simulated sleep",
            unlabeled=demo.BaseConcatDataset(nights.datasets[:2]),
            labeled=labeled,
            held_out=labeled,
            pretrain=dict(pretrain_epochs=2),
            finetune=dict(finetune_epochs=1),
        )

    monkeypatch.setattr(demo, "simulated_nights", scenario)


@pytest.fixture
def short(monkeypatch, tiny, tmp_path_factory):
    """The demo on the recordings in the package, with a tiny encoder and one epoch."""
    encoder = PatchEncoder(128, **tiny, tokenizer="spectral")
    card = EncoderCard(sfreq=128.0, task="spectral", subjects=["S001"])
    folder = save_encoder(encoder, card, tmp_path_factory.mktemp("shipped") / "encoder")
    monkeypatch.setattr(demo, "ENCODER", str(folder))
    monkeypatch.setitem(demo.CONTINUED, "pretrain_epochs", 1)
    monkeypatch.setitem(demo.FINETUNE, "finetune_epochs", 1)
    return folder


def test_demo_on_the_recordings_in_the_package(short, tmp_path):
    out = tmp_path / "out"
    result = runner.invoke(app, ["demo", "--out", str(out), "--seed", "5"])
    assert result.exit_code == 0, result.output
    assert "licence ODC-BY-1.0" in result.output
    assert "12 subjects without labels: 144 windows, 8 channels x 10 s at 128 Hz" in result.output
    assert "continues with its task 'spectral'" in result.output
    assert "Loss relative to chance on held-out subjects" in result.output
    written = {"demo.json", "encoder", *FIGURES, "scores.csv"}
    assert {file.name for file in out.iterdir()} == written
    # The same subjects, those without a share in the encoder, for all methods.
    scores = pd.read_csv(out / "scores.csv")
    methods = ["pretrained", "continued", "scratch", "pretrained probe", "band power"]
    assert list(dict.fromkeys(scores["method"])) == methods
    scored = scores[scores["metric"] == "kappa"].groupby("method")["subject"].agg(list)
    assert all(list(s) == [f"Subject{number}" for number in range(12, 24)] for s in scored)
    assert set(scores["n_train_subjects"]) == {demo.N_LABELED}
    clf = PARSClassifier(encoder=out / "encoder", finetune_epochs=1, verbose=0)
    card = clf.fit(datasets.mental_arithmetic(["Subject12", "Subject13"])).encoder_card_
    assert set(card.subjects) == {"S001", *(f"eegmat:Subject{number:02}" for number in range(12))}


def test_a_named_task_is_pretrained_from_new(short, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "load_encoder", pytest.fail)
    real = demo.mental_arithmetic
    monkeypatch.setattr(
        demo,
        "mental_arithmetic",
        lambda: replace(real(), pretrain=dict(pretrain_epochs=1)),
    )
    result = runner.invoke(app, ["demo", "--pretext", "mae", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    scores = pd.read_csv(tmp_path / "scores.csv")
    assert list(dict.fromkeys(scores["method"])) == ["MAE", "scratch", "band power"]


def test_a_missing_encoder_ends_the_demo_before_training(short, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "ENCODER", str(tmp_path / "nowhere"))
    result = runner.invoke(app, ["demo", "--out", str(tmp_path / "out")])
    assert result.exit_code == 1
    assert "nowhere" in result.output
    assert not (tmp_path / "out").exists()


def test_demo_on_simulated_nights(small, tmp_path):
    out = tmp_path / "out"
    result = runner.invoke(app, ["demo", "--simulated", "--out", str(out), "--seed", "5"])
    assert result.exit_code == 0, result.output
    for row in ("PARS", "scratch", "band power"):
        assert row in result.output
    assert "3 subjects with labels: 72 windows, 2 channels x 30 s at 100 Hz" in result.output
    assert "Loss relative to chance on held-out subjects" in result.output
    written = {"demo.json", "encoder", *FIGURES, "shifts.png", "scores.csv"}
    assert {file.name for file in out.iterdir()} == written
    for figure in (*FIGURES, "shifts.png"):
        assert (out / figure).read_bytes().startswith(b"\x89PNG")
    scores = pd.read_csv(out / "scores.csv")
    assert set(scores["subject"]) == {3, 4, 5}
    assert set(scores["seed"]) == {5}
    # The encoder can be loaded, and was not pretrained on the subjects with scores.
    clf = PARSClassifier(encoder=out / "encoder", finetune_epochs=1, verbose=0)
    clf.fit(demo.simulated_nights(5).labeled)
    assert clf.encoder_card_.subjects == [1, 2]


def test_other_files_are_not_overwritten(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "mental_arithmetic", pytest.fail)
    (tmp_path / "scores.csv").write_text("my own scores")
    for content in (None, "[]", '{"command": "another"}'):
        if content is not None:
            (tmp_path / "demo.json").write_text(content)
        result = runner.invoke(app, ["demo", "--out", str(tmp_path)])
        assert result.exit_code == 1
        assert "a demo" in " ".join(result.output.split())
    assert (tmp_path / "scores.csv").read_text() == "my own scores"


def test_demo_of_a_task_with_parts(small, tmp_path):
    result = runner.invoke(
        app, ["demo", "--simulated", "--pretext", "joint", "--out", str(tmp_path)]
    )
    assert result.exit_code == 0, result.output
    assert "Joint" in result.output
    assert "Training loss by part: pars" in result.output
    written = {"demo.json", "encoder", *FIGURES, "scores.csv"}
    assert {path.name for path in tmp_path.iterdir()} == written


def test_demo_of_all_tasks_side_by_side(small, tmp_path, monkeypatch):
    fitted = []
    fit = demo.PARSEmbedder.fit

    def noting(self, X):
        fitted.append(fit(self, X))
        return self

    monkeypatch.setattr(demo.PARSEmbedder, "fit", noting)
    result = runner.invoke(app, ["demo", "--simulated", "--all", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    scores = pd.read_csv(tmp_path / "scores.csv")
    methods = ["PARS", "MAE", "SpectralMAE", "MP3", "DropPos", "scratch", "band power"]
    assert list(dict.fromkeys(scores["method"])) == methods
    assert {p.name for p in tmp_path.iterdir() if p.is_dir()} == {
        f"encoder-{name}" for name in ("pars", "mae", "spectral", "mp3", "droppos")
    }
    # Only the task differs.
    parameters = [{**emb.get_params(), "pretext": None} for emb in fitted]
    assert all(other == parameters[0] for other in parameters)
    assert len({str(emb.encoder_.config) for emb in fitted}) == 1
    assert len({(card.n_windows, card.epochs) for card in (e.encoder_card_ for e in fitted)}) == 1


@pytest.mark.filterwarnings("ignore:All windows are of one subject")  # two subjects, one held out
def test_demo_on_real_recordings(eeg_folder, tmp_path, monkeypatch):
    real = demo.motor_imagery

    def shorter(folder):
        scenario = real(folder)
        scenario.pretrain["pretrain_epochs"] = 1
        scenario.finetune["finetune_epochs"] = 1
        scenario.labeled = demo.BaseConcatDataset(scenario.labeled.datasets[:6])
        return scenario

    recordings = demo.physionet_mi.recordings(eeg_folder, runs=(4, 8, 12))
    chosen = [r for r in recordings if r.subject in (1, 2, 3, 88)]
    monkeypatch.setattr(demo.physionet_mi, "recordings", lambda *_, **__: chosen)
    monkeypatch.setattr(demo, "motor_imagery", shorter)
    result = runner.invoke(app, ["demo", "--data", str(eeg_folder), "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "2 subjects with labels: 90 windows, 21 channels x 4 s at 160 Hz" in result.output
    assert (tmp_path / "shifts.png").exists()
