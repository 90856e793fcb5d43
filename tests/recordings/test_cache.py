"""The cache of prepared recordings."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from support.recording_files import SETTINGS, read, windows_of

from braindecode_pars._common.files import locked
from braindecode_pars.recordings.loading import Recording, WindowCache, read_corpus
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


def test_deleted_signals_are_prepared_again(recordings, tmp_path):
    cache = tmp_path / "cache"
    read_corpus(recordings, read, SETTINGS, cache=cache, verbose=0)
    for file in cache.glob("s1-*.fif"):
        file.unlink()
    with pytest.warns(UserWarning, match=r"1 entry of the cache .*s1-.*_raw\.fif cannot be read"):
        windows = read_corpus(recordings, read, SETTINGS, cache=cache, verbose=0)
    assert len(windows) == 12


def test_an_incomplete_entry_is_prepared_again(recordings, tmp_path):
    cache = tmp_path / "cache"
    read_corpus(recordings, read, SETTINGS, cache=cache, verbose=0)
    (entry,) = cache.glob("s1-*.json")
    entry.write_text(entry.read_text()[:20])
    with pytest.warns(UserWarning, match=r"prepared again: .*s1-.*\.json is damaged"):
        windows = read_corpus(recordings, read, SETTINGS, cache=cache, verbose=0)
    assert len(windows) == 12


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
    ("alter", "reason"),
    [
        (flip_a_bit, r"s1-.*_raw\.fif does not match its checksum"),
        (truncate, r"s1-.*_raw\.fif does not match its checksum"),
        (exchange_signals, r"s1-.*_raw\.fif does not match its checksum"),
        (exchange_all, r"s1-.*\.json is of the recording .*s2\.txt"),
        (edit_targets, r"s1-.*\.json does not match its checksum"),
        (remove_checksum, r"s1-.*\.json does not match its checksum"),
    ],
)
def test_an_altered_entry_is_prepared_again(recordings, tmp_path, alter, reason):
    log, cache = tmp_path / "log", tmp_path / "cache"
    direct = read_corpus(recordings, partial(read, log=log), SETTINGS, cache=cache, verbose=0)
    before, targets = windows_of(direct), direct.get_metadata()["target"].tolist()
    alter(cache)
    with pytest.warns(UserWarning, match=rf"1 entry of the cache .* prepared again: .*{reason}"):
        again = read_corpus(recordings, partial(read, log=log), SETTINGS, cache=cache, verbose=0)
    np.testing.assert_array_equal(windows_of(again), before)
    assert again.get_metadata()["target"].tolist() == targets
    assert len(log.read_text().split()) == 4
    # Now it is as it was.
    read_corpus(recordings, partial(read, log=log), SETTINGS, cache=cache, verbose=0)
    assert len(log.read_text().split()) == 4


def test_entries_of_a_cache_with_other_settings_are_not_used(recordings, tmp_path):
    """Neither copied ones, nor those of a cache whose settings were edited."""
    cache, other = tmp_path / "cache", SETTINGS | {"sfreq": 200.0}
    read_corpus(recordings, read, SETTINGS, cache=cache, verbose=0)
    (cache / "settings.json").write_text(json.dumps(other))
    message = r"3 entries of the cache .*s3-.*\.json was prepared with other settings\."
    with pytest.warns(UserWarning, match=message):
        read_corpus(recordings, read, other, cache=cache, verbose=0)


def test_workers_report_altered_entries(recordings, tmp_path):
    cache = tmp_path / "cache"
    read_corpus(recordings, read, SETTINGS, cache=cache, verbose=0)
    flip_a_bit(cache)
    with pytest.warns(UserWarning, match="does not match its checksum"):
        read_corpus(recordings, read, SETTINGS, cache=cache, n_jobs=2, verbose=0)


def test_a_cache_that_another_process_creates_at_this_moment(tmp_path):
    cache = tmp_path / "cache"
    with ThreadPoolExecutor(1) as pool:
        with locked(cache, "no other process has this folder"):
            opened = pool.submit(WindowCache.open, cache, SETTINGS)
            with pytest.raises(TimeoutError):
                opened.result(timeout=0.3)  # it waits for the other process
            (cache / "settings.json").write_text(json.dumps(SETTINGS))
            (cache / "s1.json").write_text("{}")
        assert opened.result() == WindowCache.open(cache, SETTINGS)


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
    with pytest.raises(ValueError, match=r"contains .* and is not the folder of a cache"):
        read_corpus(recordings, read, SETTINGS, cache=tmp_path, verbose=0)


def test_the_cache_contains_no_pickle(recordings, tmp_path):
    cache = tmp_path / "cache"
    read_corpus(recordings, read, SETTINGS, cache=cache, verbose=0)
    assert {file.suffix or file.name for file in cache.iterdir()} == {".fif", ".json", ".lock"}
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
