"""Windows of a store: a batch is one call, and joins and subsets keep their positions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset
from torch.utils.data import ConcatDataset, Subset, default_collate

from braindecode_pars.signal_store import SignalStore
from braindecode_pars.windows.door import StoredSignals, WindowLoader, describe
from braindecode_pars.windows.picking import pick_for_fit
from braindecode_pars.windows.table import as_window_set

SIGNALS = np.arange(6 * 50, dtype=np.float32).reshape(6, 50)


def crops(signals, starts, n_times):
    return np.stack([SIGNALS[i, j : j + n_times] for i, j in zip(signals, starts, strict=True)])


def test_a_batch_is_read_in_one_call():
    calls = []

    def counted(*arguments):
        calls.append(arguments)
        return crops(*arguments)

    stored = StoredSignals(counted, np.array([0, 0, 3]), np.array([0, 10, 5]))
    batch = stored.read(np.array([2, 1, 2]), np.array([2, 0]), 7)
    expected = [SIGNALS[[5, 3], 5:12], SIGNALS[[2, 0], 10:17], SIGNALS[[5, 3], 5:12]]
    np.testing.assert_array_equal(batch, expected)
    assert len(calls) == 1
    np.testing.assert_array_equal(stored.take([2]).view(0, (3, 7))[1, 2:4], SIGNALS[4, 7:9])


def test_windows_of_several_stores_are_not_joined():
    one = StoredSignals(crops, np.array([0]), np.array([3]))
    joined = StoredSignals.join([one, StoredSignals(crops, np.array([3]), np.array([4]))])
    assert joined.first_signal.tolist() == [0, 3]
    other = StoredSignals(lambda *arguments: crops(*arguments), np.array([0]), np.array([3]))
    assert StoredSignals.join([one, other]) is None
    assert StoredSignals.join([one, None]) is None
    assert StoredSignals.join([]) is None


@pytest.mark.parametrize("rows", [None, [1, 0]])
def test_batches_of_a_window_set_are_its_items(labelled_store, rows):
    windows = labelled_store.labelled_windows()
    windows = as_window_set(Subset(ConcatDataset([windows, windows]), [90, 3, 140, 3]))
    if rows is not None:
        windows = windows.with_montages([windows.channels.montages[0].pick(rows)])
    assert windows.is_stored
    items = windows.__getitems__([3, 0, 2])
    for (x, y), i in zip(items, [3, 0, 2], strict=True):
        assert (x.dtype, y) == (np.float32, windows[i][1])
        np.testing.assert_array_equal(x, windows[i][0])
        whole = windows.source[int(windows.indices[i])][0]
        np.testing.assert_array_equal(x, whole if rows is None else whole[rows])
        np.testing.assert_array_equal(windows.lazy_window(i)[:, 5:9], x[:, 5:9])


def test_a_batch_of_several_montages_is_read_by_channel_names(nights, tmp_path):
    one, other = nights.datasets[:2]
    reordered = other.raw.copy().reorder_channels(other.raw.ch_names[::-1])
    given = [one, EEGWindowsDataset(reordered, other.metadata, {"subject": 2})]
    store = SignalStore.create(
        tmp_path / "store", BaseConcatDataset(given), dtype="float32", verbose=0
    )
    windows = pick_for_fit(as_window_set(store.labelled_windows()))
    for (x, _), i in zip(windows.__getitems__([30, 2, 25]), [30, 2, 25], strict=True):
        np.testing.assert_array_equal(x, nights[i][0])


def test_a_batch_that_was_read_as_one_array_is_not_copied(labelled_store, nights):
    """Its tensors are those of torch's own collate function."""
    stored, others = map(as_window_set, (labelled_store.labelled_windows(), nights))
    for windows in (stored, others):
        (found,) = WindowLoader(windows, batch_sampler=[[8, 2, 40]])
        expected = default_collate([windows[i] for i in (8, 2, 40)])
        assert [x.dtype for x in found] == [x.dtype for x in expected]
        assert all(torch.equal(x, y) for x, y in zip(found, expected, strict=True))
    batch = stored.__getitems__([8, 2, 40])
    found = WindowLoader(stored).collate_fn(batch)
    assert found[0].data_ptr() == batch.windows.ctypes.data


def test_other_sources_are_not_of_a_store(nights):
    assert describe(nights).stored is None
    windows = as_window_set(nights)
    assert not windows.is_stored
    np.testing.assert_array_equal(windows.__getitems__([5, 1])[1][0], windows[1][0])
