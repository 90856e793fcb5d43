"""Datasets that braindecode wrote in Zarr format, read and written without a network."""

from __future__ import annotations

import pickle
import shutil
import socket
import sys
from dataclasses import replace

import numpy as np
import pytest
from braindecode.datasets import BaseConcatDataset, RawDataset
from support.labeled_stores import check_equal

from braindecode_pars import datasets
from braindecode_pars.recordings.braindecode_zarr import read_zarr, write_zarr
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.windows.convert import as_windows
from braindecode_pars.windows.preprocessing import Preprocessing

pytest.importorskip("zarr", reason="requires the extra zarr")


@pytest.fixture(autouse=True)
def without_network(monkeypatch):
    def refuse(*args):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture(scope="module")
def nights():
    """Three recordings with positions and further columns in the descriptions."""
    made = datasets.simulated.sleep(n_subjects=3, hours=0.04, n_chans=2, sfreq=100)
    for number, night in enumerate(made.datasets):
        night.set_description(dict(subject=f"P0{number}", age=30.5 + number), overwrite=True)
        night.raw.set_montage("standard_1020", verbose="error")
    return made


@pytest.fixture(scope="module")
def store(nights, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores") / "store"
    return SignalStore.create(folder, nights, dtype="float32", low=0.5, mains=30, verbose=0)


@pytest.fixture(scope="module")
def written(store, tmp_path_factory):
    """Folder of a dataset that a store wrote."""
    folder = tmp_path_factory.mktemp("hub") / "sourcedata" / "dataset.zarr"
    store.to_zarr(folder)
    return folder


def test_a_store_is_restored_from_the_dataset_that_it_wrote(store, written, tmp_path):
    restored = SignalStore.create(tmp_path / "store", written, dtype="float32", verbose=0)
    assert (restored.sfreq, restored.subjects) == (store.sfreq, store.subjects)
    check_equal(restored.labeled_windows(), store.labeled_windows())
    for signal in range(len(store)):
        crops = [s.crops([signal], [0], 14_000) for s in (restored, store)]
        np.testing.assert_array_equal(*crops)
    assert store.preprocessing.reference == "as recorded"
    assert restored.preprocessing == Preprocessing(sfreq=100.0)  # unknown, and not "none"


def test_the_dataset_is_that_of_braindecode(store, written):
    """Read by braindecode alone, with the same windows and metadata."""
    dataset = BaseConcatDataset._load_from_zarr_inline(written, preload=True)
    check_equal(dataset, store.labeled_windows())
    expected = store.labeled_windows().get_metadata()
    assert dataset.get_metadata().to_dict("list") == expected.to_dict("list")


def test_the_windows_of_a_folder_are_read_as_labeled_windows(store, written, capsys):
    windows = datasets.load(written)
    check_equal(windows, store.labeled_windows())
    read, expected = as_windows(windows), as_windows(store.labeled_windows())
    assert read.y.tolist() == expected.y.tolist()
    assert read.recordings["preprocessing"][0].reference is None
    assert capsys.readouterr().out == ""


def test_a_store_without_labels_writes_recordings(nights, tmp_path):
    raws = BaseConcatDataset(
        [RawDataset(night.raw, night.description) for night in nights.datasets]
    )
    first = SignalStore.create(tmp_path / "first", raws, dtype="float32", verbose=0)
    first.to_zarr(tmp_path / "dataset.zarr")
    again = SignalStore.create(tmp_path / "again", tmp_path / "dataset.zarr", dtype="float32")
    assert again.n_labeled_windows == 0
    pairs = zip(again._recordings, first._recordings, strict=True)
    for recording, expected in pairs:
        known = dict(source=recording.source, preprocessing=recording.preprocessing)
        assert recording == replace(expected, **known)


def test_the_samples_of_a_replaced_dataset_are_read(nights, tmp_path):
    """braindecode reuses an uncompressed copy that it wrote next to the dataset."""
    folder = tmp_path / "data" / "dataset.zarr"
    for number in (0, 1):
        night = BaseConcatDataset([nights.datasets[number]])
        expected = SignalStore.create(tmp_path / f"{number}", night, dtype="float32", verbose=0)
        expected.to_zarr(folder)
        part = read_zarr(folder).datasets[0]
        np.testing.assert_array_equal(part[0][0], expected.labeled_windows()[0][0])
        # A recording without its dataset can be passed to other processes.
        assert pickle.loads(pickle.dumps(part))[0][0].tolist() == part[0][0].tolist()
        assert [path.name for path in folder.parent.iterdir()] == ["dataset.zarr"]
        shutil.rmtree(folder)


def test_an_existing_folder_is_not_replaced_and_a_failed_call_leaves_nothing(
    store, written, tmp_path, monkeypatch
):
    with pytest.raises(FileExistsError, match=r"dataset\.zarr"):
        store.to_zarr(written)
    save = BaseConcatDataset._convert_to_zarr_inline

    def fail(self, path, **options):
        save(self, path, **options)
        raise OSError("no space left")

    monkeypatch.setattr(BaseConcatDataset, "_convert_to_zarr_inline", fail)
    with pytest.raises(OSError, match="space"):
        store.to_zarr(tmp_path / "dataset.zarr")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("label", ["1", "NA", "1e3"])
def test_labels_that_would_be_read_as_another_value_are_refused(store, label, tmp_path):
    windows = store.labeled_windows()
    windows.datasets[1].metadata["target"] = [label] * 5
    with pytest.raises(ValueError, match="class names"):
        write_zarr(windows, tmp_path / "dataset.zarr")
    names_of_labels = ["N2", "None of both", "left\thand", "R", "1 or 2"]
    for part in windows.datasets:
        part.metadata["target"] = names_of_labels
    write_zarr(windows, tmp_path / "dataset.zarr")
    assert read_zarr(tmp_path / "dataset.zarr").datasets[1].y == names_of_labels


def test_the_error_without_zarr_names_the_extra(written, monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ImportError, match=r"braindecode_pars\[zarr\]"):
        read_zarr(written)
