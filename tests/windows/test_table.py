"""The table of windows: rows, columns, montages, and batches that are read in one call."""

from __future__ import annotations

import mne
import numpy as np
import pytest
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset
from torch.utils.data import ConcatDataset, Subset

from braindecode_pars.signal_store import SignalStore
from braindecode_pars.windows.convert import as_windows, windows_of
from braindecode_pars.windows.examples import Examples
from braindecode_pars.windows.picking import pick_for_fit
from braindecode_pars.windows.table import Montage, SignalReader

SIGNALS = np.arange(6 * 50, dtype=np.float32).reshape(6, 50)


def crops(signals, starts, n_times):
    return np.stack([SIGNALS[i, j : j + n_times] for i, j in zip(signals, starts, strict=True)])


def chs(*names: str) -> list[dict]:
    return mne.create_info(list(names), 100.0, "eeg")["chs"]


def test_rows_are_selected_as_those_of_an_array(nights):
    X = as_windows(nights)
    for key in (slice(3, 40, 9), np.arange(96) % 7 == 2, [5, -1], (np.array([8, 2]), ...)):
        chosen = np.arange(96)[key[0] if isinstance(key, tuple) else key]
        part = X[key]
        assert part.shape == (len(chosen), 3, 3000)
        assert part.table.index.tolist() == chosen.tolist()
        np.testing.assert_array_equal(part[-1], nights[int(chosen[-1])][0])
    np.testing.assert_array_equal(X[np.int64(-1)], nights[95][0])
    assert np.asarray(X[:2]).shape == (2, 3, 3000)
    with pytest.raises(IndexError):
        X[96]
    assert len(list(X[90:])) == 6


@pytest.mark.parametrize("y", [["a", "bc"], [True, False], [1, "a"], ["a", None]])
def test_labels_keep_their_type(y):
    """Tables of pandas change text, and NumPy changes mixed labels; classes must not change."""
    expected = np.array(y) if len({type(label) for label in y}) == 1 else np.array(y, object)
    labels = as_windows(np.zeros((2, 1, 5)), y).take([1, 0]).y
    assert labels.dtype == expected.dtype
    assert labels.tolist() == expected[::-1].tolist()


def test_subjects_divide_a_recording():
    X = as_windows(np.arange(5.0).reshape(5, 1, 1), groups=["b", "a", "b", "a", "a"])
    assert X.recordings["subject"].tolist() == ["b", "a"]
    assert X.table["recording"].tolist() == [0, 1, 0, 1, 1]
    assert X[np.array([False, True, True, False, False])].groups.tolist() == ["a", "b"]
    # A window of an unknown subject may be of any subject.
    X = as_windows(np.zeros((3, 1, 5))).with_subjects(np.array(["b", None, "a"], object))
    assert X.subjects.tolist() == ["b", None, "a"]
    assert X.groups is None
    assert X[[0, 2]].groups.tolist() == ["b", "a"]


def test_a_batch_of_several_recordings_is_read_in_one_call():
    calls = []

    def counted(*arguments):
        calls.append(arguments)
        return crops(*arguments)

    montage = Montage.of(chs("C3", "C4", "Fz"))
    rows = [dict(reader=SignalReader(counted), base=b, channels=montage) for b in (0, 3)]
    start = np.array([0, 10, 5])
    X = windows_of(rows, recording=np.array([0, 0, 1]), item=start, start=start, stop=start + 7)
    assert X.check() == (3, 7)
    picked = X.with_montages([X.montages[0].pick([2, 0])])
    expected = [SIGNALS[[5, 3], 5:12], SIGNALS[[2, 0], 10:17], SIGNALS[[5, 3], 5:12]]
    assert calls == []
    np.testing.assert_array_equal(picked.read([2, 1, 2]), expected)
    assert len(calls) == 1
    drawn = picked.read_crops(np.array([2, 0]), np.array([1, 0]), np.array([1, 2]), 3)
    np.testing.assert_array_equal(drawn, [SIGNALS[3, 6:9], SIGNALS[2, 2:5]])
    assert len(calls) == 2


@pytest.mark.parametrize("rows", [None, [1, 0]])
def test_batches_are_the_items_of_a_dataset(labeled_store, rows):
    dataset = labeled_store.labeled_windows()
    chosen = Subset(ConcatDataset([dataset, dataset]), [90, 3, 140, 3])
    windows = as_windows(chosen)
    if rows is not None:
        windows = windows.with_montages([windows.montages[0].pick(rows)])
    batch = Examples(windows).__getitems__([3, 0, 2])
    for (x, y), i in zip(batch, [3, 0, 2], strict=True):
        assert (x.dtype, y) == (np.float32, chosen[i][1])
        np.testing.assert_array_equal(x, windows[i])
        np.testing.assert_array_equal(x, chosen[i][0] if rows is None else chosen[i][0][rows])


def test_a_batch_of_several_montages_is_read_by_channel_names(nights, tmp_path):
    one, other = nights.datasets[:2]
    reordered = other.raw.copy().reorder_channels(other.raw.ch_names[::-1])
    recordings = [one, EEGWindowsDataset(reordered, other.metadata, {"subject": 2})]
    store = SignalStore.create(
        tmp_path / "store", BaseConcatDataset(recordings), dtype="float32", verbose=0
    )
    windows = pick_for_fit(as_windows(store.labeled_windows()))
    for x, i in zip(windows.read([30, 2, 25]), [30, 2, 25], strict=True):
        np.testing.assert_array_equal(x, nights[i][0])


def test_a_store_whose_windows_were_changed_is_read_through_braindecode(labeled_store, nights):
    assert as_windows(labeled_store.labeled_windows()).shapes is not None
    assert as_windows(nights).shapes is None
    changed = labeled_store.labeled_windows()
    changed.datasets[0].transform = np.negative
    windows = as_windows(changed)
    assert windows.shapes is None
    np.testing.assert_array_equal(windows[3], changed[3][0])
    np.testing.assert_array_equal(windows[30], changed[30][0])


def test_picks_of_picks_are_rows_of_the_source():
    montage = Montage.of(chs("C3", "C4", "Fz", "Oz"))
    picked = montage.pick([3, 1, 0]).pick([2, 0])
    assert picked.names == ["C3", "Oz"]
    assert picked.rows.tolist() == [0, 3]
    assert montage.pick([0, 1, 2, 3]).rows is None
    assert montage.pick([0], chs("c3.")).names == ["c3."]
