"""The cache of prepared recordings."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
from support.recording_files import SETTINGS, read, windows_of

from braindecode_pars.recordings._cache import WindowCache
from braindecode_pars.recordings.loading import Recording, read_corpus


def test_the_cache_is_read_instead_of_the_files(recordings, tmp_path):
    log = tmp_path / "log"
    direct = read_corpus(recordings, read, SETTINGS, verbose=0)
    for _ in range(2):
        cached = read_corpus(
            recordings, partial(read, log=log), SETTINGS, cache=tmp_path / "cache", verbose=0
        )
        np.testing.assert_allclose(windows_of(cached), windows_of(direct), rtol=1e-6)
        assert cached.description.equals(direct.description)
        assert not cached.datasets[0].raw.preload  # signals are read when indexed
    assert sorted(log.read_text().split()) == ["s1.txt", "s2.txt", "s3.txt"]


def test_the_cache_notices_a_changed_file(recordings, tmp_path):
    cache = tmp_path / "cache"
    read_corpus(recordings, read, SETTINGS, cache=cache, verbose=0)
    recordings[0].file.write_text("77 10")
    windows = read_corpus(recordings, read, SETTINGS, cache=cache, verbose=0)
    direct = read_corpus(recordings, read, SETTINGS, verbose=0)
    np.testing.assert_allclose(windows_of(windows), windows_of(direct), rtol=1e-6)


@pytest.mark.parametrize(
    ("file", "beside"),
    [("s1.edf", "s1.csv_bi"), ("sub-1_task-sleep_eeg.set", "sub-1_task-sleep_events.tsv")],
)
def test_the_cache_notices_changed_annotations(tmp_path, file, beside):
    log, folder = tmp_path / "log", tmp_path / "corpus"
    folder.mkdir()
    (folder / file).write_text("1 10")
    (folder / beside).write_text("as published")
    for corrected in (False, False, True):
        if corrected:
            (folder / beside).write_text("corrected later")
        read_corpus(
            [Recording(folder / file, dict(subject=1))],
            partial(read, log=log),
            SETTINGS,
            cache=tmp_path / "cache",
            verbose=0,
        )
    assert len(log.read_text().split()) == 2


def test_deleted_signals_are_prepared_again(recordings, tmp_path):
    cache = tmp_path / "cache"
    read_corpus(recordings, read, SETTINGS, cache=cache, verbose=0)
    for file in cache.glob("s1-*.fif"):
        file.unlink()
    assert len(read_corpus(recordings, read, SETTINGS, cache=cache, verbose=0)) == 12


def test_an_incomplete_entry_is_prepared_again(recordings, tmp_path):
    cache = tmp_path / "cache"
    read_corpus(recordings, read, SETTINGS, cache=cache, verbose=0)
    (entry,) = cache.glob("s1-*.json")
    entry.write_text(entry.read_text()[:20])
    assert len(read_corpus(recordings, read, SETTINGS, cache=cache, verbose=0)) == 12


def test_a_cache_with_other_settings_raises(recordings, tmp_path):
    cache = tmp_path / "cache"
    read_corpus(recordings, read, SETTINGS, cache=cache, verbose=0)
    with pytest.raises(ValueError, match=r"other settings: sfreq is 200\.0, was 100\.0"):
        read_corpus(recordings, read, SETTINGS | {"sfreq": 200.0}, cache=cache, verbose=0)
    with pytest.raises(ValueError, match="mains is 50, was not set"):
        read_corpus(recordings, read, SETTINGS | {"mains": 50}, cache=cache, verbose=0)
    (cache / "settings.json").write_text("[1")
    with pytest.raises(ValueError, match=r"settings\.json is damaged"):
        WindowCache.open(cache, SETTINGS)


def test_a_folder_with_other_files_is_not_a_cache(recordings, tmp_path):
    (tmp_path / "thesis.txt").write_text("do not touch")
    with pytest.raises(ValueError, match="is not empty and not a cache"):
        read_corpus(recordings, read, SETTINGS, cache=tmp_path, verbose=0)


def test_the_cache_contains_no_pickle(recordings, tmp_path):
    cache = tmp_path / "cache"
    read_corpus(recordings, read, SETTINGS, cache=cache, verbose=0)
    assert {file.suffix for file in cache.iterdir()} == {".fif", ".json"}
    for file in cache.glob("*.json"):
        json.loads(file.read_text())
