"""Command ``braindecode-pars predict``: find recordings, write results and a summary."""

from __future__ import annotations

import json
import os
from pathlib import Path
from unittest import mock

import mne
import numpy as np
import pandas as pd
import pytest
from support.small_estimators import classifier, save_ensemble
from typer.testing import CliRunner

from braindecode_pars import FewLabelsClassifier, PARSClassifier
from braindecode_pars._common import results_folder
from braindecode_pars._common.checks import warn_user
from braindecode_pars._common.model_files import CLASSIFIER, pack
from braindecode_pars._common.results_folder import ResultsFolder
from braindecode_pars.cli import app
from braindecode_pars.cli.predicting import find_recordings, predict_recordings
from braindecode_pars.plotting import style
from braindecode_pars.predictions import night_figures, sleep_statistics
from braindecode_pars.predictions.adaptation import adapted_to
from braindecode_pars.predictions.recording import class_texts
from braindecode_pars.predictions.results import summary_row


def touch(root, *names):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def test_a_recording_counts_once_and_one_that_is_absent_is_kept(tmp_path, monkeypatch):
    """So is a dead link."""
    touch(tmp_path, "set/a.edf")
    (tmp_path / "set" / "c.hea").symlink_to(tmp_path / "nowhere")
    monkeypatch.chdir(tmp_path)
    recordings = find_recordings([Path("set"), tmp_path / "set" / "a.edf", Path("b.edf")])
    assert [str(target) for target in recordings.values()] == ["a", "c", "b"]
    assert all(file.is_absolute() for file in recordings)


@pytest.mark.parametrize(
    ("files", "paths", "message"),
    [
        (["x/a.edf", "y/a.edf"], ["x/a.edf", "y/a.edf"], "a_predictions.csv. Predict"),
        (["a.edf", "a.bdf"], ["."], "a_predictions.csv. Predict"),
        (["a.txt"], ["."], ".edf"),
    ],
)
def test_bad_input(tmp_path, files, paths, message):
    touch(tmp_path, *files)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        find_recordings([tmp_path / name for name in paths])


def predictions(classes, labels, **findings):
    columns = {f"probability_{name}": 1 / len(classes) for name in classes}
    onset = 30.0 * np.arange(len(labels))
    table = pd.DataFrame(dict(onset=onset, duration=30.0, label=labels, **columns))
    counts = dict(windows=len(labels), windows_not_predicted=labels.count(None))
    table.attrs = dict(recording="a.edf", classes=classes, findings={**findings, **counts})
    return table


SLEEP = predictions(["W", "N1", "R"], ["W", "W", None, "N1", "N1", "N1"], missing_channels=["C3"])


def test_minutes_statistics_and_findings():
    row = summary_row(SLEEP)
    assert (row["windows"], row["windows_not_predicted"]) == (6, 1)
    assert [row[f"minutes_{name}"] for name in ("W", "N1", "R")] == [1.0, 1.5, 0.0]
    expected = {k: None if np.isnan(v) else v for k, v in sleep_statistics(SLEEP).items()}
    assert {name: row[name] for name in expected} == expected
    assert (row["n_findings"], row["findings"]) == (1, "missing_channels")
    assert json.loads(json.dumps(row, allow_nan=False)) == row


class StandIn:
    """A classifier that knows recordings by their names."""

    def __init__(self):
        self.predicted = []
        self.transitions_ = "known"

    def predict_raw(self, file, overlap, smooth, rescale):
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
        findings = {"flat": ["C3"], **({"rescaled_by": 0.0333} if rescale else {})}
        frame.attrs = dict(recording=file.name, classes=["W", "R"], findings=findings)
        if smooth:
            frame = frame.assign(label_smoothed="R", smoothed_W=0.25, smoothed_R=0.75)
        return frame


def leave_out_figures(patch):
    """Figures are empty files."""
    patch.setattr(night_figures, "hypnodensity", lambda frame: [mock.Mock()])
    patch.setattr(style, "save_figure", lambda ax, file, **options: file.touch())


@pytest.fixture
def undrawn(monkeypatch):
    leave_out_figures(monkeypatch)


@pytest.fixture
def clf(undrawn, monkeypatch):
    model = StandIn()
    monkeypatch.setattr(PARSClassifier, "load", lambda *args, **options: model)
    return model


@pytest.fixture
def call(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").write_bytes(pack(CLASSIFIER, {"n": 1}, {}))

    def predict(*names, overlap=0.0, overwrite=False, **further):
        for name in names:
            if not (tmp_path / name).exists():
                (tmp_path / name).write_bytes(name.encode())
        paths = [tmp_path / name for name in names]
        options = dict(overlap=overlap, smooth=False, rescale=False) | further
        return predict_recordings(
            str(tmp_path / "model"),
            paths,
            tmp_path / "out",
            device="cpu",
            overwrite=overwrite,
            **options,
        )

    return predict


def names(folder):
    return sorted(file.name for file in folder.glob("[!.]*"))


def refused(call, message, *names, **options):
    """Nothing is written; results are replaced on request only."""
    with pytest.raises(ValueError, match=message):
        call(*names, **options)
    assert call(*names, **options, overwrite=True) == 0


def summary(tmp_path):
    return pd.read_csv(tmp_path / "out" / "summary.csv").set_index("recording")


def content(folder):
    return {file: file.read_bytes() for file in folder.rglob("*") if file.name != ".lock"}


def test_finished_recordings_are_not_predicted_again(clf, call, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(results_folder, "_WAIT_ALONE", 0)
    assert call("a.edf", "b.edf") == 0
    assert call("a.edf", "b.edf", "c.edf") == 0
    assert "2 of 3 recordings had already been predicted." in capsys.readouterr().out
    assert [name for name, _ in clf.predicted] == ["a.edf", "b.edf", "c.edf"]
    assert summary(tmp_path)["SE"].tolist() == [33.333] * 3
    assert names(tmp_path / "out")[:6] == [
        "a_events.json",
        "a_events.tsv",
        "a_hypnodensity.html",
        "a_hypnodensity.png",
        "a_predictions.csv",
        "a_predictions.json",
    ]
    (tmp_path / "a.edf").write_bytes(b"changed")
    before = content(tmp_path / "out")
    for options in ({}, {"overlap": 0.5}):
        with pytest.raises(ValueError, match=r"a_predictions\.csv already exists.*--overwrite"):
            call("new.edf", "a.edf", "b.edf", **options)  # nothing is written, of no recording
    assert content(tmp_path / "out") == before
    folder = ResultsFolder(tmp_path / "out", "predictions", marks=("predictions.json",))
    with folder.opened(), pytest.raises(BlockingIOError):
        call("a.edf")


def test_results_of_another_model_option_or_recording_are_replaced_only_on_request(
    clf, call, tmp_path
):
    call("a.edf")
    refused(call, r"overlap is 0\.5, was 0\.0", "a.edf", overlap=0.5)
    (tmp_path / "model" / "model.safetensors").write_bytes(pack(CLASSIFIER, {"n": 2}, {}))
    refused(call, "model is '.*', was", "a.edf", overlap=0.5)
    (tmp_path / "moved").mkdir()
    os.rename(tmp_path / "a.edf", tmp_path / "moved" / "a.edf")
    assert call("moved/a.edf", overlap=0.5) == 0
    (tmp_path / "moved" / "a.edf").write_bytes(b"of another night")
    message = r"a_predictions\.csv already exists, but .*different settings or files: files"
    refused(call, message, "moved/a.edf", overlap=0.5)
    (tmp_path / "moved" / "a.hyp").touch()  # annotations in the same folder
    refused(call, r"a\.hyp", "moved/a.edf", overlap=0.5)
    assert [overlap for _, overlap in clf.predicted] == [0.0, 0.5, 0.5, 0.5, 0.5]


def test_results_that_were_corrected_by_hand_are_kept(clf, call, tmp_path):
    call("a.edf")
    table = tmp_path / "out" / "a_predictions.csv"
    table.write_bytes(b"corrected")
    assert call("a.edf", overwrite=True) == 0
    assert table.read_bytes() == b"corrected"
    table.with_suffix(".json").write_bytes(b"damaged")
    with pytest.warns(UserWarning, match=r"a_predictions\.json"):
        refused(call, "incomplete", "a.edf")
    table.with_name("b_events.tsv").write_text("of a scorer")
    refused(call, r"b_events\.tsv", "b.edf")


def test_results_of_a_process_that_was_killed_while_files_were_moved_are_refused(
    clf, call, tmp_path, monkeypatch
):
    replace = os.replace

    def killed(source, target):
        if target == tmp_path / "out" / "a_predictions.json":
            raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            call("a.edf")
    assert (tmp_path / "out" / "summary.csv").read_text() == "problem\n"
    refused(call, "incomplete", "a.edf")
    assert summary(tmp_path).index.tolist() == ["a"]


def test_a_recording_that_fails_does_not_end_the_others(clf, call, tmp_path, capsys):
    assert call("a.edf", "bad.edf", "c.edf") == 1
    table = summary(tmp_path)
    assert table.loc["bad", "problem"] == "bad.edf is bad."
    assert table["windows"].fillna(0).tolist() == [3, 0, 3]
    printed = capsys.readouterr()
    assert "bad.edf: The recording could not be predicted. bad.edf is bad." in printed.err
    assert "1 of 3 recordings could not be predicted" in printed.out
    assert "Traceback" not in printed.err + printed.out
    assert call("a.edf") == 0  # the other path was mistyped
    assert summary(tmp_path).index.tolist() == ["a", "c"]


def test_ctrl_c_keeps_what_is_finished(clf, call, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        call("a.edf", "stop.edf", "c.edf")
    assert summary(tmp_path).index.tolist() == ["a"]
    assert (tmp_path / "out" / "a_predictions.json").exists()
    assert not list((tmp_path / "out").glob("stop*"))
    assert call("a.edf", "c.edf") == 0
    assert [name for name, _ in clf.predicted] == ["a.edf", "c.edf"]


def test_smoothed_results_have_the_raw_ones_in_the_table(clf, call, tmp_path):
    call("a.edf")
    call("a.edf", smooth=True, overwrite=True)
    assert len(clf.predicted) == 2  # another option, so again
    table = pd.read_csv(tmp_path / "out" / "a_predictions.csv")
    assert table["label"].tolist() == ["R", "W", "W"]
    assert table["label_smoothed"].tolist() == ["R", "R", "R"]
    events = pd.read_csv(tmp_path / "out" / "a_events.tsv", sep="\t")
    assert events["trial_type"].tolist() == ["R", "R", "R"]
    assert events["probability_R"].tolist() == [0.75] * 3
    assert summary(tmp_path).loc["a", ["minutes_R", "SE"]].tolist() == [1.5, 100]
    clf.transitions_ = None
    with pytest.raises(ValueError, match="smooth=True"):
        call("a.edf", smooth=True)


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


def test_a_folder_of_recordings(model, night, tmp_path, monkeypatch):
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
    leave_out_figures(monkeypatch)
    again = (model, tmp_path / "data", "--out", tmp_path / "out")
    assert "2 of 2 recordings had already been predicted" in predict(*again).output


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*not restored")  # parameters that only matter for fit
def test_adapted_predictions_are_those_of_python(nights, undrawn, tmp_path):
    """With labels in the annotations, and rescaled signals."""
    model = save_ensemble(nights, tmp_path)
    clf = FewLabelsClassifier.load(model)
    stages = [class_texts(clf)[code] for code in nights.datasets[0].metadata["target"]]
    file, further = (tmp_path / f"P{i}_raw.fif" for i in (8, 9))
    scored = mne.Annotations(30.0 * np.arange(len(stages)), 30.0, stages)
    save(nights.datasets[0].raw.copy().set_annotations(scored), file)
    save(nights.datasets[0].raw.copy().set_annotations(mne.Annotations([], [], [])), further)
    arguments = (model, file, further, "--out", tmp_path / "out", "--rescale")
    result = predict(*arguments, "--adapt")
    assert result.exit_code == 0, result.output
    assert f"{stages.count('W')} W" in result.output
    text = f"{further.name}: The model was adapted to the recording, with its unlabeled windows"
    assert text in result.output
    adapted, _ = adapted_to(clf, file, rescale=True)
    written = pd.read_csv(tmp_path / "out" / "P8_raw_predictions.csv")["entropy"]
    expected = adapted.predict_raw(file, rescale=True)["entropy"]
    np.testing.assert_allclose(written, expected, atol=1e-5)
    again = predict(*arguments)  # without adaptation, the results are other results
    assert again.exit_code == 1
    assert "adapt" in again.output


def test_a_network_is_not_adapted(model, tmp_path):
    result = predict(model, "x.edf", "--out", tmp_path / "out", "--adapt")
    assert result.exit_code == 1
    assert "--adapt" in result.output
    assert "--few-labels" in result.output
