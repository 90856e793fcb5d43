"""Predictions of many recordings, without a real model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from braindecode_pars import PARSClassifier
from braindecode_pars._common.checks import warn_user
from braindecode_pars.cli import predicting as _prediction_files
from braindecode_pars.cli.predicting import predict_recordings


class StandIn:
    """A classifier that knows recordings by their names."""

    def __init__(self):
        self.predicted = []

    def predict_raw(self, file, overlap):
        if "bad" in file.name:
            raise ZeroDivisionError(f"{file.name} is bad.")
        if "stop" in file.name:
            raise KeyboardInterrupt
        if "odd" in file.name:
            warn_user("Channel C3 is flat.")
        if file.read_bytes() == b"half":
            file.write_bytes(b"complete")
        self.predicted.append((file.name, overlap))
        probabilities = np.array([0.4, 0.6, 0.5])
        columns = {"probability_W": probabilities, "probability_R": 1 - probabilities}
        times = dict(onset=[0.0, 30, 60], duration=30.0)
        frame = pd.DataFrame({**times, "label": ["R", "W", "W"], **columns})
        frame.attrs = dict(recording=file.name, classes=["W", "R"], findings={"flat": ["C3"]})
        return frame


@pytest.fixture
def clf(monkeypatch):
    model = StandIn()
    monkeypatch.setattr(_prediction_files, "_draw", lambda frame, file: file.touch())
    monkeypatch.setattr(PARSClassifier, "load", lambda *args, **options: model)
    return model


@pytest.fixture
def call(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").write_bytes(b"weights")

    def predict(*names, overlap=0.0):
        for name in names:
            if not (tmp_path / name).exists():
                (tmp_path / name).write_bytes(name.encode())
        paths = [tmp_path / name for name in names]
        options = dict(overlap=overlap, device="cpu")
        return predict_recordings(str(tmp_path / "model"), paths, tmp_path / "out", **options)

    return predict


def summary(tmp_path):
    return pd.read_csv(tmp_path / "out" / "summary.csv").set_index("recording")


def test_finished_recordings_are_not_predicted_again(clf, call, tmp_path):
    assert call("a.edf", "b.edf") == 0
    assert call("a.edf", "b.edf", "c.edf") == 0
    assert [name for name, _ in clf.predicted] == ["a.edf", "b.edf", "c.edf"]
    assert summary(tmp_path)["SE"].tolist() == [33.333] * 3
    (tmp_path / "a.edf").write_bytes(b"changed")
    call("a.edf", "b.edf")
    call("b.edf", overlap=0.5)
    (tmp_path / "model" / "model.safetensors").write_bytes(b"other weights")
    call("b.edf", overlap=0.5)
    assert clf.predicted[3:] == [("a.edf", 0.0), ("b.edf", 0.5), ("b.edf", 0.5)]


def test_a_recording_that_was_copied_meanwhile_is_predicted_again(clf, call, tmp_path):
    (tmp_path / "a.edf").write_bytes(b"half")
    for _ in range(3):
        assert call("a.edf") == 0
    assert [name for name, _ in clf.predicted] == ["a.edf", "a.edf"]


def test_a_recording_that_fails_does_not_end_the_others(clf, call, tmp_path, capsys):
    assert call("a.edf", "bad.edf", "c.edf") == 1
    table = summary(tmp_path)
    assert table.loc["bad", "problem"] == "bad.edf is bad."
    assert table["windows"].fillna(0).tolist() == [3, 0, 3]
    printed = capsys.readouterr()
    assert "bad.edf failed: bad.edf is bad." in printed.err
    assert "1 of 3 recordings could not be predicted" in printed.out
    assert "Traceback" not in printed.err + printed.out


def test_ctrl_c_keeps_what_is_finished(clf, call, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        call("a.edf", "stop.edf", "c.edf")
    assert summary(tmp_path).index.tolist() == ["a"]
    assert (tmp_path / "out" / "a_predictions.json").exists()
    assert not list((tmp_path / "out").glob("stop*"))
    assert call("a.edf", "c.edf") == 0
    assert [name for name, _ in clf.predicted] == ["a.edf", "c.edf"]


def test_warnings_name_their_recording_and_findings_are_counted(clf, call, tmp_path, capsys):
    call("odd.edf")
    assert "odd.edf: Channel C3 is flat." in capsys.readouterr().err
    assert summary(tmp_path).loc["odd", ["n_findings", "findings"]].tolist() == [1, "flat"]
