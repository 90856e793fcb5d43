"""Predictions as annotations of MNE."""

from __future__ import annotations

import mne
import numpy as np
import pandas as pd

from braindecode_pars.predictions import to_annotations

LABELS = ["W", "W", "N1", None, "N1", "N1", "W"]


def frame(labels=LABELS, onset=None):
    onset = 10.0 * np.arange(len(labels)) if onset is None else onset
    return pd.DataFrame(dict(onset=onset, duration=10.0, label=labels))


def triples(annotations):
    return [(a["onset"], a["duration"], a["description"]) for a in annotations]


def test_adjacent_windows_with_a_label_are_one_annotation():
    expected = [(0, 20, "W"), (20, 10, "N1"), (40, 20, "N1"), (60, 10, "W")]
    assert triples(to_annotations(frame())) == expected
    assert to_annotations(frame()).orig_time is None


def test_one_annotation_for_each_window():
    annotations = triples(to_annotations(frame(), merge=False))
    assert annotations == [(10 * i, 10, label) for i, label in enumerate(LABELS) if label]


def test_windows_that_are_not_adjacent_are_not_merged():
    annotations = triples(to_annotations(frame(["W", "W"], onset=[0.0, 20.0])))
    assert annotations == [(0, 10, "W"), (20, 10, "W")]


def test_times_are_from_the_first_sample_of_a_cropped_recording():
    raw = mne.io.RawArray(np.zeros((1, 900)), mne.create_info(["C3"], 10.0, "eeg"), verbose="error")
    raw = raw.crop(tmin=15).set_annotations(to_annotations(frame()))
    events, _ = mne.events_from_annotations(raw, verbose="error")
    assert (events[:, 0] - raw.first_samp).tolist() == [0, 200, 400, 600]
