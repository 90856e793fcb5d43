"""Recordings of a command, and where their results belong."""

from __future__ import annotations

from pathlib import Path

import pytest

from braindecode_pars.cli.predicting import find_recordings


def touch(root, *names):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def test_files_and_folders(tmp_path):
    touch(tmp_path, "a.edf", "set/sub-1/b_raw.fif.gz", "set/c.HEA", "set/c.dat", "set/.git/d.edf")
    found = find_recordings([tmp_path / "a.edf", tmp_path / "set"])
    assert {str(file.relative_to(tmp_path)): str(target) for file, target in found.items()} == {
        "a.edf": "a",
        "set/c.HEA": "c",
        "set/sub-1/b_raw.fif.gz": "sub-1/b_raw",
    }


def test_a_recording_counts_once_and_one_that_is_absent_is_kept(tmp_path, monkeypatch):
    touch(tmp_path, "set/a.edf")
    monkeypatch.chdir(tmp_path)
    found = find_recordings([Path("set"), tmp_path / "set" / "a.edf", Path("b.edf")])
    assert [str(target) for target in found.values()] == ["a", "b"]
    assert all(file.is_absolute() for file in found)


def test_later_parts_of_a_split_recording_are_no_recordings(tmp_path):
    touch(tmp_path, "a_raw.fif", "a_raw-1.fif", "b_split-01_raw.fif", "b_split-02_raw.fif")
    found = find_recordings([tmp_path])
    assert [file.name for file in found] == ["a_raw.fif", "b_split-01_raw.fif"]


def test_a_folder_that_is_not_searched_is_an_error(tmp_path):
    touch(tmp_path, "elsewhere/a.edf", "set/b.edf")
    (tmp_path / "set" / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="link"):
        find_recordings([tmp_path / "set"])


def test_a_dead_link_is_kept_and_fails_later(tmp_path):
    (tmp_path / "a.hea").symlink_to(tmp_path / "nowhere")
    assert list(find_recordings([tmp_path])) == [tmp_path / "a.hea"]


@pytest.mark.parametrize(
    ("files", "given", "message"),
    [
        (["x/a.edf", "y/a.edf"], ["x/a.edf", "y/a.edf"], "a_predictions.csv; pass the folder"),
        (["a.edf", "a.bdf"], ["."], "a_predictions.csv; predict"),
        (["a.txt"], ["."], ".edf"),
    ],
)
def test_bad_input(tmp_path, files, given, message):
    touch(tmp_path, *files)
    with pytest.raises(ValueError, match=message):
        find_recordings([tmp_path / name for name in given])
