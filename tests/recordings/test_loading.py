"""Reading a corpus: order, parallel reading, damaged files and the cache."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
from support.recording_files import SETTINGS, read

from braindecode_pars.recordings._cache import WindowCache
from braindecode_pars.recordings.loading import Recording, choose_subjects, read_corpus


@pytest.fixture
def recordings(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    made = []
    for subject, seconds in ((3, 10), (1, 6), (2, 8)):
        file = folder / f"s{subject}.txt"
        file.write_text(f"{subject} {seconds}")
        made.append(Recording(file, dict(subject=subject, split="train")))
    return made


def windows_of(dataset):
    return np.stack([dataset[i][0] for i in range(len(dataset))])


def test_windows_keep_the_order_and_descriptions_of_the_recordings(recordings):
    windows = read_corpus(recordings, read, SETTINGS, verbose=0)
    assert windows.description["subject"].tolist() == [3, 1, 2]
    assert set(windows.description["split"]) == {"train"}
    assert [len(ds) for ds in windows.datasets] == [5, 3, 4]
    assert windows.datasets[0].metadata["target"].tolist() == [0, 0, 1, 1, 1]


def test_two_processes_read_the_same(recordings):
    one = read_corpus(recordings, read, SETTINGS, verbose=0)
    two = read_corpus(recordings, read, SETTINGS, n_jobs=2, verbose=0)
    np.testing.assert_array_equal(windows_of(one), windows_of(two))
    assert one.description.equals(two.description)


def test_a_damaged_file_is_named(recordings):
    recordings[1].file.write_text("")
    with pytest.raises(ValueError, match=r"s1\.txt cannot be used: it is empty .*on_error='warn'"):
        read_corpus(recordings, read, SETTINGS, verbose=0)
    with pytest.warns(UserWarning, match=r"1 of 3 recordings were skipped.*s1\.txt"):
        windows = read_corpus(recordings, read, SETTINGS, on_error="warn", verbose=0)
    assert windows.description["subject"].tolist() == [3, 2]
    with pytest.raises(ValueError, match="on_error must be 'raise' or 'warn', got 'skip'"):
        read_corpus(recordings, read, SETTINGS, on_error="skip")


@pytest.mark.parametrize("cached", [False, True])
def test_too_short_recordings_are_counted(recordings, tmp_path, caplog, cached):
    caplog.set_level("INFO")
    recordings[2].file.write_text("2 1")
    for _ in range(2):
        cache = tmp_path / "cache" if cached else None
        windows = read_corpus(recordings, read, SETTINGS, cache=cache)
        assert windows.description["subject"].tolist() == [3, 1]
        assert "1 of 3 recordings are too short for a window and were skipped." in caplog.text
    for recording in recordings:
        recording.file.write_text("2 1")
    with pytest.raises(ValueError, match="None of 3 recordings contains a window"):
        read_corpus(recordings, read, SETTINGS, verbose=0)


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


def test_choosing_subjects(recordings, tmp_path):
    assert [r.subject for r in choose_subjects(recordings, [2, 3], tmp_path)] == [3, 2]
    assert choose_subjects(recordings, None, tmp_path) == recordings
    with pytest.raises(FileNotFoundError, match="of subjects 8, 9; it has 3, 1, 2"):
        choose_subjects(recordings, [1, 8, 9], tmp_path)
    with pytest.raises(ValueError, match="empty list"):
        choose_subjects(recordings, [], tmp_path)
    with pytest.raises(TypeError, match="the string 's1'; give a list"):
        choose_subjects(recordings, "s1", tmp_path)
