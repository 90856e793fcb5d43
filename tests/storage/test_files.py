"""Files are written completely or not at all, and never over other files; JSON and checksums."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from filelock import FileLock

from braindecode_pars._common.files import (
    as_read,
    changed_settings,
    checksum_of,
    checksum_of_file,
    plain,
    read_checked,
    read_json,
    remove_abandoned,
    replace_file,
    replace_files,
    to_json,
    write_checked,
)


def test_a_new_file_replaces_the_old_one(tmp_path):
    file = tmp_path / "new folder/file"
    for content in (b"old", b"new"):
        replace_file(file, content)
        assert file.read_bytes() == content
    assert [found.name for found in file.parent.iterdir()] == ["file"]


def test_an_error_names_the_file_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match="file"):
        replace_file(tmp_path / "file/below", b"")


def test_no_file_is_replaced_before_all_are_written(tmp_path, monkeypatch):
    (tmp_path / "a.json").write_text("old")
    calls = []

    def fail_at_the_second(path, content):
        calls.append(path)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        path.write_text("{}")

    monkeypatch.setattr(Path, "write_bytes", fail_at_the_second)
    with pytest.raises(OSError, match="No space left"):
        replace_files(tmp_path, {"a.json": b"{}", "b.json": b"{}"})
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    assert (tmp_path / "a.json").read_text() == "old"


def test_the_error_names_the_files_that_were_already_replaced(tmp_path, monkeypatch):
    for name in ("model.bin", "config.json"):
        (tmp_path / name).write_bytes(b"old")
    replace = os.replace

    def fail_at_the_second(source, target):
        if source.name == "config.json":
            raise PermissionError(13, "Permission denied")
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail_at_the_second)
    contents = {"config.json": b"new", "model.bin": b"new"}
    with pytest.raises(PermissionError, match=r"Permission denied.*: model\.bin\.") as result:
        replace_files(tmp_path, contents)
    assert "unchanged" not in str(result.value)
    assert (tmp_path / "model.bin").read_bytes() == b"new"
    with pytest.raises(PermissionError, match=r"config\.json cannot .* unchanged"):
        replace_files(tmp_path, {"config.json": b"new"})
    assert (tmp_path / "config.json").read_bytes() == b"old"


def test_ctrl_c_while_writing_leaves_nothing_behind(tmp_path, monkeypatch):
    def interrupted(path, content):
        path.write_text("{")
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        replace_files(tmp_path, {"a.json": b""})
    assert list(tmp_path.iterdir()) == []


def test_folders_of_killed_writers_are_removed_and_those_of_living_ones_kept(tmp_path):
    killed, living, young = (tmp_path / f".writing-{name}" for name in ("killed", "living", "new"))
    for aside in (killed, living, young):
        (aside / "new").mkdir(parents=True)
        (aside / "new/file").write_bytes(b"half")
    for aside in (killed, living):
        (aside / ".lock").touch()
        os.utime(aside, (0, 0))
    with FileLock(living / ".lock"):
        os.utime(living, (0, 0))
        replace_file(tmp_path / "file", b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == [living.name, young.name, "file"]


@pytest.mark.parametrize("names", [[], ["old"], [".lock", "new", "old"]])
def test_the_folder_of_a_writer_that_was_killed_while_it_cleaned_up_is_removed(tmp_path, names):
    """Its files are removed one after the other, the lock perhaps first."""
    killed = tmp_path / "below" / ".writing-killed"
    killed.mkdir(parents=True)
    for name in names:
        (killed / name).touch() if name == ".lock" else (killed / name).mkdir()
    assert remove_abandoned(tmp_path / "below") == [killed]  # too young
    remove_abandoned(tmp_path)
    assert killed.exists()
    remove_abandoned(tmp_path, at_once=True)
    assert not killed.exists()


def test_a_folder_of_the_user_with_such_a_name_is_kept(tmp_path):
    own = tmp_path / ".writing-thesis"
    (own / "new").mkdir(parents=True)
    (own / "chapter.tex").write_text("1")
    os.utime(own, (0, 0))
    replace_file(tmp_path / "file", b"new")
    assert (own / "chapter.tex").read_text() == "1"
    assert (own / "new").is_dir()


def test_checksums_are_of_the_content(tmp_path):
    content = bytes(range(256)) * 5000
    (tmp_path / "file").write_bytes(content)
    assert checksum_of_file(tmp_path / "file") == checksum_of(content)
    assert checksum_of(b"ab") != checksum_of(b"ac")
    assert len(checksum_of(b"")) == 16


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("W"), "W"),
        (torch.tensor(2), 2),
        (float("nan"), None),
        (pd.NA, None),
        (None, None),
        (float("inf"), "inf"),
        (Path("a"), "a"),
        ((1, 2), "(1, 2)"),
    ],
)
def test_one_value(value, expected):
    assert plain(value) == expected
    assert type(plain(value)) is type(expected)


def test_values_are_read_back(tmp_path):
    given = {"n": np.int64(3), "subjects": ["ä", 1, None], "folder": tmp_path}
    write_checked(tmp_path / "a.json", given)
    (tmp_path / "b.json").write_text(to_json(given), encoding="utf-8")
    expected = {"n": 3, "subjects": ["ä", 1, None], "folder": str(tmp_path)}
    assert read_checked(tmp_path / "a.json") == read_json(tmp_path / "b.json") == expected
    assert as_read(given) == expected


@pytest.mark.parametrize(
    "content", [b"\xff{", b"[1]", b"[" * 100_000, None], ids=["bytes", "list", "deep", "folder"]
)
def test_damaged_files_are_named(tmp_path, content):
    file = tmp_path / "a.json"
    with pytest.raises(FileNotFoundError):
        read_json(file)
    file.mkdir() if content is None else file.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.json"):
        read_json(file)


@pytest.mark.parametrize("edit", [("0.1", "0.2"), ("checksum", "check")])
def test_an_edited_file_is_refused(tmp_path, edit):
    file = tmp_path / "a.json"
    write_checked(file, {"loss": 0.1})
    file.write_text(file.read_text().replace(*edit))
    with pytest.raises(ValueError, match=r"a\.json"):
        read_checked(file)


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ({"lr": 0.1}, {"lr": np.float64(0.1)}, []),
        ({"lr": 0.1}, {"lr": 0.2}, ["lr is 0.2, was 0.1"]),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, ["a.b is 2, was 1"]),
        ({"a": [1, 2]}, {"a": (1, 3)}, ["a[1] is 3, was 2"]),
        ({"a": [1, 2]}, {"a": [1]}, ["a is [1], was [1, 2]"]),
        ({}, {"a": 1}, ["a is 1, was not set"]),
        ({"a": 1}, {}, ["a is not set, was 1"]),
        ({"a": 1}, {"a": "x" * 99}, [f"a is {'x' * 99!r:.60}, was 1"]),
    ],
)
def test_differences(before, now, expected):
    assert changed_settings(before, now) == expected
