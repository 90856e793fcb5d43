"""Creation of a store: kills, full disks, damaged files, concurrent writers."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import shutil
import signal
import time
from copy import deepcopy
from io import FileIO
from pathlib import Path

import joblib
import mne
import numpy as np
import pytest
from braindecode.datasets import BaseConcatDataset, RawDataset
from joblib.externals.loky.process_executor import TerminatedWorkerError
from support import own_recipe
from support.interrupts import create_progress_bar_lock
from support.raws import of_raws

from braindecode_pars.signal_store import SignalStore
from braindecode_pars.signal_store import writing as _writing
from braindecode_pars.signal_store.index import Index
from braindecode_pars.signal_store.sources import Source


@pytest.fixture
def opened(monkeypatch) -> list[str]:
    """Names of the recordings that were opened."""
    names = []
    open_ = Source.open

    def recording_open(self):
        names.append(self.name)
        return open_(self)

    monkeypatch.setattr(Source, "open", recording_open)
    return names


@pytest.fixture
def own_tree(tree, tmp_path) -> Path:
    """A copy that a test may change."""
    return shutil.copytree(tree, tmp_path / "tree")


def on_disk(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_a_folder_of_files_is_stored(written, tmp_path, capsys):
    """The same samples with parallel reading (in threads; a test of a kill uses processes)."""
    root, expected = written
    store = SignalStore.create(tmp_path / "store", root, verbose=0)
    assert store.recordings["name"].tolist() == list(expected)
    for row in store.recordings.itertuples():
        signals = row.first_signal + np.arange(len(row.ch_names))
        values = store.crops(signals, np.zeros_like(signals), row.n_times)
        np.testing.assert_allclose(values, expected[row.name], atol=4e-8)
    assert capsys.readouterr() == ("", "")
    with joblib.parallel_config("threading"):
        other = SignalStore.create(tmp_path / "parallel", root, n_jobs=2)
    assert other.checksum == store.checksum
    assert on_disk(other.path)["samples.bin"] == on_disk(store.path)["samples.bin"]
    assert "storing: 100%" in capsys.readouterr().err


def test_a_recording_with_nan_is_named_and_skipped(make_raw, tmp_path):
    raws = [make_raw(seed, names=["C3", "C4"]) for seed in range(3)]
    raws[1]._data[1, 7] = np.nan
    bad = of_raws(raws)
    with pytest.warns(UserWarning, match=r"(?s)1 of 3 .* recording-1 \(subject 1\): .* C4"):
        store = SignalStore.create(tmp_path / "store", bad, high=30, verbose=0)
    assert store.subjects == [0, 2]
    assert "C4" in store.skipped["recording-1"]

    # A piece between gaps is skipped alone.
    joined = of_raws([mne.concatenate_raws(raws, verbose="error")], ["02"])
    with pytest.warns(UserWarning, match=r"(?s)1 of 3 .* recording-0#2 \(subject 02\)"):
        store = SignalStore.create(tmp_path / "joined", joined, verbose=0)
    assert store.recordings["name"].tolist() == ["recording-0#1", "recording-0#3"]
    assert list(store.skipped) == ["recording-0#2"]


def test_files_that_cannot_be_read_are_named_or_listed(own_tree, tmp_path):
    """As in a dataset of OpenNeuro whose files were not downloaded yet."""
    (own_tree / "sub-08").mkdir()
    missing = own_tree / "sub-08/sub-08_eeg.edf"
    missing.symlink_to("../.git/annex/objects/absent.edf")
    (own_tree / "b/r01.dat").unlink()
    path = tmp_path / "store"
    with pytest.raises(ValueError, match=r"r01\.hea .*r01\.dat"):
        SignalStore.create(path, own_tree, verbose=0)
    with pytest.raises(ValueError, match=r"incomplete.* 1\)"):
        SignalStore.open(path)
    with pytest.warns(UserWarning, match=r"(?s)2 of 5 .*datalad get"):
        store = SignalStore.create(path, own_tree, on_error="warn", verbose=0)
    assert list(store.skipped) == ["b/r01.hea", "sub-08/sub-08_eeg.edf"]
    # Once a file is there, the same call adds it.
    missing.unlink()
    shutil.copy(own_tree / "lone.EDF", missing)
    same = r"lone\.EDF and sub-08/sub-08_eeg\.edf\. "
    with pytest.warns(UserWarning, match="1 of 2"), pytest.warns(UserWarning, match=same):
        store = SignalStore.create(path, own_tree, on_error="warn", verbose=0)
    assert list(store.skipped) == ["b/r01.hea"]
    assert "08" in store.subjects


def test_flat_channels_do_not_count_in_the_amplitude_of_a_recording(make_raw, tmp_path, recwarn):
    raws = [make_raw(seed, 3) for seed in range(4)]
    raws[2]._data[:2] = 0.0
    raws[3]._data *= 60  # only this recording differs in amplitude
    SignalStore.create(tmp_path, of_raws(raws), verbose=0)
    messages = [str(warning.message) for warning in recwarn]
    assert any("flat or clipped" in message for message in messages)
    (outliers,) = (message for message in messages if "factor of more than 20" in message)
    assert "all 4 recordings by a factor of more than 20: recording-3 (subject 3)." in outliers


def test_recordings_are_split_at_gaps(make_raw, tmp_path):
    (tmp_path / "files/sub-01").mkdir(parents=True)
    parts = [make_raw(seed, seconds=seconds) for seed, seconds in enumerate([3, 5])]
    joined = mne.concatenate_raws([part.copy() for part in parts], verbose="error")
    joined.save(tmp_path / "files/sub-01/a_raw.fif", verbose="error")
    path = tmp_path / "store"
    store = SignalStore.create(path, tmp_path / "files", verbose=0)
    assert store.recordings["name"].tolist() == ["sub-01/a_raw.fif#1", "sub-01/a_raw.fif#2"]
    assert store.recordings["n_times"].tolist() == [300, 500]
    assert store.subjects == ["01"]
    second = store.crops([store.recordings["first_signal"][1]], [0], 500)[0]
    expected = parts[1].get_data()[0]
    np.testing.assert_allclose(second, expected, atol=np.ptp(expected) / 60_000)
    assert len(store.windows(300)) == 2
    # The file is known as a whole: it is not stored again.
    assert len(SignalStore.create(path, tmp_path / "files", verbose=0).recordings) == 2


def broken(make_raw) -> mne.io.BaseRaw:
    """A recording that cannot be stored."""
    return make_raw(1, 1, names=["X"], kinds="emg")


def start_store(path: Path, make_raw, first=None, **arguments) -> BaseConcatDataset:
    """Start a store whose second recording cannot be stored."""
    given = of_raws([make_raw(0) if first is None else first, broken(make_raw)])
    with pytest.raises(ValueError, match="recording-1"):
        SignalStore.create(path, given, verbose=0, **arguments)
    return given


def test_a_call_resumes_after_a_recording_in_pieces(make_raw, tmp_path):
    pieces = mne.concatenate_raws([make_raw(seed) for seed in range(2)], verbose="error")
    start_store(tmp_path / "store", make_raw, pieces)
    given = of_raws([pieces, make_raw(2)])
    store = SignalStore.create(tmp_path / "store", given, verbose=0)
    names = ["recording-0#1", "recording-0#2", "recording-1"]
    assert store.recordings["name"].tolist() == names


def test_mixed_sampling_rates_raise_or_are_resampled(make_raw, tmp_path):
    mixed = of_raws(make_raw(i, sfreq=100 + 28 * i) for i in range(2))
    with pytest.raises(ValueError, match=r"recording-1 .* 128 Hz, .* 100 Hz"):
        SignalStore.create(tmp_path / "mixed", mixed, verbose=0)
    store = SignalStore.create(tmp_path / "store", mixed, sfreq=np.float32(64), verbose=0)
    assert store.sfreq == SignalStore.open(store.path).sfreq == 64
    assert Index.read(store.path).settings["sfreq"] == 64
    assert store.recordings["n_times"].tolist() == [256, 256]


def kill_while_storing(path: Path, recordings, monkeypatch, n_stored: int) -> None:
    """Create a store slowly in another process, and kill it after some commits."""
    open_ = Source.open

    def slow(self):
        time.sleep(0.02)
        return open_(self)

    def store() -> None:
        create_progress_bar_lock()
        SignalStore.create(path, recordings, verbose=0)

    with monkeypatch.context() as patch:
        patch.setattr(Source, "open", slow)
        patch.setattr(_writing, "_MAX_COMMIT_TIME", 1)
        child = multiprocessing.get_context("fork").Process(target=store)
        child.start()
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if (path / "store.json").exists():
                index = json.loads((path / "store.json").read_text())
                if len(index["recordings"]) >= n_stored:
                    break
            time.sleep(0.002)
        os.kill(child.pid, signal.SIGKILL)
        child.join(10)
    assert child.exitcode == -signal.SIGKILL


def test_a_killed_call_resumes(make_raw, tmp_path, monkeypatch, opened):
    many = of_raws(make_raw(i, 2 + i % 3) for i in range(15))
    path = tmp_path / "killed"
    kill_while_storing(path, many, monkeypatch, n_stored=3)
    with pytest.raises(ValueError, match="incomplete"):
        SignalStore.open(path)
    stored = [
        entry["name"] for entry in json.loads((path / "store.json").read_text())["recordings"]
    ]
    assert 3 <= len(stored) < 15
    with (path / "samples.bin").open("ab") as file:
        file.write(b"half a recording")  # not in the index
    opened.clear()
    store = SignalStore.create(path, many, verbose=0)
    assert set(opened) == {f"recording-{i}" for i in range(15)} - set(stored)
    assert len(opened) == 15 - len(stored)
    whole = SignalStore.create(tmp_path / "whole", many, verbose=0)
    assert store.checksum == whole.checksum
    assert (path / "samples.bin").read_bytes() == (tmp_path / "whole/samples.bin").read_bytes()


def test_resuming_with_other_arguments_raises(make_raw, tmp_path):
    path = tmp_path / "store"
    given = start_store(path, make_raw, channels=["E0"])
    before = on_disk(path)
    with pytest.raises(ValueError, match=r"channels .*\['E0'\]"):
        SignalStore.create(path, given, verbose=0)
    others = of_raws([make_raw(0, seconds=5.0)])
    with pytest.raises(ValueError, match=r"recording-0 \(subject 0\)"):
        SignalStore.create(path, others, channels=["E0"], verbose=0)
    assert on_disk(path) == before
    os.truncate(path / "samples.bin", 799)
    with pytest.raises(ValueError, match=r"799 .* 800"):
        SignalStore.create(path, given, channels=["E0"], verbose=0)


@pytest.mark.parametrize("what", ["labels", "windows"])
def test_resuming_with_other_labels_raises(nights, make_raw, tmp_path, what):
    """Of the same recordings, which would have the labels of both calls."""
    bad = RawDataset(broken(make_raw), {"subject": 0})
    given = BaseConcatDataset([nights.datasets[0], bad])
    with pytest.raises(ValueError, match="recording-1"):
        SignalStore.create(tmp_path / "store", given, verbose=0)
    other = deepcopy(nights.datasets[0])
    if what == "labels":
        other.y = [9] * len(other)
    else:
        other.crop_inds = other.crop_inds - [0, 0, 1]
    with pytest.raises(ValueError, match="recording-0"):
        SignalStore.create(tmp_path / "store", BaseConcatDataset([other, bad]), on_error="warn")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(channels="C3"), "'C3'"),
        (dict(file="thesis.tex"), r"thesis\.tex"),
        (dict(file="store.json"), r"store\.json"),
    ],
)
def test_invalid_arguments_and_other_folders_are_not_written(arguments, message, tree, tmp_path):
    path = tmp_path / "store"
    if file := arguments.pop("file", None):
        path.mkdir()
        (path / file).write_text('{"shop": "mine"}')
    before = on_disk(path) if file else None
    with pytest.raises((ValueError, TypeError), match=message):
        SignalStore.create(path, tree, **arguments)
    assert (on_disk(path) if path.exists() else None) == before


def test_new_files_of_a_folder_are_added(own_tree, make_edf, make_raw, tmp_path, opened):
    path = tmp_path / "store"
    store = SignalStore.create(path, own_tree, dtype="float32", verbose=0)
    samples = (path / "samples.bin").read_bytes()
    make_edf(own_tree / "new/night.edf", ["C3", "C4", "Cz"])
    opened.clear()
    with pytest.raises(ValueError, match="dtype is 'int16', was 'float32'; high is 30"):
        SignalStore.create(path, own_tree, high=30, verbose=0)
    longer = SignalStore.create(path, own_tree, dtype="float32", verbose=0)
    assert opened == ["new/night.edf"]
    assert longer.recordings["name"].tolist() == [*store.recordings["name"], "new/night.edf"]
    assert (path / "samples.bin").read_bytes()[: len(samples)] == samples
    assert len(longer) == len(store) + 3  # the open store does not change
    np.testing.assert_array_equal(store.windows(300)[3], longer.windows(300)[3])
    again = SignalStore.create(path, own_tree, dtype="float32", verbose=0)  # nothing is new
    assert again.checksum == longer.checksum
    with pytest.raises(ValueError, match="complete store"):
        SignalStore.create(path, of_raws([make_raw(0)]), dtype="float32", verbose=0)
    os.utime(own_tree / "b/r01.dat")
    with pytest.raises(ValueError, match=r"r01\.hea"):
        SignalStore.create(path, own_tree, dtype="float32", verbose=0)


@pytest.fixture
def full_disk(monkeypatch):
    """A disk that is full after a given number of writes; the next write is incomplete."""
    state = dict(left=10**9)

    class Full(FileIO):
        def write(self, content):
            state["left"] -= 1
            if state["left"] == 0:
                return super().write(content[: len(content) // 2])
            if state["left"] < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(content)

    def open_full(descriptor, mode, buffering):
        return Full(descriptor, mode)

    monkeypatch.setattr(_writing, "open", open_full, raising=False)

    def allow(n_writes: int) -> None:
        state["left"] = n_writes + 1

    return allow


def test_a_full_disk_keeps_stored_recordings(recordings, tmp_path, full_disk, opened):
    path = tmp_path / "store"
    full_disk(2)
    with pytest.raises(OSError, match="No space left") as error:
        SignalStore.create(path, recordings, verbose=0)
    assert error.value.errno == errno.ENOSPC
    with pytest.raises(ValueError, match=r"incomplete.* 2\)"):
        SignalStore.open(path)
    assert (path / "samples.bin").stat().st_size == 2 * 2 * (3000 + 2000)  # no incomplete recording
    full_disk(100)
    opened.clear()
    store = SignalStore.create(path, recordings, verbose=0)
    assert opened == ["recording-2", "recording-3"]
    assert store.checksum == SignalStore.create(tmp_path / "b", recordings, verbose=0).checksum


def in_volts(signals) -> BaseConcatDataset:
    info = mne.create_info(["E0", "E1"], 100, "eeg")
    return of_raws(mne.io.RawArray(values, info, verbose="error") for values in signals)


def test_clipped_samples_are_counted_and_named(tmp_path):
    rng = np.random.default_rng(0)
    quiet, artifact = 1e-5 * rng.standard_normal((2, 2, 5000))
    artifact[1, 100:130] = 1.0
    given = in_volts([quiet, artifact])
    with (
        pytest.warns(UserWarning, match=r"recording-1.* \(E1 30 of 5000\)"),
        pytest.warns(UserWarning, match="NOPE"),  # which no recording has
    ):
        store = SignalStore.create(
            tmp_path / "store", given, channels=["E0", "E1", "NOPE"], verbose=0
        )
    assert store.recordings["n_clipped"].tolist() == [0, 30]
    (crop,) = SignalStore.open(tmp_path / "store").crops([3], [1000], 4000)
    np.testing.assert_allclose(crop, artifact[1, 1000:], atol=1e-5 / 20)


NOISE, *NOISES = 1e-5 * np.random.default_rng(0).standard_normal((4, 2, 5000))
COARSE = NOISE.copy()
COARSE[0, :1000] = np.resize([-1.0, 1.0], 1000)


@pytest.mark.parametrize(
    ("signals", "message"),
    [
        ([COARSE], r"int16 .*recording-0.* \(E0\)"),
        ([NOISE, 2e-6 * NOISES[0]], r"recording-1.* 2e-11.* by 1e6"),  # scaled twice
        (
            [NOISE, NOISES[0], 1e3 * NOISES[1], NOISES[2]],
            r"all 4 .*: recording-2 \(subject 2\)\.",
        ),
    ],
)
def test_doubtful_amplitudes_are_named(signals, message, tmp_path):
    with pytest.warns(UserWarning, match=message):
        SignalStore.create(tmp_path / "store", in_volts(signals), verbose=0)


@pytest.fixture
def two_corpora(tmp_path):
    """Two corpora of 20 and 19 s, and of 14 s."""
    for name, folder, seconds in (("P1", "a", 20), ("P2", "a", 19), ("P3", "b", 14)):
        own_recipe.write(tmp_path / folder, f"{name}_train", seconds)
    return [own_recipe.corpus_of(tmp_path / name, name) for name in "ab"]


def test_corpora_are_stored_as_their_recipes_prepare_them(two_corpora, tmp_path):
    store = SignalStore.create(tmp_path / "store", two_corpora, dtype="float32", verbose=0)
    assert store.recordings["corpus"].tolist() == ["a", "a", "b"]
    assert store.subjects == ["a:P1", "a:P2", "b:P3"]
    for row, corpus in zip(store.recordings.itertuples(), [*"aab"], strict=True):
        recordings = two_corpora["ab".index(corpus)].recordings
        (one,) = [r for r in recordings if f"{corpus}:{r.subject}" == row.subject]
        expected = own_recipe.prepare(one).get_data()
        found = store.crops(row.first_signal + np.arange(2), np.zeros(2, int), row.n_times)
        np.testing.assert_array_equal(found, expected.astype("float32"))


def test_shares_are_in_the_index_and_may_change_while_storing(two_corpora, tmp_path):
    path, broken = tmp_path / "store", tmp_path / "b" / "P3_train.txt"
    content = broken.read_text()
    broken.write_text("")
    with pytest.raises(ValueError, match=r"P3_train\.txt"):
        SignalStore.create(path, two_corpora, shares={"a": 1, "b": 1}, verbose=0)
    broken.write_text(content)
    store = SignalStore.create(path, two_corpora, shares={"a": 2, "b": 1}, verbose=0)
    assert SignalStore.open(path).shares == {"a": 2.0, "b": 1.0}
    plain = SignalStore.create(tmp_path / "plain", two_corpora, verbose=0)
    assert plain.checksum != store.checksum  # a run does not resume on another mixture
    assert (plain.path / "samples.bin").read_bytes() == (path / "samples.bin").read_bytes()


def test_a_stored_recording_that_is_left_out_now_is_refused(two_corpora, tmp_path):
    """As when YSYW is divided again after more subjects were downloaded."""
    a, b = two_corpora
    path = tmp_path / "store"
    SignalStore.create(path, a, verbose=0)
    with pytest.raises(ValueError, match=r"corpora\.b"):
        SignalStore.create(path, [a, b], verbose=0)
    own_recipe.write(tmp_path / "a", "P4_train", 12)
    fewer = own_recipe.corpus_of(tmp_path / "a", "a", exclude=[["P1"]])
    with pytest.raises(ValueError, match="P1"):
        SignalStore.create(path, fewer, verbose=0)
    more = own_recipe.corpus_of(tmp_path / "a", "a", exclude=[["P9"]])
    assert SignalStore.create(path, more, verbose=0).subjects == ["a:P1", "a:P2", "a:P4"]


def test_a_recipe_prepares_its_recordings_alone(two_corpora, tmp_path):
    a, _ = two_corpora
    with pytest.raises(ValueError, match="low, mains"):
        SignalStore.create(tmp_path / "store", a, low=1, mains=50)
    with pytest.raises(ValueError, match="corpus a"):
        SignalStore.create(tmp_path / "store", [a, a])


def test_test_subjects_of_a_corpus_are_not_stored_from_another(two_corpora, tmp_path):
    a, _ = two_corpora
    own_recipe.write(tmp_path / "c", "P1_test", 6)
    own_recipe.write(tmp_path / "c", "P7_train", 6)
    c = own_recipe.corpus_of(tmp_path / "c", "c")
    store = SignalStore.create(tmp_path / "store", [a, c], verbose=0)
    assert list(store.recordings["name"]) == ["a/P2_train.txt", "c/P7_train.txt"]


def test_what_is_stored_before_a_process_is_killed_is_kept(two_corpora, tmp_path, monkeypatch):
    read_all = _writing.read_all

    def killed_after_the_first(*arguments):
        yield next(read_all(*arguments))
        raise TerminatedWorkerError("A worker process was unexpectedly terminated")

    with monkeypatch.context() as patch:
        patch.setattr(_writing, "read_all", killed_after_the_first)
        with pytest.raises(TerminatedWorkerError):
            SignalStore.create(tmp_path / "store", two_corpora, verbose=0)
    assert len(Index.read(tmp_path / "store").recordings) == 1
    assert len(SignalStore.create(tmp_path / "store", two_corpora, verbose=0).recordings) == 3
