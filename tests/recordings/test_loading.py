"""Reading a corpus: order, parallel reading, damaged files and the cache."""

from __future__ import annotations

import numpy as np
import pytest
from support.recording_files import SETTINGS, read, windows_of

from braindecode_pars.recordings.loading import choose_subjects, read_corpus


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
    with pytest.raises(ValueError, match=r"s1\.txt .*it is empty"):
        read_corpus(recordings, read, SETTINGS, verbose=0)
    with pytest.warns(UserWarning, match=r"1 of 3 .*s1\.txt"):
        windows = read_corpus(recordings, read, SETTINGS, on_error="warn", verbose=0)
    assert windows.description["subject"].tolist() == [3, 2]
    with pytest.raises(ValueError, match=r"on_error .*'skip'"):
        read_corpus(recordings, read, SETTINGS, on_error="skip")


def test_a_file_that_was_not_downloaded_is_named(recordings):
    """A link of git-annex without its content is not called damaged."""
    recordings[1].file.unlink()
    recordings[1].file.symlink_to("absent")
    message = r"s1\.txt .*link"
    with pytest.raises(ValueError, match=message):
        read_corpus(recordings, read, SETTINGS, verbose=0)
    with pytest.warns(UserWarning, match="1 of 3 .*datalad get"):
        assert len(read_corpus(recordings, read, SETTINGS, on_error="warn", verbose=0)) == 9


@pytest.mark.parametrize("cached", [False, True])
def test_too_short_recordings_are_counted(recordings, tmp_path, caplog, cached):
    caplog.set_level("INFO")
    recordings[2].file.write_text("2 1")
    for _ in range(2):
        cache = tmp_path / "cache" if cached else None
        windows = read_corpus(recordings, read, SETTINGS, cache=cache)
        assert windows.description["subject"].tolist() == [3, 1]
        assert caplog.messages[-1].startswith("1 of 3 recordings")
    for recording in recordings:
        recording.file.write_text("2 1")
    with pytest.raises(ValueError, match="3 recordings"):
        read_corpus(recordings, read, SETTINGS, verbose=0)


def test_choosing_subjects(recordings, tmp_path):
    assert [r.subject for r in choose_subjects(recordings, [2, 3], tmp_path)] == [3, 2]
    assert choose_subjects(recordings, None, tmp_path) == recordings
    with pytest.raises(FileNotFoundError, match=r"8, 9.* 3, 1, 2"):
        choose_subjects(recordings, [1, 8, 9], tmp_path)
    with pytest.raises(ValueError, match="empty"):
        choose_subjects(recordings, [], tmp_path)
    with pytest.raises(TypeError, match="'s1'"):
        choose_subjects(recordings, "s1", tmp_path)
