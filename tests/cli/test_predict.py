"""``braindecode-pars predict``, with a small model and recordings that are wrong in many ways."""

from __future__ import annotations

import mne
import numpy as np
import pandas as pd
import pytest
from support.small_estimators import classifier
from typer.testing import CliRunner

from braindecode_pars.cli import app


@pytest.fixture(scope="module")
def model(nights, tmp_path_factory):
    return classifier(pretext=None).fit(nights).save(tmp_path_factory.mktemp("model"))


@pytest.fixture
def night(nights):
    """Ten windows of a simulated night."""
    return nights.datasets[0].raw.copy().crop(tmax=300, include_tmax=False)


def save(raw, file):
    file.parent.mkdir(parents=True, exist_ok=True)
    raw.save(file, verbose="error")


def predict(*arguments):
    return CliRunner().invoke(app, ["predict", *map(str, arguments)])


def test_a_folder_of_recordings(model, night, tmp_path):
    save(night, tmp_path / "data" / "night1_raw.fif")
    gap = night.copy().set_annotations(mne.Annotations([45], [30], ["BAD_break"]))
    save(gap, tmp_path / "data" / "sub-01" / "sub-01_task-sleep_eeg.fif")
    result = predict(model, tmp_path / "data", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    table = pd.read_csv(tmp_path / "out" / "summary.csv")
    assert table["recording"].tolist() == ["night1_raw", "sub-01/sub-01_task-sleep_eeg"]
    assert table["windows_not_predicted"].tolist() == [0, 2]
    minutes = table[[f"minutes_{stage}" for stage in ("W", "N1", "N2", "N3", "R")]]
    assert minutes.sum(axis=1).tolist() == [5.0, 4.0]
    assert {"SE", "SOL", "TST", "Lat_REM"} <= set(table)
    events = tmp_path / "out" / "sub-01" / "sub-01_task-sleep_desc-predicted_events.tsv"
    assert pd.read_csv(events, sep="\t")["trial_type"].isna().tolist()[:4] == [0, 1, 1, 0]
    figure = tmp_path / "out" / "night1_raw_hypnodensity.png"
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert "sleep efficiency (%)" in result.output
    assert f"named in the column findings of {tmp_path / 'out' / 'summary.csv'}" in result.output


def test_each_bad_recording_is_one_sentence(model, night, tmp_path):
    data = tmp_path / "data"
    save(night, data / "good_raw.fif")
    save(night.copy().crop(tmax=20), data / "short_raw.fif")
    save(night.copy().rename_channels(lambda name: f"X{name}"), data / "channels_raw.fif")
    zeros = mne.io.RawArray(np.zeros((3, 30000)), night.info, verbose="error")
    save(zeros, data / "zeros_raw.fif")
    gaps = mne.Annotations(np.arange(0, 300, 20), np.full(15, 1.0), ["BAD_"] * 15)
    save(night.copy().set_annotations(gaps), data / "gaps_raw.fif")
    whole = (data / "good_raw.fif").read_bytes()
    (data / "truncated_raw.fif").write_bytes(whole[: len(whole) // 2])
    result = predict(model, data, data / "absent.edf", "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "Traceback" not in result.output
    problems = pd.read_csv(tmp_path / "out" / "summary.csv").set_index("recording")["problem"]
    expected = {
        "short_raw": "30 s",
        "channels_raw": "has none of the channels of the model (C3, C4, F3)",
        "zeros_raw": "flat",
        "gaps_raw": "BAD",
        "truncated_raw": "damaged or truncated",
        "absent": "does not exist",
    }
    assert problems.index[problems.isna()].tolist() == ["good_raw"]
    for name, text in expected.items():
        assert text in problems[name]
    assert "6 of 7 recordings could not be predicted" in result.output


def test_a_recording_without_permission(model, night, tmp_path, monkeypatch):
    def refuse(file, **options):
        raise PermissionError(13, "Permission denied", str(file))

    save(night, tmp_path / "night_raw.fif")
    monkeypatch.setattr(mne.io, "read_raw_fif", refuse)
    result = predict(model, tmp_path / "night_raw.fif", "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "may not be read (permission denied)" in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(out="full"), "contains notes.txt, and is not the folder of predictions"),
        (dict(out="file"), "is a file"),
        (dict(recording=".", out="."), "contains file and 2 more, and is not the folder of pred"),
        (dict(model="nowhere"), "nowhere is not the folder of a saved model: the folder does not"),
        (dict(recording="full"), "contains no recording"),
    ],
)
def test_a_mistake_is_one_sentence_before_anything_is_done(model, night, tmp_path, change, message):
    save(night, tmp_path / "night_raw.fif")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").touch()
    (tmp_path / "file").touch()
    given = {"model": str(model), "recording": "night_raw.fif", "out": "out", **change}
    paths = [tmp_path / given["model"], tmp_path / given["recording"]]
    result = predict(*paths, "--out", tmp_path / given["out"])
    assert result.exit_code == 1
    assert message in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "out" / "summary.csv").exists()
