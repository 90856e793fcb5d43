"""Labeled windows of a store: used as the dataset of which the store was made."""

from __future__ import annotations

import pickle

import mne
import numpy as np
import pytest
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset
from support.labeled_stores import check_equal

from braindecode_pars import as_sklearn
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.windows.convert import as_windows


@pytest.fixture(scope="module")
def windows(labeled_store):
    return labeled_store.labeled_windows()


def test_windows_are_those_that_were_stored(nights, windows):
    check_equal(windows, nights)
    given = windows.get_metadata()
    for name, column in nights.get_metadata().items():
        assert given[name].tolist() == column.tolist()


def test_a_recording_that_was_changed_is_read_as_changed(labeled_store, nights):
    windows = labeled_store.labeled_windows()
    windows.datasets[0].raw.load_data().apply_function(lambda x: 2 * x)
    windows.datasets[1].raw.info["bads"] = ["C4"]
    windows.datasets[2].transform = np.negative
    windows.set_target("subject")
    read = as_windows(windows)
    np.testing.assert_allclose(read[0], 2 * nights[0][0], rtol=1e-6)
    assert read.montage_of(30).bads == {"C4"}
    np.testing.assert_array_equal(read[50], -nights[50][0])
    assert read.y[[0, 30, 50, 80]].tolist() == [1, 2, 3, 4]


def _project(part):
    part.raw.set_eeg_reference("average", projection=True, verbose="error")
    part.raw.apply_proj(verbose="error")


def _replace(part):
    part.raw = mne.io.RawArray(-part.raw.get_data(), part.raw.info, verbose="error")


@pytest.mark.parametrize(
    "change",
    [
        _project,
        lambda part: part.raw.set_montage("standard_1020", verbose="error"),
        lambda part: part.raw.set_channel_types({"C3": "eog"}, verbose="error"),
        _replace,
        lambda part: part.raw.reorder_channels(part.raw.ch_names[::-1]),
        lambda part: part.raw.crop(1.0),
    ],
    ids=["projection", "montage", "types", "array", "order", "crop"],
)
def test_each_change_of_the_raw_counts(labeled_store, change):
    windows = labeled_store.labeled_windows()
    part = windows.datasets[0]
    part.raw.get_data(stop=10)
    assert as_windows(part).shapes is not None
    change(part)
    copied = pickle.loads(pickle.dumps(windows))
    for given in (windows, copied):
        one = given.datasets[0]
        assert as_windows(given).shapes is None
        start, stop = one.crop_inds[2, 1:]
        np.testing.assert_array_equal(one[2][0], one.raw[:, start:stop][0].astype("float32"))


def test_a_pickle_has_no_samples_and_knows_its_store_in_another_folder(
    nights, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    store = SignalStore.create("store", nights, verbose=0)
    windows = store.labeled_windows()
    content = pickle.dumps(as_sklearn(windows)[0])
    assert len(content) < store.n_bytes / 20
    monkeypatch.chdir("/")
    copied = pickle.loads(content)
    stores = {id(reader.crops.__self__) for reader in copied.recordings["reader"]}
    assert len(stores) == 1  # one map for all recordings
    assert copied.shapes is not None
    np.testing.assert_array_equal(copied[50], windows[50][0])


def _with(windows, splits):
    return BaseConcatDataset(
        [
            EEGWindowsDataset(one.raw, one.metadata, {**dict(one.description), "split": split})
            for one, split in zip(windows.datasets, splits, strict=True)
        ]
    )


def test_splits_of_a_store_and_pretraining_without_held_out_subjects(nights, tmp_path, caplog):
    splits = ["train", "valid", "train", "test"]
    store = SignalStore.create(tmp_path / "store", _with(nights, splits), verbose=0)
    parts = store.labeled_windows().split("split")
    assert {name: len(part) for name, part in parts.items()} == dict(train=48, valid=24, test=24)
    view = store.select([3]).labeled_windows()
    assert view.description["subject"].tolist() == [3]
    np.testing.assert_array_equal(view[5][0], store.labeled_windows()[48 + 5][0])
    assert store.without_held_out().subjects == [1, 3]
    assert "2 of 4 recordings" in caplog.text
    assert store.select([1]).without_held_out().subjects == [1]
    with pytest.raises(ValueError, match="validation and test"):
        store.select([4]).without_held_out()
    # One held-out recording is enough, in any spelling of the subject.
    twice = _with(nights, splits)
    twice.datasets[0].set_description({"subject": "004"}, overwrite=True)
    twice = SignalStore.create(tmp_path / "twice", twice, verbose=0)
    assert twice.without_held_out().subjects == [3]
