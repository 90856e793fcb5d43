"""Channels of a file that are not used are counted by their kind."""

from __future__ import annotations

import mne
import numpy as np

from braindecode_pars.recordings.preparation import (
    channels_left_out,
    count_left_out,
    remember_left_out,
)


def raw_of(names, kinds="eeg") -> mne.io.BaseRaw:
    info = mne.create_info(list(names), 100.0, kinds)
    return mne.io.RawArray(np.zeros((len(names), 500)), info, verbose="error")


def test_channels_are_remembered_through_processing():
    raw = raw_of(["C3", "C4", "X"], ["eeg", "eeg", "eog"])
    remember_left_out(raw, {"ABD": "respiration"})
    remember_left_out(raw, {"Chin": "EMG"})
    copy = raw.copy().pick(["C3", "X"]).resample(50, verbose="error").crop(0, 1)
    expected = {"ABD": "respiration", "Chin": "EMG"}
    assert channels_left_out(copy) == expected
    assert channels_left_out(copy, ["C3"]) == {**expected, "X": "EOG"}


def test_entries_of_others_are_kept():
    raw = raw_of(["C3"])
    raw.info["temp"] = {"theirs": 1}
    remember_left_out(raw, {"Chin": "EMG"})
    assert raw.info["temp"]["theirs"] == 1
    raw.info["temp"] = "no dict"
    assert channels_left_out(raw) == {}


def test_one_line_counts_all_recordings():
    night = {"ECG": "ECG", "E1-M2": "EOG", "ABD": "respiration", "CHEST": "respiration"}
    many = {f"DC{i}": "other" for i in range(6)}
    assert count_left_out([night, night, {}, {**many, "O2": "EEG"}]) == (
        "Channels left out of 3 of 4 recordings: 2 ECG (ECG), 2 EOG (E1-M2), 4 respiration (ABD, "
        "CHEST), 6 other (DC0, DC1, DC2, DC3 and 2 more), 1 EEG that is bad or not chosen (O2)."
    )
    assert count_left_out([{}, {}]) is None
