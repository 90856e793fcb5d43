"""The index and the table of labeled windows: readable, checked, and kept after kills."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset
from support.labeled_stores import check_equal

from braindecode_pars._common.files import checksum_of
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.signal_store.index import (
    COLUMNS,
    INDEX,
    Index,
    StoredRecording,
    label_rows,
    labels_of_segments,
    read_labels,
    resampled_labels,
    rows_of_labels,
)
from braindecode_pars.signal_store.sources import Source


def index_of(n: int) -> Index:
    recordings = [
        StoredRecording(f"r{i}", {"subject": i}, ["C3"], 5, 5 * i, [0.1], [-2e-7], "ab", {"n": 1})
        for i in range(n)
    ]
    return Index(
        True, {"dtype": "int16"}, 100.0, 10 * n, 7, {"r9": 'NaN in "C4"'}, recordings=recordings
    )


@pytest.mark.parametrize("n", [0, 3])
def test_a_written_index_is_read_back(tmp_path, n):
    index_of(n).write(tmp_path)
    assert Index.read(tmp_path) == index_of(n)
    assert [file.name for file in tmp_path.iterdir()] == [INDEX]


def test_an_edit_raises(tmp_path):
    index_of(3).write(tmp_path)
    file = tmp_path / INDEX
    text = file.read_text()
    for before, after in (('"subject": 1', '"subject": 2'), ("0.1", "0.2"), ("true", "1")):
        assert before in text
        file.write_text(text.replace(before, after, 1))
        with pytest.raises(ValueError, match=r"store\.json"):
            Index.read(tmp_path)


def test_another_version_or_a_damaged_index_raises(tmp_path):
    index_of(1).write(tmp_path)
    file = tmp_path / INDEX
    text = file.read_text()
    file.write_text(text.replace('"version": 5', '"version": 4'))
    with pytest.raises(ValueError, match=r"store\.json .* version 4.*version 5"):
        Index.read(tmp_path)
    for damaged in ('{"format": "zarr"}', text[:-30], "[]"):
        file.write_text(damaged)
        with pytest.raises(ValueError, match=r"store\.json"):
            Index.read(tmp_path)


def files(folder) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in ("samples.bin", "windows.csv")}


def with_targets(dataset, targets, **description):
    metadata = dataset.metadata.iloc[: len(targets)].copy()
    metadata["target"] = targets
    return EEGWindowsDataset(dataset.raw, metadata, {**dict(dataset.description), **description})


def test_the_table_is_readable(nights, tmp_path):
    one, other = nights.datasets[:2]
    given = BaseConcatDataset(
        [
            with_targets(one, ["N2", "W, noisy"], split="train", fold=3),
            with_targets(other, ["R"], split="test"),
        ]
    )
    store = SignalStore.create(tmp_path / "store", given, dtype="float32", verbose=0)
    table = pd.read_csv(store.path / "windows.csv")
    assert table.columns.tolist() == [
        *("recording", "onset", "duration", "label", "split", "fold", "i_window_in_trial")
    ]
    assert table["recording"].tolist() == ["recording-0"] * 2 + ["recording-1"]
    assert table["onset"].tolist() == [0, 30, 0]
    assert table["label"].tolist() == ["N2", "W, noisy", "R"]
    check_equal(store.labeled_windows(), given)


def test_an_altered_table_is_detected(nights, tmp_path):
    nights = BaseConcatDataset([with_targets(nights.datasets[0], [0, 1, 0], split="train")])
    store = SignalStore.create(tmp_path / "store", nights, verbose=0)
    table = store.path / "windows.csv"
    table.write_text(table.read_text().replace("0,train", "1,train", 1))
    for use in (lambda: SignalStore.open(store.path), store.labeled_windows):
        with pytest.raises(ValueError, match=r"windows\.csv"):
            use()


def test_an_interrupted_call_resumes_with_its_labels(nights, tmp_path, monkeypatch):
    path, open_ = tmp_path / "store", Source.open

    def interrupted(source):
        if source.name == "recording-2":
            raise KeyboardInterrupt
        return open_(source)

    with monkeypatch.context() as patch:
        patch.setattr(Source, "open", interrupted)
        with pytest.raises(KeyboardInterrupt):
            SignalStore.create(path, nights, verbose=0)
    assert json.loads((path / "store.json").read_text())["labels"]["n_windows"] == 48
    with (path / "windows.csv").open("a") as file:
        file.write("recording-2,0.0,30.0,")  # of a process that was killed while it wrote
    resumed = SignalStore.create(path, nights, verbose=0)
    whole = SignalStore.create(tmp_path / "whole", nights, verbose=0)
    assert files(path) == files(whole.path)
    assert resumed.n_labeled_windows == len(nights)


def test_windows_are_stored_with_a_new_rate_and_between_gaps(nights, tmp_path):
    one = nights.datasets[0]
    raw = one.raw.copy()
    raw.annotations.append(120.0, 0.0, "BAD boundary")
    given = EEGWindowsDataset(raw, one.metadata, {"subject": 1})
    store = SignalStore.create(tmp_path / "store", given, sfreq=50, dtype="float32", verbose=0)
    assert store.recordings["name"].tolist() == ["recording-0#1", "recording-0#2"]
    windows = store.labeled_windows()
    assert [len(piece) for piece in windows.datasets] == [4, 20]
    assert [y for _, y, _ in windows] == one.y
    samples = np.stack([x for x, _, _ in windows])
    assert samples.shape == (24, 3, 1500)
    expected = raw.copy().crop(120).resample(50).get_data()[:, 1500:3000]
    np.testing.assert_allclose(samples[5], expected, atol=1e-9)


TEXTS = ["d\re", "\r", "a\nb", "b\r\nc", " x ", "NA", "", '"q"', "x,y"]


@pytest.mark.parametrize(("first", "second"), [([0, 1], [-1, -1]), (TEXTS, ["z", "end\r"])])
def test_labels_are_stored_if_any_window_has_one(nights, tmp_path, first, second):
    """Labels and splits may be any text."""
    one, other = nights.datasets[:2]
    given = [with_targets(one, first, split="a\rb", fold="\r"), with_targets(other, second)]
    store = SignalStore.create(tmp_path / "store", BaseConcatDataset(given), verbose=0)
    assert [y for _, y, _ in store.labeled_windows()] == [*first, *second]


def test_a_store_of_windows_without_labels_has_none(nights, tmp_path):
    given = with_targets(nights.datasets[0], [-1, -1])
    store = SignalStore.create(tmp_path / "store", given, verbose=0)
    assert store.n_labeled_windows == 0
    with pytest.raises(ValueError, match="no labels"):
        store.labeled_windows()


def test_labels_of_several_types_raise(nights, tmp_path):
    one, other = nights.datasets[:2]
    given = [with_targets(one, [0, 1]), with_targets(other, ["N2", "W"])]
    with pytest.raises(ValueError, match=r"recording-1 .*int, str"):
        SignalStore.create(tmp_path / "store", BaseConcatDataset(given), verbose=0)


def test_labels_of_any_scalar_type(nights):
    one = nights.datasets[0]
    for targets in ([0, -1], ["N2", "W"], [0.5, 2.0], [True, False]):
        found = label_rows(with_targets(one, np.array(targets)))["target"].tolist()
        assert (found, type(found[0])) == (targets, type(targets[0]))
    assert label_rows(with_targets(one, [])) is None
    for wrong in (None, float("nan"), [1, 2]):
        with pytest.raises(ValueError, match="window 1"):
            label_rows(with_targets(one, [0, wrong]))


def windows_at(starts) -> pd.DataFrame:
    start = np.asarray(starts)
    columns = dict(i_start_in_trial=start, i_stop_in_trial=start + 10, target=range(len(start)))
    return pd.DataFrame({"i_window_in_trial": range(len(start)), **columns})


@pytest.mark.parametrize(
    ("starts", "message"),
    [
        ([0, 61], r"window 1 .* 6.1 s to 7.1 s, .* \(7 s\)"),
        ([-1], "window 0 "),
        ([25], "window 0 "),
    ],
)
def test_a_window_is_in_one_piece_of_its_recording(starts, message):
    first, last = labels_of_segments(windows_at([0, 20, 35, 50]), [(0, 30), (35, 70)], 10.0)
    assert first["i_start_in_trial"].tolist() == [0, 20]
    assert (last["i_start_in_trial"].tolist(), last["target"].tolist()) == ([0, 15], [2, 3])
    with pytest.raises(ValueError, match=message):
        labels_of_segments(windows_at(starts), [(0, 30), (35, 70)], 10.0)


def test_times_in_seconds_are_the_same_samples_again(tmp_path):
    """Sample 57 at 100 Hz is at 0.57 s, and 100 * 0.57 is less than 57."""
    given = windows_at(range(2000))
    table = COLUMNS + rows_of_labels("night", given, {}, 100.0)
    (tmp_path / "windows.csv").write_bytes(table)
    described = dict(n_bytes=len(table), kind="int", checksum=checksum_of(table))
    read = read_labels(tmp_path, described, 100.0)["night"]
    pd.testing.assert_frame_equal(read, given)


def test_windows_keep_their_times_and_stay_inside_at_another_rate():
    found = resampled_labels(windows_at([0, 30, 990]), 100.0, 125.0, 1250)
    assert found["i_start_in_trial"].tolist() == [0, 38, 1238]
    assert found["i_stop_in_trial"].tolist() == [12, 50, 1250]
    # Start and length, 5.6 samples each, are rounded up, and the 11.2 of the recording down.
    table = pd.DataFrame(dict(i_start_in_trial=[0, 8], i_stop_in_trial=[8, 16]))
    found = resampled_labels(table, 10.0, 7.0, 11)
    assert found["i_start_in_trial"].tolist() == [0, 5]
    assert found["i_stop_in_trial"].tolist() == [6, 11]
