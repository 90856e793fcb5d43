"""Results of recordings: finished, changed, damaged, interrupted, of others."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest

from braindecode_pars.cli import predicting as _prediction_files
from braindecode_pars.cli.predicting import Results, prediction_folder

ROW = dict(windows=3, SE=80.0, SOL=None)
SETTINGS = dict(model="abc", overlap=0.0)


@pytest.fixture
def frame():
    values = np.array([[0.9, 0.1], [np.nan, np.nan], [0.2, 0.8]])
    labels = ["left", None, "right"]
    columns = dict(probability_left=values[:, 0], probability_right=values[:, 1])
    table = pd.DataFrame(dict(onset=[0.0, 4.0, 8.0], duration=4.0, label=labels, **columns))
    table.attrs = dict(recording="a.edf", classes=["left", "right"], findings={})
    return table


@pytest.fixture
def results(tmp_path):
    (tmp_path / "a.edf").write_bytes(b"samples")
    return Results(tmp_path / "a.edf", tmp_path / "out" / "sub" / "a", SETTINGS)


def names(results):
    return sorted(file.name for file in results.path.parent.iterdir())


def changed(results, **changes):
    return Results(**{**vars(results), **changes})


def test_finished_results_are_found_again(results, frame):
    assert results.finished() is None
    results.write(frame, ROW, results.state())
    assert results.finished() == ROW
    assert names(results) == [
        "a_events.json",
        "a_events.tsv",
        "a_hypnodensity.png",
        "a_predictions.csv",
        "a_predictions.json",
    ]
    table = pd.read_csv(results.path.parent / "a_predictions.csv")
    assert table["label"].fillna("").tolist() == ["left", "", "right"]


def test_a_changed_recording_model_or_option_is_not_finished(results, frame):
    results.write(frame, ROW, results.state())
    assert changed(results, settings={**SETTINGS, "model": "def"}).finished() is None
    assert changed(results, settings={**SETTINGS, "overlap": 0.5}).finished() is None
    results.recording.write_bytes(b"others!")
    assert results.finished() is None
    results.write(frame, ROW, results.state())  # replaces its own files
    assert results.finished() == ROW
    (results.recording.with_suffix(".hyp")).touch()  # annotations beside it
    assert results.finished() is None


@pytest.mark.parametrize("name", ["a_predictions.csv", "a_events.tsv", "a_predictions.json"])
@pytest.mark.parametrize("damage", [lambda f: f.unlink(), lambda f: f.write_bytes(b"x")])
def test_damaged_results_are_not_finished(results, frame, name, damage):
    results.write(frame, ROW, results.state())
    if name.endswith("predictions.json"):
        for file in results.path.parent.iterdir():
            if file.name != name:
                file.unlink()
    damage(results.path.parent / name)
    assert results.finished() is None


def test_an_interrupted_write_leaves_nothing(results, frame, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(_prediction_files, "_draw", interrupt)
    with pytest.raises(KeyboardInterrupt):
        results.write(frame, ROW, results.state())
    assert names(results) == []
    assert results.finished() is None


def test_a_moved_recording_is_finished_and_another_one_is_refused(results, frame, tmp_path):
    results.write(frame, ROW, results.state())
    moved = tmp_path / "moved" / "a.edf"
    moved.parent.mkdir()
    os.rename(results.recording, moved)
    assert changed(results, recording=moved).finished() == ROW
    moved.write_bytes(b"of another night")
    with pytest.raises(ValueError, match=r"a\.edf"):
        changed(results, recording=moved).finished()


def test_files_of_others_are_never_replaced(results):
    file = results.path.parent / "a_events.tsv"
    file.parent.mkdir(parents=True)
    file.write_text("of a scorer")
    with pytest.raises(ValueError, match=r"a_events\.tsv"):
        results.finished()


@pytest.mark.parametrize(
    ("name", "events"),
    [
        ("sub-01_ses-1_task-sleep_eeg", "sub-01_ses-1_task-sleep_desc-predicted_events.tsv"),
        ("sub-01_night", "of-sub-01_night_events.tsv"),
        ("sub-01_run-1_task-sleep_eeg", "of-sub-01_run-1_task-sleep_eeg_events.tsv"),
        ("night 1", "night 1_events.tsv"),
    ],
)
def test_events_of_a_bids_recording_are_a_derivative(results, frame, name, events):
    named = changed(results, path=results.path.with_name(name))
    named.write(frame, ROW, named.state())
    assert events in names(named)
    assert named.finished() == ROW


def test_a_folder_with_other_content_is_refused(tmp_path):
    (tmp_path / "thesis.tex").touch()
    refused = pytest.raises(ValueError, match=r"thesis\.tex")
    with refused, prediction_folder(tmp_path):
        pass
    with prediction_folder(tmp_path / "new"):
        (tmp_path / "new" / "summary.csv").touch()
    with prediction_folder(tmp_path / "new"):  # its own, again
        busy = pytest.raises(BlockingIOError)
        with busy, prediction_folder(tmp_path / "new"):
            pass
