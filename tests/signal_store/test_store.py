"""An open store: crops, subjects, windows, and errors on opening."""

from __future__ import annotations

import os
import pickle
import shutil
import unicodedata

import mne
import numpy as np
import pytest
from support.raws import of_raws

from braindecode_pars.signal_store import SignalStore

#: Channels and samples of the fixture ``recordings``, without bad and non-EEG channels.
N_CHANS, N_TIMES = [2, 2, 4, 3], [3000, 2000, 4000, 900]


@pytest.fixture(scope="module")
def store(recordings, tmp_path_factory) -> SignalStore:
    return SignalStore.create(tmp_path_factory.mktemp("store"), recordings, verbose=0)


@pytest.fixture
def own(store, tmp_path) -> SignalStore:
    """A copy with the same modification times, which a test may change."""
    return SignalStore.open(shutil.copytree(store.path, tmp_path / "own"))


@pytest.fixture(scope="module")
def volts(recordings) -> list[np.ndarray]:
    """Every signal of the store before it was encoded."""
    return [
        channel
        for dataset in recordings.datasets
        for channel in dataset.raw.copy().pick("eeg", exclude="bads").get_data()
    ]


def test_metadata_of_the_recordings(store):
    assert len(store) == sum(N_CHANS)
    assert (store.sfreq, store.dtype, store.skipped) == (100, "int16", {})
    table = store.recordings
    assert table["subject"].tolist() == [1, 2, "anna", 1]
    assert table["n_times"].tolist() == N_TIMES
    assert table["first_signal"].tolist() == [0, 2, 4, 8]
    assert table["ch_names"].tolist()[2] == ["Fz", "Cz", "Pz", "O1"]
    assert store.subjects == [1, 2, "anna"]
    assert store.n_bytes == 2 * np.dot(N_CHANS, N_TIMES)


@pytest.mark.parametrize("dtype", ["int16", "float32"])
def test_crops_match_the_recordings(recordings, volts, tmp_path, dtype):
    store = SignalStore.create(tmp_path / "store", recordings, dtype=dtype, verbose=0)
    rng = np.random.default_rng(0)
    signals = rng.integers(len(store), size=200)
    lengths = np.repeat(N_TIMES, N_CHANS)[signals]
    starts = rng.integers(lengths - 300, endpoint=True)
    crops = store.crops(signals, starts, 300)
    assert crops.dtype == np.float32
    for crop, signal, start in zip(crops, signals, starts, strict=True):
        whole = volts[signal]
        allowed = {
            "int16": np.ptp(whole) / 65534 / 2 + 1e-7 * np.abs(whole).max(),
            "float32": 2.0**-24 * np.abs(whole).max(),  # rounding to single precision
        }
        assert np.abs(crop - whole[start : start + 300]).max() <= allowed[dtype]


def test_a_batch_contains_random_crops(store, volts):
    rng = np.random.default_rng(3)
    signals = np.array([9, 0, 0, 6])
    batch = store.batch(signals, 500, rng)
    assert batch.shape == (4, 500)
    assert store.batch(np.array([], int), 500, rng).shape == (0, 500)
    assert not np.array_equal(batch[1], batch[2])
    for crop, signal in zip(batch, signals, strict=True):
        fits = np.lib.stride_tricks.sliding_window_view(volts[signal], 500)
        assert np.abs(fits - crop).max(axis=1).min() < np.ptp(volts[signal]) / 60000
    again = store.batch(signals, 500, np.random.default_rng(3))
    np.testing.assert_array_equal(again, batch)


def test_all_starts_are_equally_likely(store, volts):
    """A recording of 900 samples has eleven starts for a crop of 890."""
    crops = store.batch(np.full(11_000, 8), 890, np.random.default_rng(0))
    starts = np.abs(crops[:, :1] - volts[8][None, :11]).argmin(axis=1)
    counts = np.bincount(starts, minlength=11)
    assert counts.sum() == 11_000
    assert ((counts - 1000) ** 2 / 1000).sum() < 29.6  # chi-squared of 10 degrees, p = .001


@pytest.mark.parametrize(
    ("signals", "starts", "n_times", "message"),
    [
        ([0, 10, 4], None, 901, r"901 .* recording-3 .* 900"),
        ([0], [2100], 901, r"901 .* 2100"),
        ([0], [-1], 9, "-1"),
        *(([0], None, wrong, "n_times") for wrong in (0, 2.5)),
        *((wrong, None, 10, "signals") for wrong in ([11], [-1], np.ones(11, bool), [0.5], [[1]])),
    ],
)
def test_crops_that_do_not_exist(store, signals, starts, n_times, message):
    crops, arguments = store.crops, (signals, starts, n_times)
    if starts is None:
        crops, arguments = store.batch, (signals, n_times, np.random.default_rng(0))
    with pytest.raises((ValueError, TypeError, IndexError), match=message):
        crops(*arguments)


def test_a_pickled_store_contains_no_samples(store):
    store.batch([0], 10, np.random.default_rng(0))  # maps the file
    pickled = pickle.dumps(store)
    assert len(pickled) < store.n_bytes / 4
    copy = pickle.loads(pickled)
    crops = [each.batch(np.arange(11), 200, np.random.default_rng(1)) for each in (copy, store)]
    np.testing.assert_array_equal(*crops)
    with pytest.raises(ValueError, match="read-only"):
        copy._samples.flat[0] = 1


def test_select_keeps_some_subjects(store):
    chosen = store.select([1])
    assert chosen.recordings["name"].tolist() == ["recording-0", "recording-3"]
    assert chosen.recordings["first_signal"].tolist() == [0, 2]
    assert len(chosen) == 5
    assert chosen._samples is store._samples
    selected, whole = np.arange(5), np.array([0, 1, 8, 9, 10])
    np.testing.assert_array_equal(
        chosen.crops(selected, [50] * 5, 700), store.crops(whole, [50] * 5, 700)
    )
    assert store.select(["1", "anna"]).subjects == [1, "anna"]  # strings, as from a command line
    assert store.select(exclude=["1", "anna"]).subjects == [2]
    assert store.select([1, 2], exclude=[2]).subjects == [1]
    assert store.select(exclude=[]).checksum == store.checksum
    with pytest.raises(TypeError, match="'12'"):
        store.select(exclude="12")
    assert chosen.n_bytes == 2 * (2 * 3000 + 3 * 900)


def test_spellings_of_subjects(make_raw, tmp_path):
    """A subject is chosen and excluded in every spelling."""
    names = ["01", 1, "anna", unicodedata.normalize("NFD", "Jörg")]
    given = of_raws([make_raw(i) for i in range(4)], names)
    store = SignalStore.create(tmp_path / "store", given, verbose=0)
    assert store.subjects == ["01", 1, "anna", "Jörg"]
    assert store.select(exclude=[1.0]).subjects == ["anna", "Jörg"]  # as in a table with NaN
    assert store.select(["001"]).subjects == ["01", 1]
    assert store.select([1.0, names[-1]]).subjects == ["01", 1, "Jörg"]
    # A recording without a subject may be of an excluded one.
    some = of_raws([make_raw(i) for i in range(2)], [1, None])
    store = SignalStore.create(tmp_path / "some", some, verbose=0)
    assert len(store.select(exclude=[])) == len(store)
    with pytest.raises(ValueError, match=r"unknown.*: 1\)"):
        store.select(exclude=store.subjects)


def test_select_names_missing_subjects(store):
    with pytest.raises(ValueError, match=r"5, bert.* 1, 2, anna"):
        store.select([1, 5, "bert"])
    with pytest.raises(ValueError, match="remains"):
        store.select([1], exclude=[1])


def test_the_checksum_depends_on_content_scale_and_offset(store, own, tmp_path):
    assert own.checksum == store.checksum
    assert len({store.checksum, store.select([1]).checksum, store.select([2]).checksum}) == 3
    # The stored integers are the same, and the signals in volts are not.
    info = mne.create_info(["C3"], 100, "eeg")
    values = np.random.default_rng(0).integers(-3, 4, (1, 500)) * 2.0**-17  # exact, up to 23 µV
    stores = []
    for i, volts in enumerate((values, 2 * values, values + 2.0**-12)):
        raw = mne.io.RawArray(volts, info, verbose="error")
        stores.append(SignalStore.create(tmp_path / str(i), of_raws([raw]), verbose=0))
    assert len({(store.path / "samples.bin").read_bytes() for store in stores}) == 1
    assert len({store.checksum for store in stores}) == 3


def alter(store: SignalStore, at: int) -> None:
    with (store.path / "samples.bin").open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def test_an_altered_sample_raises(own):
    alter(own, 2 * 2 * 3000 + 10)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"samples\.bin .*recording-1"):
            SignalStore.open(own.path)


def test_verify_reads_all_samples_regardless_of_times(own):
    file = own.path / "samples.bin"
    times = file.stat()
    alter(own, 0)
    alter(own, own.n_bytes - 1)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    unverified = SignalStore.open(own.path)
    with pytest.raises(ValueError, match="recording-0, recording-3"):
        unverified.verify()
    unverified.select([2]).verify()


def test_a_truncated_file_raises(own):
    file = own.path / "samples.bin"
    os.truncate(file, own.n_bytes - 1)
    n_bytes = own.n_bytes
    with pytest.raises(ValueError, match=f"{n_bytes - 1} .* {n_bytes}"):
        SignalStore.open(own.path)


# Windows ------------------------------------------------------------------------------------------


def test_windows_are_consecutive(store, volts):
    windows = store.windows(950)  # the last recording is shorter
    assert len(windows) == 3 + 2 + 4
    assert windows.shapes.tolist() == [[2, 950]] * 5 + [[4, 950]] * 4
    assert windows.subjects.tolist() == [1] * 3 + [2] * 2 + ["anna"] * 4
    signals = [np.stack(volts[rows]) for rows in (slice(2), slice(2, 4), slice(4, 8))]
    places = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (2, 3)]
    for window, (recording, n) in zip(windows, places, strict=True):
        expected = signals[recording][:, 950 * n : 950 * (n + 1)]
        np.testing.assert_allclose(window, expected, atol=1e-8)
    np.testing.assert_array_equal(windows[-1], windows[8])
    with pytest.raises(ValueError, match=r"4001 .* recording-2, has 4000"):
        store.windows(4001)
    # Channels are known if all recordings have the same.
    assert windows.chs_info == []
    assert [ch["ch_name"] for ch in store.select([2]).windows(100).chs_info] == ["C3", "C4"]
