"""The cache of prepared recordings."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from support.recording_files import SETTINGS, read, windows_of

from braindecode_pars.recordings.loading import Recording, read_corpus
from braindecode_pars.recordings.preparation import filter_and_resample, set_reference
from braindecode_pars.windows.door import as_windows


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
    [
        ("s1.edf", "s1.csv_bi"),
        ("s1.edf", "s1_events.tsv"),
        ("sub-1_ieeg.edf", "sub-1_channels.tsv"),
        ("sub-1_task-sleep_eeg.set", "sub-1_task-sleep_events.tsv"),
    ],
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


def delete_signals(cache):
    for file in cache.glob("s1-*.fif"):
        file.unlink()


def truncate_entry(cache):
    (entry,) = cache.glob("s1-*.json")
    entry.write_text(entry.read_text()[:20])


def flip_a_bit(cache):
    (signals,) = cache.glob("s1-*_raw.fif")
    content = bytearray(signals.read_bytes())
    content[-5000] ^= 64
    signals.write_bytes(content)


def truncate(cache):
    (signals,) = cache.glob("s1-*_raw.fif")
    os.truncate(signals, signals.stat().st_size - 4000)


def exchange_signals(cache):
    one, other = (next(cache.glob(f"{name}-*_raw.fif")) for name in ("s1", "s2"))
    one.write_bytes(other.read_bytes())


def exchange_all(cache):
    for ending in (".json", "_raw.fif"):
        one, other = (next(cache.glob(f"{name}-*{ending}")) for name in ("s1", "s2"))
        one.write_bytes(other.read_bytes())


def edit_targets(cache):
    (entry,) = cache.glob("s1-*.json")
    content = json.loads(entry.read_text())
    content["windows"]["target"][0] = 7
    entry.write_text(json.dumps(content))


def remove_checksum(cache):
    (entry,) = cache.glob("s1-*.json")
    content = json.loads(entry.read_text())
    del content["checksum"]
    entry.write_text(json.dumps(content))


@pytest.mark.parametrize(
    "alter",
    [
        delete_signals,
        truncate_entry,
        flip_a_bit,
        truncate,
        exchange_signals,
        exchange_all,
        edit_targets,
        remove_checksum,
    ],
)
def test_an_altered_entry_is_prepared_again(recordings, tmp_path, alter):
    log, cache = tmp_path / "log", tmp_path / "cache"
    direct = read_corpus(recordings, partial(read, log=log), SETTINGS, cache=cache, verbose=0)
    before, targets = windows_of(direct), direct.get_metadata()["target"].tolist()
    alter(cache)
    again = read_corpus(recordings, partial(read, log=log), SETTINGS, cache=cache, verbose=0)
    np.testing.assert_array_equal(windows_of(again), before)
    assert again.get_metadata()["target"].tolist() == targets
    assert len(log.read_text().split()) == 4
    # Now it is as it was.
    read_corpus(recordings, partial(read, log=log), SETTINGS, cache=cache, n_jobs=2, verbose=0)
    assert len(log.read_text().split()) == 4


def scaled(recording, factor, log=None):
    windows = read(recording, log)
    windows.raw.apply_function(lambda signal: factor * signal, picks="all", verbose="error")
    return windows


def test_other_settings_have_entries_of_their_own(recordings, tmp_path):
    log, cache = tmp_path / "log", tmp_path / "cache"
    for factor in (1, 2, 1):
        settings = SETTINGS | dict(factor=factor)
        direct = read_corpus(recordings, partial(scaled, factor=factor), settings, verbose=0)
        logged = partial(scaled, factor=factor, log=log)
        cached = read_corpus(recordings, logged, settings, cache=cache, verbose=0)
        np.testing.assert_allclose(windows_of(cached), windows_of(direct), rtol=1e-6)
    assert len(log.read_text().split()) == 6
    read_corpus(recordings, logged, settings | dict(version="2"), cache=cache, verbose=0)
    assert len(log.read_text().split()) == 9


def test_a_folder_with_other_files_is_no_cache(recordings, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "thesis.txt").write_text("do not touch")
    with pytest.raises(ValueError, match=r"contains thesis\.txt, and is not .* a cache of windows"):
        read_corpus(recordings, read, SETTINGS, cache=cache, verbose=0)
    assert [file.name for file in cache.iterdir()] == ["thesis.txt"]


def test_two_processes_write_one_cache(recordings, tmp_path):
    reading = partial(read_corpus, recordings, read, SETTINGS, cache=tmp_path / "cache", verbose=0)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: windows_of(reading()), range(2))
    np.testing.assert_array_equal(first, second)


def test_the_cache_contains_no_pickle(recordings, tmp_path):
    cache = tmp_path / "cache"
    read_corpus(recordings, read, SETTINGS, cache=cache, verbose=0)
    assert {file.suffix or file.name for file in cache.iterdir()} == {".fif", ".json"}
    for file in cache.glob("*.json"):
        json.loads(file.read_text())


def test_the_cache_keeps_the_steps_of_the_preparation(recordings, tmp_path):
    """MNE's info has neither a notch filter nor a reference."""
    for _ in range(2):
        cached = read_corpus(recordings, prepared, SETTINGS, cache=tmp_path / "cache", verbose=0)
        (found,) = set(as_windows(cached).column("preprocessing"))
        assert (found.band, found.notch) == ((0.5, 20.0), (30.0,))
        assert (found.reference, found.scale) == ("average", 1.0)


def prepared(recording):
    windows = read(recording)
    filter_and_resample(windows.raw, sfreq=100.0, low=0.5, high=20.0, mains=30.0)
    set_reference(windows.raw, "average")
    return windows
