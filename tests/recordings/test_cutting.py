"""From a recording to windows."""

from __future__ import annotations

import mne
import numpy as np
import pytest

from braindecode_pars.recordings.cutting import event_windows, fixed_windows


def recording(signals, sfreq=250.0, names=None):
    signals = np.atleast_2d(signals)
    names = names or [f"E{i}" for i in range(len(signals))]
    return mne.io.RawArray(signals, mne.create_info(names, sfreq, "eeg"), verbose="error")


def test_fixed_windows_drop_an_incomplete_window():
    raw = recording(np.arange(1000.0), 100.0)
    windows = fixed_windows(raw, 3.0, target=lambda start, stop: (start + stop).astype(int))
    assert windows.metadata["i_start_in_trial"].tolist() == [0, 300, 600]
    assert windows.metadata["target"].tolist() == [3, 9, 15]
    assert windows[1][0][0, 0] == 300
    assert fixed_windows(raw, 10.1) is None
    half = fixed_windows(raw, 3.0, stride_seconds=1.5)
    assert half.metadata["i_start_in_trial"].tolist() == [0, 150, 300, 450, 600]
    with pytest.raises(ValueError, match="stride_seconds must be positive, got 0"):
        fixed_windows(raw, 3.0, stride_seconds=0)


def test_event_windows_follow_the_annotations():
    raw = recording(np.arange(10_000.0), 100.0)
    raw.set_annotations(
        mne.Annotations(
            onset=[0, 30, 45, 60, 95], duration=[30, 9, 1, 30, 5], description=list("WRW?W")
        )
    )
    windows = event_windows(raw, {"W": 0, "R": 1}, 4.0)
    # Seven windows in 30 s of W, two in 9 s of R, one in the last 5 s of W. One second of W is too
    # short, and "?" is not in the mapping.
    assert windows.metadata["target"].tolist() == [0] * 7 + [1] * 2 + [0]
    assert windows.metadata["i_start_in_trial"].tolist()[-3:] == [3000, 3400, 9500]
    assert event_windows(raw, {"N3": 0}, 4.0) is None
    assert event_windows(raw, {"W": 0}, 40.0) is None
