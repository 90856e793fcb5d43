"""Fixtures that many test files share."""

from __future__ import annotations

import gc
import logging
import os
import sys
from pathlib import Path

import matplotlib
import pytest
import torch
from sklearn.utils import check_random_state
from support.own_task import SOURCE, forget
from support.uneven_subjects import uneven_subjects

import braindecode_pars
from braindecode_pars import datasets
from braindecode_pars.signal_store import SignalStore

matplotlib.use("Agg")

#: Folder of the package that is tested: as installed, unless tests run by ``python -m pytest``, or
#: with PYTHONPATH, in a clone.
TESTED = Path(braindecode_pars.__file__).parent
# Processes that tests start import the same one, whatever folder they run in.
os.environ["PYTHONSAFEPATH"] = "1"
if TESTED.parent == Path(__file__).parents[1]:
    others = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(TESTED.parent), others)))


def pytest_report_header() -> str:
    return f"testing {TESTED}"


def pytest_configure(config: pytest.Config) -> None:
    """Give each of several test processes (``-n 2``) one thread, since they share the cores."""
    if config.getoption("numprocesses", None):
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    gc.disable()  # modules and tests stay: looking for garbage among them takes seconds


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    gc.collect()  # pytest reports errors in what the tests have left
    gc.unfreeze()  # Hypothesis, which may be imported now, asks who refers to a generator


def pytest_unconfigure() -> None:
    gc.freeze()  # pytest would look for garbage among the modules again, five times


@pytest.fixture(autouse=True)
def seeded():
    """Start every test from the same global random state, and restore the state afterwards."""
    rng = check_random_state(None)  # the global state of NumPy
    state = rng.get_state()
    with torch.random.fork_rng():
        # torch.manual_seed formats the stack for each kind of device that is not there.
        torch.default_generator.manual_seed(0)
        if torch.cuda.is_available():
            torch.cuda.manual_seed_all(0)
        rng.seed(0)
        yield
    rng.set_state(state)


@pytest.fixture(autouse=True, scope="session")
def no_power_loss():
    """What is written need not reach the disk, since no test ends in a power loss."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session")
def plain_log():
    """Return the level and the handlers of the log before any command."""
    log = logging.getLogger("braindecode_pars")
    return log.level, list(log.handlers)


@pytest.fixture(autouse=True)
def own_log(plain_log):
    """Take away what commands have added to the log, in this test or in a fixture of a module."""
    log = logging.getLogger("braindecode_pars")
    level, handlers = plain_log

    def reset():
        if log.level != level:  # setting it clears the caches of all logs
            log.setLevel(level)
        log.handlers[:] = handlers

    reset()
    yield
    reset()


@pytest.fixture(scope="session")
def nights():
    """Four simulated subjects, twelve minutes and three channels each: 96 windows at 100 Hz."""
    return datasets.simulated.sleep(n_subjects=4, hours=0.2, n_chans=3, sfreq=100, random_state=3)


@pytest.fixture(scope="session")
def uneven():
    """Six subjects with uneven numbers of recordings, windows, classes and labels."""
    return uneven_subjects()


@pytest.fixture
def own_task(tmp_path, monkeypatch):
    """Path of a Python file with the pretext task "slope", class Slope, which is not known yet."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    file = tmp_path / "own" / "my_task.py"
    file.parent.mkdir()
    file.write_text(SOURCE, encoding="utf-8")
    yield file
    forget()


@pytest.fixture(scope="session")
def eeg_folder() -> Path:
    """Folder of real recordings: the environment variable BRAINDECODE_PARS_EEG."""
    folder = os.environ.get("BRAINDECODE_PARS_EEG")
    if not folder:
        pytest.skip("real recordings: the environment variable BRAINDECODE_PARS_EEG is not set")
    return Path(folder)


#: Sizes of a very small transformer encoder.
TINY = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=32)


@pytest.fixture
def tiny() -> dict:
    return dict(TINY)


@pytest.fixture(scope="session")
def labeled_store(nights, tmp_path_factory):
    """A store of ``nights`` with their labels, in single precision."""
    path = tmp_path_factory.mktemp("labeled") / "store"
    return SignalStore.create(path, nights, dtype="float32", verbose=0)
