"""Checks of the table of predictions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from braindecode_pars.predictions import sleep_statistics, to_annotations, to_bids_events
from braindecode_pars.predictions._table import check_predictions, classes_of


def frame(**changed):
    columns = dict(onset=[0.0, 30.0], duration=30.0, label=["W", None], probability_W=[1.0, np.nan])
    return pd.DataFrame({**columns, **changed})


def test_missing_labels_are_none_and_classes_are_those_with_probabilities():
    rows = check_predictions(frame(label=["W", np.nan]).set_index(pd.Index([7, 9])))
    assert rows["label"].tolist() == ["W", None]
    assert classes_of(frame(probability_R=0.0)) == ["W", "R"]
    assert classes_of(frame().drop(columns="probability_W")) == ["W"]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ([1, 2], TypeError, "predictions are a list"),
        (frame().drop(columns=["onset", "label"]), ValueError, "lack the columns onset, label"),
        (frame().iloc[:0], ValueError, "no rows"),
        (frame(onset=[30.0, 0.0]), ValueError, "chronological order"),
        (frame(duration=31.0), ValueError, "overlap"),
        (frame(duration=0.0), ValueError, "positive durations"),
        (frame(onset=[0.0, np.nan]), ValueError, "must be seconds"),
    ],
)
def test_bad_input(given, error, message, tmp_path):
    with pytest.raises(error, match=message):
        to_annotations(given)
    with pytest.raises(error, match=message):
        to_bids_events(given, tmp_path / "sub-1_task-a_events.tsv")
    if isinstance(given, pd.DataFrame):
        with pytest.raises(error, match=message):
            sleep_statistics(given)
    assert not list(tmp_path.iterdir())
