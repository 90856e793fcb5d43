"""``braindecode-pars fit``: from a folder of labeled recordings to predictions, without Python."""

from __future__ import annotations

import shlex

import mne
import numpy as np
import pandas as pd
import pytest
from support import study_folders
from typer.testing import CliRunner

from braindecode_pars import PARSClassifier
from braindecode_pars.cli import app
from braindecode_pars.predictions.recording import class_texts

TINY = ("embed_dim=16", "num_layers=1", "num_heads=2", "mlp_dim=32")
SHORT = [
    *(f"--set={text}" for text in (*TINY, "pretrain_epochs=1", "finetune_epochs=1")),
    *("--window-seconds", 4, "--sfreq", 100, "--high", 40),
]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """Two recordings of each of three subjects, with a rhythm at 5 or at 20 Hz."""
    folder = tmp_path_factory.mktemp("recordings")
    rng, times, rows = np.random.default_rng(0), np.arange(2000) / 100, ["file,subject,label"]
    for subject in ("P01", "P02", "P03"):
        for name, frequency in (("slow", 5), ("fast", 20)):
            noise = rng.standard_normal((2, len(times)))
            signals = 1e-5 * (np.sin(2 * np.pi * frequency * times) + noise)
            info = mne.create_info(["C3", "C4"], 100.0, "eeg")
            raw = mne.io.RawArray(signals, info, verbose="error")
            raw.set_annotations(mne.Annotations([0], [20], [name]))
            raw.save(folder / f"{subject}_{name}_raw.fif", verbose="error")
            rows.append(f"{subject}_{name}_raw,{subject},{name}")
    (folder / "labels.csv").write_text("\n".join(rows))
    return folder


def invoke(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


NAMES = ("--labels", "labels.csv")
#: An ensemble of one classifier, without an encoder.
BAND_POWER = ("--set", 'views=["band_power"]')


def run_printed(result, recording, out):
    """Run the two commands that fit prints at the end, and return the scores."""
    assert result.exit_code == 0, result.output
    predict, evaluate = [
        shlex.split(line)[1:] for line in result.output.splitlines() if line.startswith("  brain")
    ]
    predict = [recording if text == "RECORDING" else text for text in predict]
    predict[predict.index("predictions")] = out
    assert invoke(*predict).exit_code == 0
    result = invoke(*evaluate)
    assert result.exit_code == 0, result.output
    return pd.read_csv(out.with_name("my model-evaluation") / "scores.csv")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_from_recordings_to_predictions_and_scores(recordings, tmp_path):
    """The two commands that are printed at the end run as they are."""
    model = tmp_path / "my model"
    result = invoke("fit", recordings, "--out", model, *NAMES, *SHORT, "--set", "random_state=3")
    assert result.exit_code == 0, result.output
    rows = [line.replace("│", " ").split() for line in result.output.splitlines() if "│" in line]
    for row in ("windows 30 of 4 s", "sampling rate 100 Hz", "fast 15 3 3", "slow 15 3 3"):
        assert row.split() in rows
    clf = PARSClassifier.load(model, device="cpu")
    assert class_texts(clf) == ["fast", "slow"]
    assert (clf.pretext, clf.random_state, clf.encoder_card_.task) == ("pars", 3, "pars")
    out = tmp_path / "predictions"
    scores = run_printed(result, recordings / "P01_slow_raw.fif", out)
    assert set(pd.read_csv(out / "P01_slow_raw_predictions.csv")["label"]) <= {"slow", "fast"}
    assert set(scores["method"]) == {"PARS", "log band power"}
    assert set(scores["subject"]) == {"P01", "P02", "P03"}


@pytest.mark.filterwarnings("ignore:Preprocessing of these windows differs.*reference as recorded")
def test_an_encoder_brings_its_sampling_rate_and_band(recordings, tmp_path):
    short = ("--set=finetune_epochs=1", "--set=freeze_encoder=true", "--window-seconds", 4)
    labels = ("--class", "fast=quick", "--class", "slow", "--channel", "C4")
    given = (*labels, *short, "--subject", r"^(P\d+)_", "--mains", 50)
    result = invoke("fit", recordings, "--out", tmp_path / "model", "--encoder", "small", *given)
    assert result.exit_code == 0, result.output
    clf = PARSClassifier.load(tmp_path / "model", device="cpu")
    assert class_texts(clf) == ["quick", "slow"]
    assert clf.preprocessing_.channels == ("C4",)
    assert (clf.sfreq_, clf.preprocessing_.band) == (128.0, (0.5, 45.0))
    assert clf.encoder_card_.task == "joint"


@pytest.mark.slow
def test_confounded_classes_are_a_warning_once(tmp_path):
    (tmp_path / "data").mkdir()
    study_folders.classes_of_sites(tmp_path / "data")
    labels = ("--labels", "participants.tsv", "--label-column", "diagnosis", "--window-seconds", 5)
    given = (*labels, "--few-labels", "--set", "recenter=null", *BAND_POWER, "--mains", 50)
    result = invoke("fit", tmp_path / "data", "--out", tmp_path / "model", *given)
    assert result.output.count("Warning: Class is confounded with the site") == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Preprocessing of these windows differs.*reference as recorded")
def test_a_short_recording_is_not_predicted_by_a_centered_ensemble(recordings, tmp_path):
    """The model is replaced by another one on request only."""
    given = ("--few-labels", "--window-seconds", 4, "--set", "C=0.1", *BAND_POWER, *NAMES)
    model = tmp_path / "my model"
    result = invoke("fit", recordings, "--out", model, *given)
    assert result.exit_code == 0, result.output
    recording, out = recordings / "P01_slow_raw.fif", ("--out", tmp_path / "predictions")
    result = invoke("predict", model, recording, *out)
    assert result.exit_code == 1
    output = " ".join(result.output.split())
    assert "recenter='subject' requires at least 10" in output
    assert "has 5" in output
    before = (model / "model.safetensors").read_bytes()
    again = ("--set", "recenter=null")
    result = invoke("fit", recordings / "nowhere", "--out", model, *given, *again)
    assert result.exit_code == 1
    assert "contains a saved FewLabelsClassifier" in result.output  # before anything is read
    assert "--overwrite" in result.output
    assert (model / "model.safetensors").read_bytes() == before
    result = invoke("fit", recordings, "--out", model, *given, *again, "--overwrite")
    assert result.exit_code == 0, result.output
    assert "subject_centering" not in result.output
    scores = run_printed(result, recording, tmp_path / "predictions")
    assert set(scores["subject"]) == {"P01", "P02", "P03"}


@pytest.mark.filterwarnings("ignore:Every class has one recording only")
def test_a_single_subject_cannot_be_held_out(recordings, tmp_path):
    given = ("--subject", "(P01)")
    for file in recordings.glob("P01*"):
        (tmp_path / "one").mkdir(exist_ok=True)
        (tmp_path / "one" / file.name).write_bytes(file.read_bytes())
    result = invoke("fit", tmp_path / "one", "--out", tmp_path / "model", *given, *SHORT)
    assert result.exit_code == 0, result.output
    assert "label recordings of more subjects" in result.output
    assert "braindecode-pars evaluate" not in result.output
