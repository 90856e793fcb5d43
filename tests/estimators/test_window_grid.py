"""The windows of a recording for a model, and their average on a grid, against plain loops."""

from __future__ import annotations

from types import SimpleNamespace

import mne
import numpy as np
import pytest

from braindecode_pars.predictions.recording import (
    grid_average,
    prepare_recording,
    usable_starts,
    windows_from,
)
from braindecode_pars.windows.preprocessing import Preprocessing


@pytest.mark.parametrize("overlap", [0.0, 0.3, 0.5, 0.8])
def test_average(overlap):
    rng = np.random.default_rng(0)
    starts = np.union1d(np.arange(0, 48, 10), np.arange(0, 48, round((1 - overlap) * 10)))
    starts = starts[(starts < 22) | (starts >= 40)]  # a gap
    values = rng.random((len(starts), 3))
    found = grid_average(values, starts, 10, 5)
    for row in range(5):
        total, weight = np.zeros(3), 0
        for sample in range(row * 10, row * 10 + 10):
            for start, value in zip(starts, values, strict=True):
                if start <= sample < start + 10:
                    total += value
                    weight += 1
        if weight:
            np.testing.assert_allclose(found[row], total / weight)
        else:
            assert np.isnan(found[row]).all()


@pytest.mark.parametrize(("n_times", "last"), [(749, 250), (750, 500), (751, 500)])
def test_the_last_window_ends_at_most_at_the_end_of_the_recording(n_times, last):
    recording = SimpleNamespace(
        signals=np.zeros((2, n_times)), may_use=lambda starts, length: starts >= 0
    )
    assert usable_starts(recording, 250).tolist() == [*range(0, last + 1, 250)]
    overlapping = usable_starts(recording, 250, overlap=0.6)
    stop = n_times - 250 + 1
    assert overlapping.tolist() == sorted({*range(0, stop, 250), *range(0, stop, 100)})


def test_windows_are_views_of_the_signals_with_the_names_of_the_model():
    info = mne.create_info(["EEG C4-REF", "EEG C3-REF"], 100.0, "eeg")
    samples = np.random.default_rng(0).standard_normal((2, 1000))
    raw = mne.io.RawArray(samples, info, verbose="error")
    raw.set_annotations(mne.Annotations(5, 1, "BAD"))
    model = mne.create_info(["C3", "Oz", "C4"], 100.0, "eeg")["chs"]
    clf = SimpleNamespace(
        sfreq_=100.0, n_times_=250, chs_info_=model, preprocessing_=Preprocessing()
    )
    recording = prepare_recording(raw, "night", clf)
    assert [ch["ch_name"] for ch in recording.chs_info] == ["C3", "C4"]
    assert [each.formula for each in recording.found] == ["EEG C3-REF", "EEG C4-REF"]
    assert recording.missing == ["Oz"]
    np.testing.assert_array_equal(recording.signals, samples[::-1].astype("float32"))
    starts = np.array([0, 200, 300, 400, 550, 600])
    may = recording.may_use(starts, 250)
    assert may.tolist() == [True, True, False, False, False, True]
    windows = windows_from(recording, starts, 250)
    np.testing.assert_array_equal(windows[1], samples[::-1, 200:450].astype("float32"))
    assert windows.sfreq == 100
    assert np.shares_memory(windows.recordings["reader"][0].source, recording.signals)
