"""The signals and windows of a recording for a model."""

from __future__ import annotations

import mne
import numpy as np

from braindecode_pars.estimators.predict_raw import prepare_recording
from braindecode_pars.recordings.preprocessing import Preprocessing


def test_windows_are_views_of_the_signals_with_the_names_of_the_model():
    info = mne.create_info(["EEG C4-REF", "EEG C3-REF"], 100.0, "eeg")
    samples = np.random.default_rng(0).standard_normal((2, 1000))
    raw = mne.io.RawArray(samples, info, verbose="error")
    raw.set_annotations(mne.Annotations(5, 1, "BAD"))
    model = mne.create_info(["C3", "Oz", "C4"], 100.0, "eeg")["chs"]
    recording = prepare_recording(raw, "night", 100.0, 250, model, Preprocessing())
    assert [ch["ch_name"] for ch in recording.chs_info] == ["C3", "C4"]
    assert [d and d.formula for d in recording.derivations] == ["EEG C3-REF", None, "EEG C4-REF"]
    np.testing.assert_array_equal(recording.signals, samples[::-1].astype("float32"))
    starts = np.array([0, 200, 300, 400, 550, 600])
    may = recording.may_predict(starts, 250)
    assert may.tolist() == [True, True, False, False, False, True]
    windows = recording.windows(starts, 250)
    np.testing.assert_array_equal(windows[1], samples[::-1, 200:450].astype("float32"))
    assert windows.sfreq == 100
    assert np.shares_memory(windows.recordings["reader"][0].source, recording.signals)
