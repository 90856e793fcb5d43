"""The size of a corpus from its store, its folder and its numbers."""

from __future__ import annotations

import mne
import numpy as np
import pytest
from support import own_recipe
from support.small_runs import make_store

from braindecode_pars.runs import CorpusSize
from braindecode_pars.runs import planning as module
from braindecode_pars.runs.steps import Steps
from braindecode_pars.signal_store import SignalStore


@pytest.fixture
def folder(tmp_path):
    """Five recordings of 10, 11, ... 14 s with two EEG channels and an ECG at 100 Hz."""
    rng = np.random.default_rng(0)
    for number in range(5):
        info = mne.create_info(["C3", "C4", "ECG"], 100.0, ["eeg", "eeg", "ecg"])
        noise = rng.normal(scale=1e-5, size=(3, 1000 + 100 * number))
        path = tmp_path / "files" / f"sub-{number}_raw.fif"
        path.parent.mkdir(exist_ok=True)
        mne.io.RawArray(noise, info, verbose="error").save(path, verbose="error")
    return tmp_path / "files"


def test_a_store_and_the_folder_that_it_is_made_of(folder, tmp_path):
    planned = CorpusSize.of_path(folder, window_seconds=3)
    store = SignalStore.create(tmp_path / "store", folder, verbose=0)
    made = CorpusSize.of_path(tmp_path / "store", window_seconds=3)
    assert planned[:3] == made[:3] == (3 + 3 + 4 + 4 + 4, 100.0, store.n_bytes)
    assert planned.description == f"the folder {folder}, 5 recordings"
    excluded = CorpusSize.of_path(tmp_path / "store", 3, exclude=("0", "1"))
    assert excluded.n_windows == 12
    # At another rate.
    assert CorpusSize.of_folder(folder, 3, sfreq=50).store_bytes == planned.store_bytes / 2


def test_whose_the_recordings_of_a_folder_are_matters_only_to_leave_some_out(folder):
    for number in range(5):
        (folder / f"sub-{number}_raw.fif").rename(folder / f"P1_night{number}_raw.fif")
    assert CorpusSize.of_path(folder, 3).n_windows == 18
    with pytest.raises(ValueError, match="P1"):
        CorpusSize.of_path(folder, 3, exclude=("P1",))


def test_subjects_of_a_folder_are_excluded(folder):
    excluded = CorpusSize.of_path(folder, 3, exclude=("0", "sub-001"))
    assert excluded.n_windows == 12
    assert excluded.description.endswith("3 recordings")
    with pytest.raises(ValueError, match=r"\b7\b"):
        CorpusSize.of_path(folder, 3, exclude=("0", "7"))
    with pytest.raises(ValueError, match="remains"):
        CorpusSize.of_path(folder, 3, exclude=tuple("01234"))


def test_windows_are_counted_in_samples(folder, tmp_path):
    """As in a run; 10 s // 0.1 s is 99 in floating point."""
    store = SignalStore.create(tmp_path / "store", folder, verbose=0)
    expected = Steps(store, 10, 1).n_windows
    assert expected == 100 + 110 + 120 + 130 + 140
    assert CorpusSize.of_store(store, 0.1).n_windows == expected
    assert CorpusSize.of_folder(folder, 0.1).n_windows == expected
    with pytest.raises(ValueError, match="0 samples"):
        CorpusSize.of_store(store, 0.001)


def test_a_large_folder_is_estimated(folder, monkeypatch):
    whole = CorpusSize.of_folder(folder, window_seconds=3)
    monkeypatch.setattr(module, "SAMPLE", 3)  # of 10, 12 and 14 s
    part = CorpusSize.of_folder(folder, window_seconds=3)
    assert part.store_bytes == whole.store_bytes
    assert part.n_windows == round((3 + 4 + 4) * 5 / 3)
    assert part.description.endswith("estimated from 3 of them")


def test_numbers():
    size = CorpusSize.of_numbers(1200, sfreq=200, window_seconds=30, n_chans=6)
    assert size.store_bytes == 1200 * 30 * 200 * 6 * 2
    assert size.description == "1,200 windows of 30 s, 10 h of 6 channels"
    for name, value in (("n_windows", 0), ("sfreq", -1), ("n_chans", 1.5), ("sfreq", "200")):
        with pytest.raises((TypeError, ValueError), match=name):
            CorpusSize.of_numbers(**{"n_windows": 5, "sfreq": 200, name: value})


def test_a_corpus_that_cannot_be_planned(folder, tmp_path):
    with pytest.raises(ValueError, match="30 s"):
        CorpusSize.of_path(folder)
    with pytest.raises(FileNotFoundError, match="absent"):
        CorpusSize.of_path(tmp_path / "absent")
    for file in folder.iterdir():
        file.write_bytes(b"no recording")
    with pytest.raises(ValueError, match="None of 5"):
        CorpusSize.of_path(folder)


def test_recordings_of_several_rates(tmp_path):
    for name, sfreq in (("a_raw.fif", 100.0), ("b_raw.fif", 200.0)):
        raw = mne.io.RawArray(np.zeros((1, 4000)), mne.create_info(["C3"], sfreq, "eeg"))
        raw.save(tmp_path / name, verbose="error")
    with pytest.raises(ValueError, match="100, 200 Hz"):
        CorpusSize.of_folder(tmp_path, 10)
    assert CorpusSize.of_folder(tmp_path, 10, sfreq=100).n_windows == 4 + 2


def test_a_store_of_many_channels_counts_its_windows_once(tmp_path):
    store = make_store(tmp_path / "store")  # 20, 7, 2 and 12 s with 1 to 4 channels
    assert CorpusSize.of_store(store, 5).n_windows == 4 + 1 + 0 + 2


def test_a_store_with_shares_has_the_windows_of_its_pass(tmp_path):
    for name, folder, seconds in (("P1", "a", 20), ("P2", "b", 11)):
        own_recipe.write(tmp_path / folder, f"{name}_train", seconds)
    corpora = [own_recipe.corpus_of(tmp_path / name, name) for name in "ab"]
    store = SignalStore.create(tmp_path / "store", corpora, shares={"a": 1, "b": 1}, verbose=0)
    assert CorpusSize.of_store(store, 5).n_windows == 2 + 2
    plain = SignalStore.create(tmp_path / "plain", corpora, verbose=0)
    assert CorpusSize.of_store(plain, 5).n_windows == 4 + 2
