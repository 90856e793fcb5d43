"""The size of a corpus from its store and its numbers."""

from __future__ import annotations

import pytest
from support import own_recipe

from braindecode_pars.runs import CorpusSize
from braindecode_pars.runs.steps import Steps
from braindecode_pars.signal_store import SignalStore


def test_a_store(store):
    """Of many channels, windows are counted once; 10 s // 0.1 s is 99 in floating point."""
    assert CorpusSize.of_store(store, 3) == (6 + 2 + 0 + 4, 100.0, store.n_bytes, 4)
    assert CorpusSize.of_store(store.select(exclude=["subject-0"]), 3).n_windows == 2 + 4
    expected = Steps(store, 10, 1).n_windows
    assert CorpusSize.of_store(store, 0.1).n_windows == expected == 200 + 70 + 20 + 120
    with pytest.raises(ValueError, match="0 samples"):
        CorpusSize.of_store(store, 0.001)


def test_numbers():
    size = CorpusSize.of_numbers(1200, sfreq=200, window_seconds=30, n_chans=6)
    assert size.store_bytes == 1200 * 30 * 200 * 6 * 2
    for name, value in (("n_windows", 0), ("sfreq", -1), ("n_chans", 1.5), ("sfreq", "200")):
        with pytest.raises((TypeError, ValueError), match=name):
            CorpusSize.of_numbers(**{"n_windows": 5, "sfreq": 200, name: value})


def test_a_store_with_shares_has_the_windows_of_its_pass(tmp_path):
    for name, folder, seconds in (("P1", "a", 20), ("P2", "b", 11)):
        own_recipe.write(tmp_path / folder, f"{name}_train", seconds)
    corpora = [own_recipe.corpus_of(tmp_path / name, name) for name in "ab"]
    store = SignalStore.create(tmp_path / "store", corpora, shares={"a": 1, "b": 1}, verbose=0)
    assert CorpusSize.of_store(store, 5).n_windows == 2 + 2
    plain = SignalStore.create(tmp_path / "plain", corpora, verbose=0)
    assert CorpusSize.of_store(plain, 5).n_windows == 4 + 2
