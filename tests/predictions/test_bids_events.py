"""Predictions as an events file of BIDS."""

from __future__ import annotations

import json

import mne
import numpy as np
import pandas as pd
import pytest

from braindecode_pars import datasets
from braindecode_pars.predictions import to_bids_events

NAME = "sub-01_ses-2_task-sleep_run-1_desc-pars_events.tsv"


def frame(classes=("W", "N3"), labels=("W", None, "N3")):
    values = np.array([[0.7500004, 0.25], [np.nan, np.nan], [0.1, 0.9]])
    columns = {f"probability_{name}": values[:, k] for k, name in enumerate(classes)}
    table = dict(onset=[0.0, 30.0, 60.0], duration=30.0, label=list(labels), **columns)
    return pd.DataFrame({**table, "entropy": [0.56, np.nan, 0.33], "note": "not written"})


def test_rows_columns_and_missing_values(tmp_path):
    file = to_bids_events(frame(), tmp_path / "derivatives" / NAME)
    assert file.read_bytes().decode().splitlines() == [
        "onset\tduration\ttrial_type\tprobability_W\tprobability_N3\tentropy",
        "0.0\t30.0\tW\t0.75\t0.25\t0.56",
        "30.0\t30.0\tn/a\tn/a\tn/a\tn/a",
        "60.0\t30.0\tN3\t0.1\t0.9\t0.33",
    ]
    assert sorted(f.name for f in file.parent.iterdir()) == [file.with_suffix(".json").name, NAME]


def test_every_column_is_described_with_units_and_levels(tmp_path):
    file = to_bids_events(frame(), tmp_path / NAME)
    described = json.loads(file.with_suffix(".json").read_text())
    assert list(described) == list(pd.read_csv(file, sep="\t"))
    assert described["onset"]["Units"] == described["duration"]["Units"] == "s"
    assert described["trial_type"]["Levels"] == {
        "W": "sleep stage W",
        "N3": "sleep stage N3",
    }


def test_names_of_classes_become_names_of_columns(tmp_path):
    predictions = frame(["left fist", "both feet"], ["left fist", None, "both feet"])
    file = to_bids_events(predictions, tmp_path / NAME)
    table = pd.read_csv(file, sep="\t")
    assert list(table)[3:5] == ["probability_left fist", "probability_both feet"]
    levels = json.loads(file.with_suffix(".json").read_text())["trial_type"]["Levels"]
    assert table["trial_type"].dropna().tolist() == list(levels) == ["left fist", "both feet"]


def test_our_reader_of_bids_reads_them(tmp_path):
    samples = 1e-5 * np.random.default_rng(0).normal(size=(1, 9000))
    raw = mne.io.RawArray(samples, mne.create_info(["C3"], 100.0, "eeg"), verbose="error")
    to_bids_events(frame(), tmp_path / "sub-01_task-sleep_events.tsv")
    raw.save(tmp_path / "sub-01_task-sleep_eeg.fif", verbose="error")
    settings = dict(sfreq=100, low=None, high=None, mains=None, verbose=0)
    windows = datasets.folder.load(tmp_path, window_seconds=30, labels=["W", "N3"], **settings)
    starts = windows.get_metadata()["i_start_in_trial"].tolist()
    assert starts == [0, 6000]
    assert [y for _, y, _ in windows] == [0, 1]


def test_existing_files_are_not_overwritten_by_default(tmp_path):
    file = tmp_path / NAME
    file.with_suffix(".json").write_text("of a scorer")
    with pytest.raises(FileExistsError, match=r"_events\.json"):
        to_bids_events(frame(), file)
    assert not file.exists()
    to_bids_events(frame(), file, overwrite=True)
    assert "onset" in file.with_suffix(".json").read_text()


def test_names_end_with_the_suffix_of_events(tmp_path):
    assert to_bids_events(frame(), tmp_path / "events" / "night 1_events.tsv").exists()
    with pytest.raises(ValueError, match=r"_events\.tsv.*sub-01_task-sleep_eeg\.tsv"):
        to_bids_events(frame(), tmp_path / "sub-01_task-sleep_eeg.tsv")
    assert [file.name for file in tmp_path.iterdir()] == ["events"]
