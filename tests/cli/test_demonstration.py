"""``braindecode-pars demo``, on small data."""

from __future__ import annotations

import pandas as pd
import pytest
from typer.testing import CliRunner

from braindecode_pars import PARSClassifier, datasets
from braindecode_pars.cli import _demonstration as demo
from braindecode_pars.cli import app

runner = CliRunner()


@pytest.fixture
def small(monkeypatch):
    """The demo with fewer subjects and shorter nights, so that it takes seconds."""

    def scenario(seed):
        nights = datasets.simulated.sleep(5, 0.2, n_chans=2, sfreq=100, random_state=seed)
        labeled = demo.BaseConcatDataset(nights.datasets[2:])
        return demo.Scenario(
            "simulated sleep",
            unlabeled=demo.BaseConcatDataset(nights.datasets[:2]),
            labeled=labeled,
            held_out=labeled,
            pretrain_epochs=2,
            finetune=dict(finetune_epochs=1),
        )

    monkeypatch.setattr(demo, "simulated_nights", scenario)


def test_demo_end_to_end(small, tmp_path):
    result = runner.invoke(app, ["demo", "--out", str(tmp_path / "out"), "--seed", "5"])
    assert result.exit_code == 0, result.output
    for row in ("PARS", "scratch", "band power"):
        assert row in result.output
    assert "3 subjects with labels: 72 windows, 2 channels x 30 s at 100 Hz" in result.output
    assert "Loss relative to chance on held-out subjects" in result.output
    out = tmp_path / "out"
    written = {"demo.json", "encoder", "shifts.png", "kappa.png", "scores.csv"}
    assert {file.name for file in out.iterdir()} == written
    for figure in ("shifts.png", "kappa.png"):
        assert (out / figure).read_bytes().startswith(b"\x89PNG")
    scores = pd.read_csv(out / "scores.csv")
    assert set(scores["subject"]) == {3, 4, 5}
    assert set(scores["seed"]) == {5}
    # The encoder can be loaded, and was not pretrained on the subjects with scores.
    clf = PARSClassifier(encoder=out / "encoder", finetune_epochs=1, verbose=0)
    clf.fit(demo.simulated_nights(5).labeled)
    assert clf.encoder_card_.subjects == [1, 2]


def test_other_files_are_not_overwritten(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "simulated_nights", pytest.fail)
    (tmp_path / "scores.csv").write_text("my own scores")
    for content in (None, "[]", '{"command": "another"}'):
        if content is not None:
            (tmp_path / "demo.json").write_text(content)
        result = runner.invoke(app, ["demo", "--out", str(tmp_path)])
        assert result.exit_code == 1
        assert "is not the folder of a demo" in " ".join(result.output.split())
    assert (tmp_path / "scores.csv").read_text() == "my own scores"


@pytest.mark.parametrize(
    ("name", "row"), [("mae", "MAE"), ("droppos", "DropPos"), ("joint", "Joint")]
)
def test_demo_of_another_task(small, tmp_path, name, row):
    result = runner.invoke(app, ["demo", "--pretext", name, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert row in result.output
    assert "Training loss relative to chance: " in result.output
    written = {"demo.json", "encoder", "kappa.png", "scores.csv"}
    assert {path.name for path in tmp_path.iterdir()} == written


def test_demo_of_all_tasks_side_by_side(small, tmp_path, monkeypatch):
    fitted = []
    fit = demo.PARSEmbedder.fit

    def noting(self, X):
        fitted.append(fit(self, X))
        return self

    monkeypatch.setattr(demo.PARSEmbedder, "fit", noting)
    result = runner.invoke(app, ["demo", "--all", "--out", str(tmp_path)])
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
        scenario.pretrain_epochs = 1
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
