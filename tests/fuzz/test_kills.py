"""Writers that are killed at random moments: the folder has the old or the new, and goes on.

Each writer runs up to fifty times in a child process that gets SIGKILL after a random delay.
Children are forked from this process, where everything is imported. (The tests beside each writer
kill it at chosen moments, such as between two renames; here the moments are drawn.)
"""

from __future__ import annotations

import multiprocessing
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.interrupts import create_progress_bar_lock

from braindecode_pars import PARSClassifier
from braindecode_pars._common import files as _atomic
from braindecode_pars.signal_store import SignalStore
from fuzz import folders, small

N_KILLS = 50

pytestmark = [pytest.mark.slow, pytest.mark.nightly]


def _child(function: Callable[..., Any], arguments: tuple, started: Any, ended: Any) -> None:
    torch.set_num_threads(1)
    create_progress_bar_lock()
    started.set()
    function(*arguments)
    ended.set()


class Killer:
    """Run functions in forked processes and kill them after random delays.

    The delays follow how long the functions take now: shared machines are three times slower for
    minutes. They are longer after a kill and shorter after a function that ended before it, so
    that about two of three are killed, however long the first one took.
    """

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        start = time.perf_counter()
        function(*arguments)
        self._longest = time.perf_counter() - start
        self._rng = np.random.default_rng(0)
        self.n_killed = 0
        self.delay = 0.0

    def kills(self, function: Callable[..., Any], *arguments: Any) -> bool:
        """Run a function in a process and kill it; return whether it was killed before its end."""
        self.delay = self._rng.uniform(0, 1.1 * self._longest)
        context = multiprocessing.get_context("fork")
        started, ended = context.Event(), context.Event()
        process = context.Process(target=_child, args=(function, arguments, started, ended))
        process.start()
        started.wait(60)
        process.join(self.delay)
        was_running = not ended.is_set()
        process.kill()  # SIGKILL; nothing when the process has ended
        process.join()
        self._longest *= 1.1 if was_running else 0.8
        self.n_killed += was_running
        return was_running


def same(found: Any, expected: Any) -> bool:
    return all(
        np.array_equal(one, other) if isinstance(other, np.ndarray) else one == other
        for one, other in zip(found, expected, strict=True)
    )


def leftovers(path: Path) -> list[str]:
    return [str(file.relative_to(path)) for file in path.rglob("*.writing-*")]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """One thread, as in the children: forking is safe then, and rounding is the same."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def remove_at_once(monkeypatch):
    """Remove the folders of killed writers without waiting some seconds, as users do."""
    monkeypatch.setattr(_atomic, "_YOUNG", 0.0)


# A kill between the two renames leaves the new weights beside the readable copy of the old
# description. The weights hold their own description; loading ignores the copy and says so.
@pytest.mark.filterwarnings("ignore:.*differs from the description in:UserWarning")
def test_saving_a_model_leaves_the_old_or_the_new_one(tmp_path):
    """Half of the kills hit a first save, the others a save over an older model."""
    saved = [folders._made("classifier", number) for number in (0, 1)]
    old, new = (PARSClassifier.load(path, device="cpu") for path in saved)
    expected = [folders._open_classifier(path) for path in saved]
    killer = Killer(old.save, tmp_path / "timed")
    for number in range(N_KILLS // 2):
        path = tmp_path / "model"
        shutil.rmtree(path, ignore_errors=True)
        if replaced := number % 2:
            old.save(path)
        killer.kills(new.save, path)
        try:
            model = folders._open_classifier(path)
        except (FileNotFoundError, ValueError):
            assert not replaced, f"the old model is lost after a kill at {killer.delay:.4f} s"
        else:
            is_whole = any(same(model, outcome) for outcome in expected)
            assert is_whole, f"a mixture after a kill at {killer.delay:.4f} s"
        # The same call succeeds afterwards, and cleans up.
        new.save(path)
        assert same(folders._open_classifier(path), expected[1])
        assert leftovers(tmp_path) == []
    assert killer.n_killed >= N_KILLS // 8


def _store(path: Path) -> None:
    parts = [small.windows_of(small.recording(s), {"subject": s}) for s in range(12)]
    SignalStore.create(path, small.BaseConcatDataset(parts), verbose=0)


def test_storing_resumes(tmp_path):
    _store(tmp_path / "whole")
    expected = folders._open_store(tmp_path / "whole")
    killer = Killer(_store, tmp_path / "timed")
    for _ in range(N_KILLS):
        path = tmp_path / "store"
        shutil.rmtree(path, ignore_errors=True)
        if killer.kills(_store, path):
            try:
                store = folders._open_store(path)
            except (FileNotFoundError, ValueError):
                _store(path)  # the same call resumes, and cleans up
                store = folders._open_store(path)
                assert leftovers(path) == []
        else:
            store = folders._open_store(path)
        assert same(store, expected), f"another store after a kill at {killer.delay:.4f} s"
    assert killer.n_killed >= N_KILLS // 4


def times_of_folds(path):
    return {file: file.stat().st_mtime_ns for file in path.glob("cache/*_*.json")}


def test_evaluating_resumes(tmp_path):
    expected = folders._run_folds(tmp_path / "whole")
    killer = Killer(folders._run_folds, tmp_path / "timed")
    for _ in range(N_KILLS):
        path = tmp_path / "folds"
        shutil.rmtree(path, ignore_errors=True)
        killer.kills(folders._run_folds, path)
        times = times_of_folds(path)
        assert same(folders._run_folds(path), expected), (
            f"other scores, killed at {killer.delay:.4f} s"
        )
        # Finished folds are not computed again.
        assert times.items() <= times_of_folds(path).items()
    assert killer.n_killed >= N_KILLS // 4
