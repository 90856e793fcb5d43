"""Checks of the table of predictions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from braindecode_pars.predictions.night import (
    check_predictions,
    classes_of,
    sleep_statistics,
    to_annotations,
    to_bids_events,
)


def frame(**changed):
    columns = dict(onset=[0.0, 30.0], duration=30.0, label=["W", None], probability_W=[1.0, np.nan])
    return pd.DataFrame({**columns, **changed})


def test_missing_labels_are_none_and_classes_are_those_with_probabilities():
    rows = check_predictions(frame(label=["W", np.nan]).set_index(pd.Index([7, 9])))
    assert rows["label"].tolist() == ["W", None]
    assert classes_of(frame(probability_R=0.0)) == ["W", "R"]
    assert classes_of(frame().drop(columns="probability_W")) == ["W"]


@pytest.mark.parametrize("labels", [["0", None, "2"], ["0.0", None, "2.0"]])
def test_labels_that_are_numbers_survive_a_csv_file(labels, tmp_path):
    night = dict(onset=[0.0, 30.0, 60.0], duration=30.0, label=labels)
    end = ".0" if labels[0] == "0.0" else ""
    columns = {f"probability_{k}{end}": 1 / 6 for k in range(6)}
    pd.DataFrame(night | columns).to_csv(tmp_path / "night.csv", index=False)
    back = pd.read_csv(tmp_path / "night.csv")
    assert check_predictions(back)["label"].tolist() == labels
    assert to_annotations(back, merge=False).description.tolist() == list(filter(None, labels))
    events = to_bids_events(back, tmp_path / "night_events.tsv").read_text().splitlines()
    assert [row.split("\t")[2] for row in events[1:]] == [label or "n/a" for label in labels]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (frame().drop(columns=["onset", "label"]), "onset, label"),
        (frame(onset=[30.0, 0.0]), "sorted"),
        (frame(duration=31.0), "overlap"),
        (frame(duration=0.0), "duration"),
        (frame(onset=[0.0, np.nan]), "onset"),
    ],
)
def test_bad_input(table, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        to_annotations(table)
    with pytest.raises(ValueError, match=message):
        to_bids_events(table, tmp_path / "sub-1_task-a_events.tsv")
    with pytest.raises(ValueError, match=message):
        sleep_statistics(table)
    assert not list(tmp_path.iterdir())
