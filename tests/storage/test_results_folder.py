"""Folders of results: which are used, by whom at a time, and with which settings."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from dataclasses import replace

import pytest
from filelock import FileLock

from braindecode_pars._common import results_folder
from braindecode_pars._common.results_folder import ResultsFolder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("_WAIT_ALONE", "_WAIT_SHARED"):
        monkeypatch.setattr(results_folder, name, 0.1)
    return ResultsFolder(tmp_path / "out", "a study", {"seed": 0}, marks=("study.json",))


def test_new_and_empty_folders_and_those_of_the_same_kind_are_used(folder):
    folder.check()
    assert not folder.path.exists()
    # Remains of a killed process are no content.
    (folder.path / ".writing-abc").mkdir(parents=True)
    (folder.path / ".lock").touch()
    folder.check()
    (folder.path / "samples.bin").touch()
    replace(folder, allowed_files=("samples.bin",)).check()
    (folder.path / "study.json").touch()
    folder.check()


def test_the_error_names_a_file_of_another_program(folder):
    folder.path.mkdir()
    (folder.path / "thesis.tex").touch()
    with pytest.raises(ValueError, match=r"thesis\.tex"), folder.opened():
        pass
    assert [file.name for file in folder.path.iterdir()] == ["thesis.tex"]
    with pytest.raises(ValueError, match=r"thesis\.tex is a file"):
        replace(folder, path=folder.path / "thesis.tex").check()


@pytest.mark.parametrize("exclusive", [True, False])
def test_only_one_process_at_a_time_has_the_lock(folder, exclusive):
    again = folder.opened(exclusive=exclusive)
    with folder.opened(), pytest.raises(BlockingIOError, match="out"), again:
        pass
    with folder.opened(exclusive=exclusive):
        pass


def test_processes_that_share_a_folder_wait_for_each_other(folder, monkeypatch):
    monkeypatch.setattr(results_folder, "_WAIT_SHARED", 60)
    folder.path.mkdir()
    lock = FileLock(folder.path / ".lock", thread_local=False).acquire().lock
    threading.Timer(0.3, lock.release).start()
    with folder.opened(exclusive=False):
        assert not lock.is_locked


def kill_while_writing(folder: ResultsFolder) -> None:
    """Write a first result, and be killed when the second one is written but not renamed."""
    with folder.opened():
        folder.put("study.json", {"n": 1})
        folder.put("fits/a.json", {"n": 1})
        os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        folder.put("fits/a.json", {"n": 2})


@pytest.mark.parametrize("exclusive", [True, False])
def test_after_a_kill_the_last_result_is_complete_and_the_folder_is_free(folder, exclusive):
    child = multiprocessing.get_context("fork").Process(target=kill_while_writing, args=(folder,))
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    (aside,) = folder.path.glob("fits/.writing-*")
    with folder.opened(exclusive=exclusive):
        assert folder.get("fits/a.json") == {"n": 1}
        # Others may still write to a folder that is shared.
        assert aside.exists() is not exclusive


def test_a_damaged_file_is_none_with_a_warning(folder):
    assert folder.get("a.json") is None
    folder.put("a.json", {"loss": 0.1, "subject": "ä"})
    assert folder.get("a.json") == {"loss": 0.1, "subject": "ä"}
    assert folder.get("a.json/b.json") is None
    for content in (b'{"loss": 0.2}', b"\xff{"):
        (folder.path / "a.json").write_bytes(content)
        with pytest.warns(UserWarning, match=r"a\.json"):
            assert folder.get("a.json") is None


@pytest.mark.parametrize(
    ("stored", "settings", "expected"),
    [
        ({"seed": 0}, {"seed": 1}, "seed is 1, was 0"),
        ({"seed": 0, "device": "cpu"}, {"seed": 0, "device": "cuda"}, None),
        ({}, {"methods": {"a": 1}}, {"methods": {"a": 1}}),
        ({"methods": {"a": 1}}, {"methods": {"b": 2}}, {"methods": {"a": 1, "b": 2}}),
        ({"methods": {"a": 1}}, {"methods": {"a": 2, "b": 2}}, "methods.a is 2, was 1"),
    ],
)
def test_settings_of_an_earlier_call(folder, stored, settings, expected):
    settings = {"methods": {}, **settings}
    folder = replace(folder, settings=settings, grows=("methods",), may_differ=("device",))
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=rf"{expected}\..* Other sizes\."):
            folder.check_settings(stored, "Other sizes.")
    else:
        assert folder.check_settings(stored) == (expected or settings)


def test_entries_of_earlier_calls_are_returned(folder):
    growing = replace(folder, settings={"methods": {"A": 1}}, grows=("methods",))
    assert growing.check_settings({"methods": {"B": 2}}) == {"methods": {"A": 1, "B": 2}}
