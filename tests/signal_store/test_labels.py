"""Labelled windows of one recording: gaps, new rates, and labels that cannot be stored."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from braindecode.datasets import EEGWindowsDataset, RawDataset

from braindecode_pars.signal_store.index import labels_of, labels_of_pieces, resampled_labels


def labels(starts, length=10) -> pd.DataFrame:
    start = np.asarray(starts)
    return pd.DataFrame(
        dict(
            i_window_in_trial=range(len(start)),
            i_start_in_trial=start,
            i_stop_in_trial=start + length,
            target=range(len(start)),
        )
    )


def rows(table: pd.DataFrame) -> list[list]:
    return table[["i_start_in_trial", "i_stop_in_trial", "target"]].to_numpy().tolist()


@pytest.fixture
def recording(nights):
    def make(targets):
        one = nights.datasets[0]
        metadata = one.metadata.iloc[: len(targets)].copy()
        metadata["target"] = targets
        return EEGWindowsDataset(one.raw, metadata, {"subject": 1})

    return make


def test_windows_belong_to_the_piece_that_contains_them():
    first, last = labels_of_pieces(labels([0, 20, 35, 50]), [(0, 30), (35, 70)], 10.0)
    assert rows(first) == [[0, 10, 0], [20, 30, 1]]
    assert rows(last) == [[0, 10, 2], [15, 25, 3]]


@pytest.mark.parametrize(
    ("starts", "message"),
    [
        ([0, 61], "window 1 .* 6.1 s to 7.1 s, .* 7 s"),
        ([-1], "window 0 .* -0.1 s to 0.9 s"),
        ([25], "window 0 .* 2.5 s to 3.5 s, .* gap"),
    ],
)
def test_a_window_outside_the_recording_or_across_a_gap_is_named(starts, message):
    with pytest.raises(ValueError, match=message):
        labels_of_pieces(labels(starts), [(0, 30), (35, 70)], 10.0)


def test_windows_keep_their_times_at_another_rate():
    found = resampled_labels(labels([0, 30, 990], 10), 100.0, 125.0, 1250)
    assert rows(found) == [[0, 12, 0], [38, 50, 1], [1238, 1250, 2]]
    same = labels([0])
    assert resampled_labels(same, 100.0, 100.0, 50).equals(same)


def test_labels_of_any_scalar_type(recording):
    for targets in ([0, -1], ["N2", "W"], [0.5, 2.0], [True, False]):
        found = labels_of(recording(np.array(targets)))
        assert found["target"].tolist() == targets
        assert {type(label) for label in found["target"]} == {type(targets[0])}
    transforms = [lambda target: target + 1, lambda target: f"class {target}"]
    assert labels_of(recording([0, 1]), transforms)["target"].tolist() == ["class 1", "class 2"]


def test_recordings_without_labels(recording, nights):
    assert labels_of(recording([-1, -1]))["target"].tolist() == [-1, -1]
    assert labels_of(recording([])) is None
    assert labels_of(RawDataset(nights.datasets[0].raw, {})) is None


@pytest.mark.parametrize("wrong", [None, float("nan"), [1, 2]])
def test_a_label_that_is_no_number_or_text_is_named(recording, wrong):
    with pytest.raises(ValueError, match="window 1"):
        labels_of(recording([0, wrong]))
