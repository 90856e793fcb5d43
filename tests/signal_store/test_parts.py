"""The file that lists the stores of a folder."""

from __future__ import annotations

import json
import os
import shutil
from copy import deepcopy

import pytest
from braindecode.datasets import BaseConcatDataset, RawDataset

from braindecode_pars.signal_store import SignalStore
from braindecode_pars.signal_store.parts import PARTS, is_store


@pytest.fixture
def parts(recordings, tmp_path) -> list[SignalStore]:
    return [
        SignalStore.create(tmp_path / f"part-{i}", recordings, part=(i, 2), verbose=0)
        for i in (1, 2)
    ]


def test_a_joined_store_is_one_small_file(parts, tmp_path):
    store = SignalStore.join(tmp_path / "all", parts)
    assert [file.name for file in store.path.iterdir()] == [PARTS]
    assert is_store(store.path)
    assert is_store(parts[0].path)
    assert not is_store(tmp_path)
    paths = [entry["path"] for entry in json.loads((store.path / PARTS).read_text())["parts"]]
    assert paths == ["../part-1", "../part-2"]


def test_all_folders_can_be_moved_together(parts, tmp_path):
    store = SignalStore.join(tmp_path / "all", parts)
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("all", "part-1", "part-2"):
        shutil.move(tmp_path / name, moved / name)
    assert SignalStore.open(moved / "all").checksum == store.checksum
    linked = tmp_path / "link"
    linked.symlink_to(moved / "all")
    assert SignalStore.open(linked).checksum == store.checksum


def test_relative_paths(parts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = SignalStore.join("all", ["part-1", "part-2"])
    monkeypatch.chdir("/")
    assert SignalStore.open(tmp_path / "all").checksum == store.checksum


def test_a_missing_store_is_named(parts, tmp_path):
    store = SignalStore.join(tmp_path / "all", parts)
    shutil.move(tmp_path / "part-2", tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError, match="part-2"):
        SignalStore.open(store.path)


def test_altered_stores_are_named(parts, others, tmp_path):
    store = SignalStore.join(tmp_path / "all", parts)
    samples = tmp_path / "part-2" / "samples.bin"
    content, times = samples.read_bytes(), samples.stat()
    samples.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    with pytest.raises(ValueError, match=r"recording-2 .*part-2/samples\.bin"):
        SignalStore.open(store.path)
    # With the old time of the file, only verify reads the samples.
    os.utime(samples, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(ValueError, match=r"recording-2 .*part-2/samples\.bin"):
        SignalStore.open(store.path).verify()
    samples.write_bytes(content)
    SignalStore.open(store.path).verify()
    parts[1].append(others, verbose=0)
    with pytest.raises(ValueError, match="part-2"):
        SignalStore.open(store.path)


@pytest.mark.parametrize("what", ["labels", "split"])
def test_other_labels_and_splits_are_named(nights, tmp_path, what):
    """The samples are the same, and their checksum is that of the store."""
    parts = deepcopy(nights).split([[0], [1]])
    folders = [tmp_path / name for name in parts]
    stores = [SignalStore.create(folder, parts[folder.name], verbose=0) for folder in folders]
    pieces = SignalStore.join(tmp_path / "pieces", stores)
    SignalStore.join(tmp_path / "all", [pieces])
    (changed,) = parts["0"].datasets
    if what == "labels":
        changed.y = [*changed.y[:-1], changed.y[-1] + 1]
    else:
        changed.set_description({"split": "test"}, overwrite=True)
    shutil.rmtree(folders[0])
    again = SignalStore.create(folders[0], parts["0"], verbose=0)
    assert again.checksum == stores[0].checksum
    with pytest.raises(ValueError, match="/0 "):
        SignalStore.open(tmp_path / "pieces")
    shutil.rmtree(tmp_path / "pieces")
    SignalStore.join(tmp_path / "pieces", [again, stores[1]])
    with pytest.raises(ValueError, match="pieces"):
        SignalStore.open(tmp_path / "all")


def test_splits_of_a_store_without_labels(make_raw, tmp_path):
    """They count when the stores that it is joined with have labels."""
    given = BaseConcatDataset([RawDataset(make_raw(0), {"subject": 0})])
    store = SignalStore.create(tmp_path / "store", given, verbose=0)
    joined = SignalStore.join(tmp_path / "all", [store]).path
    (entry,) = json.loads((joined / PARTS).read_text())["parts"]
    assert entry["checksum"] == store.checksum
    for split in ("train", "test"):
        given.set_description({"split": [split]}, overwrite=True)
        shutil.rmtree(store.path)
        SignalStore.create(store.path, given, verbose=0)
        with pytest.raises(ValueError, match="store"):
            SignalStore.open(joined)
        joined = SignalStore.join(tmp_path / split, [store.path]).path


def test_an_edited_list_raises(parts, tmp_path):
    store = SignalStore.join(tmp_path / "all", parts)
    file = store.path / PARTS
    text = file.read_text()
    file.write_text(text.replace("part-1", "part-3"))
    with pytest.raises(ValueError, match="checksum"):
        SignalStore.open(store.path)
    file.write_text("{}")
    with pytest.raises(ValueError, match="checksum"):
        SignalStore.open(store.path)


def test_nothing_is_added_or_overwritten(parts, recordings, tmp_path):
    store = SignalStore.join(tmp_path / "all", parts)
    with pytest.raises(ValueError, match="joins"):
        store.append(recordings)
    with pytest.raises(ValueError, match="all"):
        SignalStore.join(tmp_path / "all", parts)
    with pytest.raises(ValueError, match=r"parts\.json"):
        SignalStore.create(tmp_path / "all", recordings)
    with pytest.raises(ValueError, match="part-1"):
        SignalStore.join(parts[0].path, parts)
    assert [file.name for file in store.path.iterdir()] == [PARTS]
