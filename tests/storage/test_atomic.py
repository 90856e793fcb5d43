"""Files are written completely or not at all."""

from __future__ import annotations

import errno
import os

import pytest
from support.small_runs import make_store, run

from braindecode_pars.storage._atomic import replace_file


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
