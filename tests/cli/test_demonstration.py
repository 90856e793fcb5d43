"""``braindecode-pars demo``, on small data."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from typer.testing import CliRunner

from braindecode_pars import PARSClassifier, PatchEncoder, datasets
from braindecode_pars.cli import app
from braindecode_pars.cli import demo as _demo_methods
from braindecode_pars.cli import demo as scenarios
from braindecode_pars.pretrained import EncoderCard, save_encoder

runner = CliRunner()

FIGURES = ("pretraining.png", "kappa.png")


@pytest.fixture
def small(monkeypatch):
    """Nights of fewer subjects and minutes, so that the demo takes seconds."""

    def scenario(seed):
        nights = datasets.simulated.sleep(5, 0.2, n_chans=2, sfreq=100, random_state=seed)
        labeled = scenarios.BaseConcatDataset(nights.datasets[2:])
        return scenarios.Scenario(
            "simulated sleep",
            unlabeled=scenarios.BaseConcatDataset(nights.datasets[:2]),
            labeled=labeled,
            held_out=labeled,
            pretrain=dict(pretrain_epochs=2),
            finetune=dict(finetune_epochs=1),
        )

    monkeypatch.setattr(scenarios, "simulated_nights", scenario)


@pytest.fixture
def short(monkeypatch, tiny, tmp_path_factory):
    """The demo on the recordings in the package, with a tiny encoder and one epoch."""
    encoder = PatchEncoder(128, **tiny, tokenizer="spectral")
    card = EncoderCard(sfreq=128.0, task="spectral", subjects=["S001"])
    folder = save_encoder(encoder, card, tmp_path_factory.mktemp("shipped") / "encoder")
    monkeypatch.setattr(scenarios, "ENCODER", str(folder))
    monkeypatch.setitem(scenarios.CONTINUED, "pretrain_epochs", 1)
    monkeypatch.setitem(scenarios.FINETUNE, "finetune_epochs", 1)
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
    assert set(scores["n_train_subjects"]) == {scenarios.N_LABELED}
    clf = PARSClassifier(encoder=out / "encoder", finetune_epochs=1, verbose=0)
    card = clf.fit(datasets.mental_arithmetic(["Subject12", "Subject13"])).encoder_card_
    assert set(card.subjects) == {"S001", *(f"eegmat:Subject{number:02}" for number in range(12))}


def test_a_named_task_is_pretrained_from_new(short, tmp_path, monkeypatch):
    monkeypatch.setattr(_demo_methods, "load_encoder", pytest.fail)
    real = scenarios.mental_arithmetic
    monkeypatch.setattr(
        scenarios,
        "mental_arithmetic",
        lambda: replace(real(), pretrain=dict(pretrain_epochs=1)),
    )
    result = runner.invoke(app, ["demo", "--pretext", "mae", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    scores = pd.read_csv(tmp_path / "scores.csv")
    assert list(dict.fromkeys(scores["method"])) == ["MAE", "scratch", "band power"]


def test_a_missing_encoder_ends_the_demo_before_training(short, tmp_path, monkeypatch):
    monkeypatch.setattr(scenarios, "ENCODER", str(tmp_path / "nowhere"))
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
    clf.fit(scenarios.simulated_nights(5).labeled)
    assert clf.encoder_card_.subjects == [1, 2]


def test_other_files_are_not_overwritten(tmp_path, monkeypatch):
    monkeypatch.setattr(scenarios, "mental_arithmetic", pytest.fail)
    (tmp_path / "scores.csv").write_text("my own scores")
    for content in (None, "[]", '{"command": "another"}'):
        if content is not None:
            (tmp_path / "demo.json").write_text(content)
        result = runner.invoke(app, ["demo", "--out", str(tmp_path)])
        assert result.exit_code == 1
        assert "is not the folder of a demo" in " ".join(result.output.split())
    assert (tmp_path / "scores.csv").read_text() == "my own scores"


@pytest.mark.parametrize(("name", "row"), [("droppos", "DropPos"), ("joint", "Joint")])
def test_demo_of_another_task(small, tmp_path, name, row):
    result = runner.invoke(app, ["demo", "--simulated", "--pretext", name, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert row in result.output
    assert "Training loss relative to chance: " in result.output
    written = {"demo.json", "encoder", *FIGURES, "scores.csv"}
    assert {path.name for path in tmp_path.iterdir()} == written


def test_demo_of_all_tasks_side_by_side(small, tmp_path, monkeypatch):
    fitted = []
    fit = _demo_methods.PARSEmbedder.fit

    def noting(self, X):
        fitted.append(fit(self, X))
        return self

    monkeypatch.setattr(_demo_methods.PARSEmbedder, "fit", noting)
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
    real = scenarios.motor_imagery

    def shorter(folder):
        scenario = real(folder)
        scenario.pretrain["pretrain_epochs"] = 1
        scenario.finetune["finetune_epochs"] = 1
        scenario.labeled = scenarios.BaseConcatDataset(scenario.labeled.datasets[:6])
        return scenario

    recordings = scenarios.physionet_mi.recordings(eeg_folder, runs=(4, 8, 12))
    chosen = [r for r in recordings if r.subject in (1, 2, 3, 88)]
    monkeypatch.setattr(scenarios.physionet_mi, "recordings", lambda *_, **__: chosen)
    monkeypatch.setattr(scenarios, "motor_imagery", shorter)
    result = runner.invoke(app, ["demo", "--data", str(eeg_folder), "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "2 subjects with labels: 90 windows, 21 channels x 4 s at 160 Hz" in result.output
    assert (tmp_path / "shifts.png").exists()
