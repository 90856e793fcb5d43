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
    plain,
    read_checked,
    read_json,
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


def test_folders_of_killed_writers_are_removed_and_those_of_living_ones_kept(tmp_path):
    killed, living, young = (tmp_path / f".writing-{name}" for name in ("killed", "living", "new"))
    for aside in (killed, living, young):
        (aside / "new").mkdir(parents=True)
        (aside / "new/file").write_bytes(b"half")
    own = tmp_path / ".writing-thesis"  # the user's
    own.mkdir()
    (own / "chapter.tex").touch()
    os.utime(own, (0, 0))
    for aside in (killed, living):
        (aside / ".lock").touch()
        os.utime(aside, (0, 0))
    with FileLock(living / ".lock"):
        os.utime(living, (0, 0))
        replace_file(tmp_path / "file", b"new")
    kept = [living.name, young.name, own.name, "file"]
    assert sorted(path.name for path in tmp_path.iterdir()) == kept


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int64(3), 3),
        (np.str_("W"), "W"),
        (torch.tensor(2), 2),
        (float("nan"), None),
        (pd.NA, None),
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


@pytest.mark.parametrize("content", [b"\xff{", b"[1]"], ids=["bytes", "list"])
def test_damaged_files_are_named(tmp_path, content):
    file = tmp_path / "a.json"
    file.write_bytes(content)
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
        ({"a": [1, 2]}, {"a": (1, 3)}, ["a[1] is 3, was 2"]),
        ({"a": [1, 2]}, {"a": [1]}, ["a is [1], was [1, 2]"]),
        ({}, {"a": 1}, ["a is 1, was not set"]),
        ({"a": 1}, {}, ["a is not set, was 1"]),
    ],
)
def test_differences(before, now, expected):
    assert changed_settings(before, now) == expected
