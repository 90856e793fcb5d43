"""The size of a corpus from its store and its numbers."""

from __future__ import annotations

import mne
import numpy as np
import pytest
from support import own_recipe

from braindecode_pars.runs import CorpusSize
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


def test_a_store(folder, tmp_path):
    store = SignalStore.create(tmp_path / "store", folder, verbose=0)
    size = CorpusSize.of_store(store, window_seconds=3)
    assert size == (3 + 3 + 4 + 4 + 4, 100.0, store.n_bytes, 2)
    assert CorpusSize.of_store(store.select(exclude=("0", "1")), 3).n_windows == 12


def test_windows_are_counted_in_samples(folder, tmp_path):
    """As in a run; 10 s // 0.1 s is 99 in floating point."""
    store = SignalStore.create(tmp_path / "store", folder, verbose=0)
    expected = Steps(store, 10, 1).n_windows
    assert expected == 100 + 110 + 120 + 130 + 140
    assert CorpusSize.of_store(store, 0.1).n_windows == expected
    with pytest.raises(ValueError, match="0 samples"):
        CorpusSize.of_store(store, 0.001)


def test_numbers():
    size = CorpusSize.of_numbers(1200, sfreq=200, window_seconds=30, n_chans=6)
    assert size.store_bytes == 1200 * 30 * 200 * 6 * 2
    for name, value in (("n_windows", 0), ("sfreq", -1), ("n_chans", 1.5), ("sfreq", "200")):
        with pytest.raises((TypeError, ValueError), match=name):
            CorpusSize.of_numbers(**{"n_windows": 5, "sfreq": 200, name: value})


def test_a_store_of_many_channels_counts_its_windows_once(store):
    assert CorpusSize.of_store(store, 5).n_windows == 4 + 1 + 0 + 2


def test_a_store_with_shares_has_the_windows_of_its_pass(tmp_path):
    for name, folder, seconds in (("P1", "a", 20), ("P2", "b", 11)):
        own_recipe.write(tmp_path / folder, f"{name}_train", seconds)
    corpora = [own_recipe.corpus_of(tmp_path / name, name) for name in "ab"]
    store = SignalStore.create(tmp_path / "store", corpora, shares={"a": 1, "b": 1}, verbose=0)
    assert CorpusSize.of_store(store, 5).n_windows == 2 + 2
    plain = SignalStore.create(tmp_path / "plain", corpora, verbose=0)
    assert CorpusSize.of_store(plain, 5).n_windows == 4 + 2
