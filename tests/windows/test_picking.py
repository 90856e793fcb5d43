"""Which channels are picked in fit, predict and pretraining."""

from __future__ import annotations

import mne
import numpy as np
import pytest
import torch
from braindecode.datasets import BaseConcatDataset
from support.montages import NAMES, recording, windows_of
from torch.utils.data import TensorDataset

from braindecode_pars.windows import SingleChannelWindows
from braindecode_pars.windows.convert import as_windows
from braindecode_pars.windows.picking import pick_as_fitted, pick_eeg, pick_for_fit


def windows(*montages, kinds="eeg", bads=()):
    """One recording of two windows for each montage; channel ``c`` has the constant value of c."""
    values = {name: float(i) for i, name in enumerate(["C3", "C4", "Fz", "Oz", "EOG1", "STI"], 1)}
    parts = []
    for names in montages:
        names = names.split() if isinstance(names, str) else names
        kind = [kinds] * len(names) if isinstance(kinds, str) else kinds
        info = mne.create_info(names, 100.0, kind)
        level = [values.get(name.strip("."), 1.0) for name in names]
        raw = mne.io.RawArray(np.outer(level, np.ones(600)), info, verbose="error")
        raw.info["bads"] = [name for name in names if name in bads]
        parts.append(windows_of(raw, [0, 1], subject=len(parts)))
    return as_windows(BaseConcatDataset(parts))


def levels(picked) -> list[list[float]]:
    """Values of the channels of the first window of each recording."""
    return [picked[i][:, 0].tolist() for i in range(0, len(picked), 2)]


def test_channels_other_than_eeg_are_left_out_by_type_and_name():
    one = windows("STI C3 EOG1", kinds=["stim", "eeg", "eeg"])
    with pytest.warns(UserWarning, match="not EEG .* STI, EOG1"):
        assert levels(pick_eeg(one)) == [[1]]
    with pytest.raises(ValueError, match="EOG1, STI"):
        pick_eeg(windows("EOG1 STI"))


def test_bad_channels_are_left_out():
    one = windows("C3 C4 Fz", bads=["C4"])
    with pytest.warns(UserWarning, match=r"marked as bad .* C4 .*2 of 2 windows"):
        assert levels(pick_eeg(one)) == [[1, 3]]


def test_common_channels_of_different_montages():
    both = windows("Oz C4 C3", "C3 Fz C4", "C4 C3 Fz")
    message = r"\(C4, C3\).* Oz, Fz"
    with pytest.warns(UserWarning, match=message):
        picked = pick_for_fit(both)
    assert levels(picked) == [[2, 1]] * 3
    # A model of any montage needs the same number of channels only.
    assert levels(pick_for_fit(both, any_montage=True)) == [[4, 2, 1], [1, 3, 2], [2, 1, 3]]
    with pytest.warns(UserWarning, match=r"\(C4\)"):
        assert levels(pick_for_fit(windows("C3 C4", "C4"), any_montage=True)) == [[2], [2]]
    with pytest.raises(ValueError, match="C3, C4"):
        pick_for_fit(windows("C3", "C4"))


def test_named_channels_of_any_kind_are_picked():
    both = windows("C3 EOG1 C4", "C4 Fz EOG1 C3")
    picked = pick_for_fit(both, ["EOG1", "C3"])
    assert levels(picked) == [[5, 1], [5, 1]]
    with pytest.raises(ValueError, match=r"Fz .*2 of 4 windows"):
        pick_for_fit(both, ["Fz"])
    with pytest.raises(ValueError, match="C3"):
        pick_for_fit(both, ["C3", "C4", "C3"])
    with pytest.raises(ValueError, match=r"C3 .*channels="):
        pick_for_fit(windows("C3 C4", bads=["C3"]), ["C3"])


def test_channels_that_are_missing_at_predict():
    fitted = pick_for_fit(windows("C3 C4")).chs_info
    assert levels(pick_as_fitted(windows("Fz C4. C3", "C3 C4"), fitted)) == [[1, 2], [1, 2]]
    partly = windows("Fz C4", "C4 C3", bads=["C3"])
    message = "C3 .*4 of 4 windows"
    with pytest.raises(ValueError, match=message):
        pick_as_fitted(partly, fitted)
    with pytest.warns(UserWarning, match=message):
        assert levels(pick_as_fitted(partly, fitted, any_montage=True)) == [[2], [2]]
    with pytest.warns(UserWarning, match="C3, C4"):
        assert levels(pick_as_fitted(windows("Fz Oz"), fitted, any_montage=True)) == [[3, 4]]


def test_windows_without_names_are_taken_as_they_are():
    array = as_windows(np.zeros((3, 2, 50)))
    fitted = pick_for_fit(windows("C3 C4")).chs_info
    assert pick_eeg(array) is pick_for_fit(array) is pick_as_fitted(array, fitted) is array
    # A model that was fitted on them cannot order the channels of recordings.
    assert levels(pick_as_fitted(windows("C4 C3"), None)) == [[2, 1]]
    with pytest.raises(ValueError, match="without channel names"):
        pick_as_fitted(windows("C4 C3", "C3 C4"), None)
    mixed = BaseConcatDataset([windows("C3 C4"), TensorDataset(torch.zeros(2, 2, 300))])
    with pytest.raises(ValueError, match="channel names"):
        pick_for_fit(as_windows(mixed))


def test_a_transform_that_changes_the_rows_is_noticed():
    one = windows("C3 STI C4", kinds=["eeg", "stim", "eeg"])
    one.recordings["reader"][0].source.transform = lambda window: window[:2]
    with pytest.warns(UserWarning, match="STI"):
        picked = pick_eeg(one)
    with pytest.raises(ValueError, match=r"2 rows.* 3 channels"):
        picked[0]


def test_pretraining_draws_eeg_channels_only():
    raw, y = recording(0)
    raw.info["bads"] = ["Cz"]
    raw.rename_channels({"Pz": "EMG_chin"})
    one = windows_of(raw, y)
    with pytest.warns(UserWarning, match="Cz"), pytest.warns(match="EMG_chin"):
        examples = SingleChannelWindows(one)
    expected = {one[3][0][NAMES.index(name)].sum() for name in ("C3", "C4")}
    drawn = {examples[3][0].double().sum().item() for _ in range(30)}
    np.testing.assert_allclose(sorted(drawn), sorted(expected), rtol=1e-3)


def test_another_reference_is_another_signal():
    message = "C3-M2 .*C3-A1"
    fitted = pick_for_fit(windows("C3-A1")).chs_info
    with pytest.warns(UserWarning, match=message):
        pick_as_fitted(windows("C3-M2"), fitted)
    with pytest.warns(UserWarning, match=message) as caught:
        pick_for_fit(windows("C3", "C3-A1", "C3-M2", "C3-AVG"))
    assert len(caught) == 1
    with pytest.warns(UserWarning, match=message):
        pick_for_fit(windows("C3-A1", "C3-M2"), ["C3"])
