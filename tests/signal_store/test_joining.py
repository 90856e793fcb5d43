"""Stores of parts are joined and read like one store, or refused."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import dask
import numpy as np
import pandas as pd
import pytest
from braindecode.datasets import BaseConcatDataset, RawDataset
from distributed import Client, LocalCluster, wait
from support import own_recipe
from support.small_runs import import_in_advance

from braindecode_pars.signal_store import SignalStore
from braindecode_pars.signal_store.index import Index
from braindecode_pars.signal_store.parts import joined_corpora


def dataset(*raws) -> BaseConcatDataset:
    return BaseConcatDataset([RawDataset(raw, {"subject": i}) for i, raw in enumerate(raws)])


def create(path: Path, recordings, **arguments) -> SignalStore:
    return SignalStore.create(path, recordings, verbose=0, **arguments)


def create_parts(folder: Path, recordings, n_parts: int, **arguments) -> list[SignalStore]:
    return [
        create(folder / f"part-{i}", recordings, part=(i, n_parts), **arguments)
        for i in range(1, n_parts + 1)
    ]


def assert_same(found: SignalStore, expected: SignalStore) -> None:
    """Same table, crops, windows and identity."""
    pd.testing.assert_frame_equal(found.recordings, expected.recordings)
    for name in ("sfreq", "dtype", "shares", "skipped", "subjects", "n_bytes", "checksum"):
        assert getattr(found, name) == getattr(expected, name), name
    signals = np.random.default_rng(0).integers(len(expected), size=200)
    batches = [store.batch(signals, 150, np.random.default_rng(1)) for store in (found, expected)]
    np.testing.assert_array_equal(*batches)
    windows = [store.windows(300) for store in (found, expected)]
    assert len(windows[0]) == len(windows[1])
    for one, other in zip(*windows, strict=True):
        np.testing.assert_array_equal(one, other)
    found.verify()


@pytest.mark.parametrize("dtype", ["int16", "float16", "float32"])
def test_joined_parts_are_like_one_store(recordings, tmp_path, dtype):
    whole = create(tmp_path / "whole", recordings, dtype=dtype)
    parts = create_parts(tmp_path, recordings, 3, dtype=dtype)
    joined = SignalStore.join(tmp_path / "all", [parts[0].path, str(parts[1].path), parts[2]])
    assert_same(joined, whole)
    assert_same(SignalStore.open(tmp_path / "all"), whole)
    assert_same(joined.select([1, "anna"]), whole.select([1, "anna"]))
    pieces = SignalStore.join(tmp_path / "pieces", parts)
    assert_same(SignalStore.join(tmp_path / "nested", [pieces]), whole)


def test_parts_of_a_folder_of_files(written, tmp_path):
    root, _ = written
    whole = create(tmp_path / "whole", root)
    assert_same(SignalStore.join(tmp_path / "all", create_parts(tmp_path, root, 4)), whole)


def test_parts_are_joined_in_their_order(recordings, tmp_path):
    """The shell lists part-10 before part-2."""
    parts = create_parts(tmp_path, recordings, 4)
    whole = create(tmp_path / "whole", recordings)
    joined = SignalStore.join(tmp_path / "all", [parts[i] for i in (0, 3, 1, 2)])
    assert joined.checksum == whole.checksum


@pytest.mark.filterwarnings("ignore:1 of . recordings were skipped:UserWarning")
def test_recordings_of_datasets_are_numbered_on(make_raw, tmp_path):
    """Also those that were skipped, or are in pieces between gaps."""
    raws = [make_raw(i, seconds=9) for i in range(5)]
    raws[1].annotations.append(4, 0.5, "BAD_ACQ_SKIP")
    raws[2]._data[0, 7] = np.nan
    whole = create(tmp_path / "whole", dataset(*raws))
    second = dataset(*raws[3:])
    for i, part in enumerate(second.datasets, 3):
        part.set_description({"subject": i}, overwrite=True)
    parts = [create(tmp_path / "a", dataset(*raws[:3])), create(tmp_path / "b", second)]
    names = ["recording-0", "recording-1#1", "recording-1#2", "recording-3", "recording-4"]
    joined = SignalStore.join(tmp_path / "all", parts)
    assert joined.recordings["name"].tolist() == names
    assert_same(joined, whole)


def test_labels_of_parts(nights, make_raw, tmp_path):
    """Also of stores whose recordings are numbered on."""
    whole = create(tmp_path / "whole", nights).labelled_windows()
    divided = create_parts(tmp_path, nights, 2)
    rest = [*range(1, len(nights.datasets))]
    halves = [create(tmp_path / f"half-{i}", h) for i, h in nights.split([[0], rest]).items()]
    for name, stores in (("divided", divided), ("halves", halves)):
        joined = SignalStore.join(tmp_path / name, stores)
        assert joined.n_labelled_windows == len(whole)
        found = SignalStore.join(tmp_path / f"{name}-nested", [joined]).labelled_windows()
        pd.testing.assert_frame_equal(found.get_metadata(), whole.get_metadata())
        for i in (0, len(whole) // 2, len(whole) - 1):
            np.testing.assert_array_equal(found[i][0], whole[i][0])
    unlabelled = create(tmp_path / "unlabelled", dataset(make_raw(0)))
    some = SignalStore.join(tmp_path / "some", [unlabelled, *divided])
    assert len(some.labelled_windows()) == len(whole)


def test_held_out_people_of_another_part_are_not_trained_on(make_raw, nights, tmp_path):
    """As one store with labels leaves them out."""
    parts = deepcopy(nights).split([[0], [1]])
    for i, split in enumerate(("train", "test")):
        entries = {"split": split, "subject": "P1"}
        parts[str(i)].datasets[0].set_description(entries, overwrite=True)
    stores = [create(tmp_path / i, part) for i, part in parts.items()]
    other = create(tmp_path / "other", dataset(make_raw(0)))
    joined = SignalStore.join(tmp_path / "all", [*stores, other])
    assert joined.subjects == ["P1", 0]
    assert joined.without_held_out().subjects == [0]


def test_a_part_resumes_and_remains_the_same_part(recordings, make_raw, tmp_path):
    broken = dataset(*(part.raw for part in recordings.datasets), make_raw(9, kinds="emg"))
    with pytest.raises(ValueError, match="recording-4"):
        create(tmp_path / "part-2", broken, part=(2, 2))
    assert len(Index.read(tmp_path / "part-2").recordings) == 2
    with pytest.raises(ValueError, match="unfinished"):
        SignalStore.join(tmp_path / "all", [tmp_path / "part-2"])
    with pytest.raises(ValueError, match=r"part\.number is 1, was 2"):
        create(tmp_path / "part-2", broken, part=(1, 2))
    with pytest.raises(ValueError, match=r"part\.n_recordings is 4, was 5"):
        create(tmp_path / "part-2", recordings, part=(2, 2))
    with pytest.warns(UserWarning, match="1 of 1"):
        resumed = create(tmp_path / "part-2", broken, part=(2, 2), on_error="warn")
    assert resumed.recordings["name"].tolist() == ["recording-2", "recording-3"]


def test_a_finished_part_is_opened(recordings, others, tmp_path, monkeypatch):
    (part, _) = create_parts(tmp_path, recordings, 2)
    with monkeypatch.context() as patch:
        patch.delattr("braindecode_pars.signal_store.sources.Source.open")  # nothing is read
        again = create(part.path, recordings, part=(1, 2))
    assert again.checksum == part.checksum
    with pytest.raises(ValueError, match=r"part\.n_parts is 4, was 2"):
        create(part.path, recordings, part=(1, 4))
    with pytest.raises(ValueError, match="high is 30"):
        create(part.path, recordings, part=(1, 2), high=30)
    changed = others.split([[1, 0, 2, 3]])["0"]
    with pytest.raises(ValueError, match="recording-0"):
        create(part.path, changed, part=(1, 2))
    with pytest.raises(ValueError, match="finished"):
        create(part.path, recordings)


def test_a_finished_part_with_other_labels_is_refused(nights, tmp_path):
    part = create(tmp_path / "part", nights, part=(1, 2))
    other = deepcopy(nights)
    other.datasets[0].y = [9] * len(other.datasets[0])
    with pytest.raises(ValueError, match="recording-0"):
        create(part.path, other, part=(1, 2))


def test_missing_parts_are_named(recordings, make_raw, tmp_path):
    parts = create_parts(tmp_path, recordings, 4)
    with pytest.raises(ValueError, match="2, 4 of the 4 parts"):
        SignalStore.join(tmp_path / "all", [parts[0], parts[2]])
    other = create(tmp_path / "other", dataset(*map(make_raw, range(5))), part=(2, 4))
    with pytest.raises(ValueError, match=r"2 of the 4 parts of 4 .*; 1, 3, 4 of the 4 parts of 5"):
        SignalStore.join(tmp_path / "all", [parts[0], other, *parts[2:]])
    assert not (tmp_path / "all").exists()


def test_parts_of_other_recordings_are_refused(recordings, tmp_path):
    other = deepcopy(recordings)
    other.set_description({"subject": [5, 6, 7, 8]}, overwrite=True)
    one = create(tmp_path / "one", recordings, part=(1, 2))
    two = create(tmp_path / "two", other, part=(2, 2))
    with pytest.raises(ValueError, match=r"2 of the 2 parts of 4 .*; 1 of the 2 parts of 4 "):
        SignalStore.join(tmp_path / "all", [one, two])
    # The recordings of part 1 are the same, but not those of part 2.
    mixed = BaseConcatDataset([*recordings.datasets[:2], *other.datasets[2:]])
    with pytest.raises(ValueError, match="one"):
        create(one.path, mixed, part=(1, 2))


def test_a_dataset_with_corpora_in_two_stores_is_named(make_raw, tmp_path):
    """Its recordings have numbers, not paths in a corpus."""
    given = BaseConcatDataset([RawDataset(make_raw(0), {"subject": 0, "corpus": "tuab"})])
    stores = [create(tmp_path / name, given) for name in ("a", "b")]
    with pytest.raises(ValueError, match=r"recording-1 in .*b is also recording-0 in .*a\b"):
        SignalStore.join(tmp_path / "all", stores)


def test_a_recording_in_two_stores_is_named(recordings, written, tmp_path):
    root, _ = written
    one = create(tmp_path / "one", recordings)
    copy = create(tmp_path / "copy", recordings.split([[2]])["0"])
    with pytest.raises(ValueError, match=r"recording-4 in .*copy is also recording-2 in .*one"):
        SignalStore.join(tmp_path / "all", [one, copy])
    files = create(tmp_path / "files", root / "b")
    above = create(tmp_path / "above", root)
    with pytest.raises(ValueError, match=r"above .* r0\d.* in .*files"):
        SignalStore.join(tmp_path / "all", [files, above])
    with pytest.raises(ValueError, match="one"):
        SignalStore.join(tmp_path / "all", [one, one.path])


def test_the_same_path_in_two_folders_is_named(make_edf, tmp_path):
    """Not its samples but its name is the same, as that of another version of a file."""
    make_edf(tmp_path / "x" / "P1" / "night.edf", ["C3", "C4"])
    make_edf(tmp_path / "y" / "P1" / "night.edf", ["C3"])
    stores = [create(tmp_path / f"store-{name}", tmp_path / name) for name in "xy"]
    with pytest.raises(ValueError, match=r"P1/night\.edf in .*y .*x"):
        SignalStore.join(tmp_path / "all", stores)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(sfreq=50), "50 Hz, .* 100 Hz"),
        (dict(dtype="float32"), "dtype is 'float32', was 'int16'"),
        (dict(high=30), "high is 30"),
        (dict(channels=["C3", "Fz"]), "channels is"),
    ],
)
def test_stores_of_another_preparation_are_refused(
    recordings, others, tmp_path, arguments, message
):
    stores = [create(tmp_path / "a", recordings), create(tmp_path / "b", others, **arguments)]
    with pytest.raises(ValueError, match=message):
        SignalStore.join(tmp_path / "all", stores)


def test_resampled_and_own_rates_are_the_same_rate(recordings, others, tmp_path):
    stores = [create(tmp_path / "a", recordings), create(tmp_path / "b", others, sfreq=100)]
    assert SignalStore.join(tmp_path / "all", stores).sfreq == 100


def test_what_is_no_list_of_whole_stores(recordings, tmp_path):
    store = create(tmp_path / "a", recordings)
    for wrong in (store, store.path, str(store.path)):
        with pytest.raises(TypeError, match="list"):
            SignalStore.join(tmp_path / "all", wrong)
    with pytest.raises(ValueError, match="empty"):
        SignalStore.join(tmp_path / "all", [])
    with pytest.raises(ValueError, match="view"):
        SignalStore.join(tmp_path / "all", [store.select([1])])
    with pytest.raises(FileNotFoundError):
        SignalStore.join(tmp_path / "all", [tmp_path / "nowhere"])


@pytest.fixture
def corpora(tmp_path):
    """Two corpora: of four people with one test subject, and of two people."""
    for name in ("a/P1_train", "a/P2_train", "a/P3_train", "a/P4_test", "b/P5_train", "b/P6_train"):
        folder, stem = name.split("/")
        own_recipe.write(tmp_path / folder, stem, 10)
    return [own_recipe.corpus_of(tmp_path / name, name) for name in "ab"]


def test_parts_of_corpora(corpora, tmp_path):
    shares = {"a": 2, "b": 1}
    whole = create(tmp_path / "whole", corpora, shares=shares)
    parts = create_parts(tmp_path, corpora, 4, shares=shares)
    joined = SignalStore.join(tmp_path / "all", parts)
    assert_same(joined, whole)
    assert joined._index.settings == whole._index.settings
    assert SignalStore.join(tmp_path / "new", parts, shares={"a": 1, "b": 1}).shares["a"] == 1
    with pytest.raises(ValueError, match="a, b"):
        SignalStore.join(tmp_path / "other", parts, shares={"a": 1})


def test_stores_of_corpora(corpora, recordings, tmp_path):
    """Each corpus may be divided by itself; the mixture is chosen when they are joined."""
    a, b = corpora
    stores = [*create_parts(tmp_path / "of_a", a, 3), *create_parts(tmp_path / "of_b", b, 2)]
    mixed = SignalStore.join(tmp_path / "all", stores, shares={"a": 1, "b": 1})
    assert mixed.checksum == create(tmp_path / "one", corpora, shares={"a": 1, "b": 1}).checksum
    alone = create(tmp_path / "alone", b, shares={"b": 1})
    with pytest.raises(ValueError, match=r"alone .*{'b': 1.0}"):
        SignalStore.join(tmp_path / "unclear", [create(tmp_path / "a_alone", a), alone])
    # All recordings are of recipes, with the same settings, or none are.
    plain = create(tmp_path / "plain", recordings)
    with pytest.raises(ValueError, match=r"_a.* recipes.*plain"):
        SignalStore.join(tmp_path / "unlike", [plain, *stores])
    other = create(tmp_path / "other", own_recipe.corpus_of(tmp_path / "a", "a", level=1e-6))
    with pytest.raises(ValueError, match=r"a\.level is 1e-06"):
        SignalStore.join(tmp_path / "unlike", [stores[0], *stores[1:3], other])


def test_stores_of_other_labels_are_refused(nights, tmp_path):
    settings = {"store-1": {"a": {}}, "store-2": {"b": {"classes": ["W", "N1"]}}}
    with pytest.raises(ValueError, match="b in store-2 has W, N1"):
        joined_corpora(settings)
    numbers, texts = deepcopy(nights).split([[0], [1]]).values()
    texts.target_transform = str
    stores = [create(tmp_path / "numbers", numbers), create(tmp_path / "texts", texts)]
    with pytest.raises(ValueError, match="int, str"):
        SignalStore.join(tmp_path / "all", stores)


def test_people_that_another_corpus_leaves_out_are_refused(corpora, tmp_path):
    a, b = corpora
    own_recipe.write(tmp_path / "c", "P4_train", 10)  # a test subject of a
    c = own_recipe.corpus_of(tmp_path / "c", "c")
    stores = [create(tmp_path / f"of_{one.name}", one) for one in (a, b, c)]
    with pytest.raises(ValueError, match=r"of_c .*of_a.*c:P4"):
        SignalStore.join(tmp_path / "all", stores)
    fewer = create(tmp_path / "fewer", own_recipe.corpus_of(tmp_path / "b", "b", exclude=[["P5"]]))
    own_recipe.write(tmp_path / "d", "P5_train", 10)
    d = create(tmp_path / "of_d", own_recipe.corpus_of(tmp_path / "d", "d"))
    with pytest.raises(ValueError, match=r"fewer.*d:P5"):
        SignalStore.join(tmp_path / "all", [d, fewer])
    assert SignalStore.join(tmp_path / "all", stores[:2]).subjects[-1] == "b:P6"


def test_dask_workers_store_parts(recordings, tmp_path):
    """The workers are threads here; see the slow test for processes."""
    folders = [tmp_path / f"part-{i}" for i in (1, 2, 3)]
    with (
        LocalCluster(
            2, processes=False, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
    ):
        stores = [
            client.submit(SignalStore.create, folder, recordings, part=(i, 3), verbose=0)
            for i, folder in enumerate(folders, 1)
        ]
        joined = SignalStore.join(tmp_path / "all", client.gather(stores))
    assert_same(joined, create(tmp_path / "whole", recordings))


@pytest.mark.slow
def test_a_dask_worker_that_dies_is_replaced_and_its_part_resumed(tmp_path):
    for i in range(1, 7):
        own_recipe.write(tmp_path / "a", f"P{i}_train", 10)
    corpus = own_recipe.corpus_of(tmp_path / "a", "a")
    deadly = replace(corpus, read=own_recipe.killed_once)
    import_in_advance()
    with (
        dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}),
        LocalCluster(1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        stores = [
            client.submit(SignalStore.create, tmp_path / f"{i}", deadly, part=(i, 2), verbose=0)
            for i in (1, 2)
        ]
        wait(stores, timeout=240)
        joined = SignalStore.join(tmp_path / "all", client.gather(stores))
    assert (tmp_path / "a" / "killed").exists()
    assert_same(joined, create(tmp_path / "whole", corpus))
