"""Windows of a store: their positions, and which samples are read."""

from __future__ import annotations

import numpy as np
import pytest
from braindecode.datasets import RawDataset

from braindecode_pars.signal_store import SignalStore
from braindecode_pars.windows.door import as_windows
from braindecode_pars.windows.picking import pick_eeg


@pytest.fixture(scope="module")
def store(recordings, tmp_path_factory) -> SignalStore:
    path = tmp_path_factory.mktemp("store")
    return SignalStore.create(path, recordings, dtype="float32", verbose=0)


def test_windows_are_consecutive(store, recordings):
    windows = store.windows(950)  # the last recording is shorter
    assert len(windows) == 3 + 2 + 4
    assert windows.shapes.tolist() == [[2, 950]] * 5 + [[4, 950]] * 4
    assert windows.subjects.tolist() == [1] * 3 + [2] * 2 + ["anna"] * 4
    positions = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (2, 3)]
    for i, (recording, window) in enumerate(positions):
        raw = recordings.datasets[recording].raw
        expected = raw.get_data(picks="eeg")[:4, 950 * window : 950 * (window + 1)]
        np.testing.assert_array_equal(windows[i], expected.astype(np.float32))
    np.testing.assert_array_equal(windows[-1], windows[8])
    for outside in (9, -10):
        with pytest.raises(IndexError):
            windows[outside]


def test_channels_are_known_if_all_recordings_have_the_same(store):
    assert store.windows(100).chs_info == []
    one = store.select([2]).windows(100).chs_info
    assert [ch["ch_name"] for ch in one] == ["C3", "C4"]


def test_windows_longer_than_all_recordings_raise(store):
    with pytest.raises(ValueError, match=r"4001 .* recording-2, has 4000"):
        store.windows(4001)
    with pytest.raises(ValueError, match="n_times"):
        store.windows(0)


def test_stored_channels_are_not_filtered_by_name(make_raw, tmp_path):
    """A depth electrode is stored because of its type, whatever its name."""
    raw = make_raw(0, 2, names=["LOC", "C3"], kinds=["seeg", "eeg"])
    store = SignalStore.create(tmp_path / "store", RawDataset(raw, {}), verbose=0)
    windows = pick_eeg(as_windows(store.windows(100)))
    assert [ch["ch_name"] for ch in windows.chs_info] == ["LOC", "C3"]
