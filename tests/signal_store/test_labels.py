"""Labelled windows of one recording: gaps, new rates, and labels that cannot be stored."""

from __future__ import annotations

import numpy as np
import pytest
from braindecode.datasets import EEGWindowsDataset, RawDataset

from braindecode_pars.signal_store.index import Labels, labels_of


def labels(starts, length=10) -> Labels:
    start = np.asarray(starts)
    return Labels(start, start + length, tuple(range(len(start))), np.arange(len(start)))


@pytest.fixture
def recording(nights):
    def make(targets):
        one = nights.datasets[0]
        metadata = one.metadata.iloc[: len(targets)].copy()
        metadata["target"] = targets
        return EEGWindowsDataset(one.raw, metadata, {"subject": 1})

    return make


def test_windows_belong_to_the_piece_that_contains_them():
    first, last = labels([0, 20, 35, 50]).pieces([(0, 30), (35, 70)], 10.0)
    assert (first.start.tolist(), first.stop.tolist(), first.label) == ([0, 20], [10, 30], (0, 1))
    assert (last.start.tolist(), last.stop.tolist(), last.label) == ([0, 15], [10, 25], (2, 3))


@pytest.mark.parametrize(
    ("starts", "message"),
    [
        ([0, 61], r"window 1 \(label 1\), from 6.1 s to 7.1 s, is outside .* which has 7 s"),
        ([-1], r"window 0 \(label 0\), from -0.1 s to 0.9 s, is outside the recording"),
        ([25], r"window 0 \(label 0\), from 2.5 s to 3.5 s, contains a gap"),
    ],
)
def test_a_window_outside_the_recording_or_across_a_gap_is_named(starts, message):
    with pytest.raises(ValueError, match=message):
        labels(starts).pieces([(0, 30), (35, 70)], 10.0)


def test_windows_keep_their_times_at_another_rate():
    found = labels([0, 30, 990], 10).resampled(100.0, 125.0, 1250)
    assert found.start.tolist() == [0, 38, 1238]
    assert (found.stop - found.start).tolist() == [12] * 3
    assert labels([0]).resampled(100.0, 100.0, 50).start.tolist() == [0]


def test_labels_of_any_scalar_type(recording):
    for targets in ([0, -1], ["N2", "W"], [0.5, 2.0], [True, False]):
        found = labels_of(recording(np.array(targets)))
        assert list(found.label) == targets
        assert {type(label) for label in found.label} == {type(targets[0])}
    transforms = [lambda target: target + 1, lambda target: f"class {target}"]
    assert labels_of(recording([0, 1]), transforms).label == ("class 1", "class 2")


def test_recordings_without_labels(recording, nights):
    unlabelled = labels_of(recording([-1, -1]))
    assert unlabelled.label == (-1, -1)
    assert not unlabelled.any_labelled
    assert labels_of(recording([-1, 0])).any_labelled
    assert labels_of(recording([])) is None
    assert labels_of(RawDataset(nights.datasets[0].raw, {})) is None


@pytest.mark.parametrize("wrong", [None, float("nan"), [1, 2]])
def test_a_label_that_is_no_number_or_text_is_named(recording, wrong):
    with pytest.raises(ValueError, match=r"label of its window 1 is .*numbers or texts, and -1"):
        labels_of(recording([0, wrong]))
