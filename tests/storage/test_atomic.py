"""Files are written completely or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from filelock import FileLock
from support.small_runs import make_store, run

from braindecode_pars._common import files as _atomic
from braindecode_pars._common.files import replace_file, replace_files


def test_a_new_file_replaces_the_old_one(tmp_path):
    file = tmp_path / "new folder/file"
    for content in (b"old", b"new"):
        replace_file(file, content)
        assert file.read_bytes() == content
    assert [found.name for found in file.parent.iterdir()] == ["file"]


def test_an_error_names_the_file_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match=r"file cannot be written \(.*\); its previous content"):
        replace_file(tmp_path / "file/below", b"")


def test_a_full_disk_ends_a_run_but_keeps_its_checkpoints(tmp_path, monkeypatch):
    store, out = make_store(tmp_path / "store"), tmp_path / "run"
    with monkeypatch.context() as patched:
        rename = os.replace

        def full(aside, path):
            if path.name == "step-00000009.safetensors":
                raise OSError(errno.ENOSPC, "No space left on device")
            rename(aside, path)

        patched.setattr(os, "replace", full)
        message = r"step-00000009.* cannot be written \(No space left on device\); its previous"
        with pytest.raises(OSError, match=message):
            run(store, out)
    kept = sorted(file.name for file in (out / "checkpoints").iterdir())
    assert kept == ["step-00000003.safetensors", "step-00000006.safetensors"]
    run(store, out, resume=True)


def test_no_file_is_replaced_before_all_are_written(tmp_path, monkeypatch):
    (tmp_path / "a.json").write_text("old")
    calls = []

    def fail_at_the_second(path, content):
        calls.append(path)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        path.write_text("{}")

    monkeypatch.setattr(Path, "write_bytes", fail_at_the_second)
    with pytest.raises(OSError, match=r"cannot be written \(No space left on device\)"):
        replace_files(tmp_path, {"a.json": b"{}", "b.json": b"{}"})
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    assert (tmp_path / "a.json").read_text() == "old"


def test_a_failed_exchange_is_undone(tmp_path, monkeypatch):
    """Files of two models are never mixed."""
    replace_files(tmp_path, {"a.json": b"1", "b.json": b"1"})
    replace, calls = _atomic.os.replace, []

    def fail_at_the_third(source, target):
        calls.append(target)
        if len(calls) == 3:
            raise OSError(13, "Permission denied")
        replace(source, target)

    monkeypatch.setattr(_atomic.os, "replace", fail_at_the_third)
    with pytest.raises(OSError, match="its previous content is unchanged"):
        replace_files(tmp_path, {"a.json": b"2", "c.json": b"2", "b.json": b"2"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "b.json"]
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes() == b"1"


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


@pytest.mark.parametrize("left", [[], ["new"], ["old"], ["new", "old"], [".lock", "old"]])
def test_the_folder_of_a_writer_that_was_killed_while_it_cleaned_up_is_removed(tmp_path, left):
    """Its files are removed one after the other, the lock perhaps first."""
    killed = tmp_path / ".writing-killed"
    killed.mkdir()
    for name in left:
        (killed / name).touch() if name == ".lock" else (killed / name).mkdir()
    os.utime(killed, (0, 0))
    replace_file(tmp_path / "file", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_folder_of_the_user_with_such_a_name_is_kept(tmp_path):
    own = tmp_path / ".writing-thesis"
    (own / "new").mkdir(parents=True)
    (own / "chapter.tex").write_text("1")
    os.utime(own, (0, 0))
    replace_file(tmp_path / "file", b"new")
    assert (own / "chapter.tex").read_text() == "1"
    assert (own / "new").is_dir()
