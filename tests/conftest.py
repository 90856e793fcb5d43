"""Configuration of the tests, and fixtures that several test files share.

Fixtures import the libraries and the modules of the package, because with ``-n 2`` this file is
also loaded by the process that only distributes the tests.
"""

from __future__ import annotations

import gc
import logging
import os
import re
import sys
from pathlib import Path

import pytest

import braindecode_pars

pytest.register_assert_rewrite("support.pretext_contract", "support.recipe_contract")

#: Folder of the package that is tested. This is the installed package, except if the tests run in a
#: clone with ``python -m pytest`` or with PYTHONPATH.
TESTED = Path(braindecode_pars.__file__).parent
os.environ["MPLBACKEND"] = "Agg"  # figures without a window
# Processes that tests start import the same package, in any current folder.
os.environ["PYTHONSAFEPATH"] = "1"
if TESTED.parent == Path(__file__).parents[1]:
    python_path = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(TESTED.parent), python_path)))
#: Filters of warnings. Trainings in the tests are too short to converge, which
#: tests/training/test_learned.py tests.
CONVERGENCE = ("ignore::sklearn.exceptions.ConvergenceWarning", "error:lbfgs failed to converge")


def pytest_report_header() -> str:
    return f"testing {TESTED}"


def pytest_configure(config: pytest.Config) -> None:
    """Limit parallel test processes (``-n 2``) to one thread each, because they share the cores."""
    if config.getoption("numprocesses", None):
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    else:  # the process that only distributes the tests does not import scikit-learn
        for line in CONVERGENCE:
            config.addinivalue_line("filterwarnings", line)
    gc.disable()  # garbage collection during imports and test collection takes seconds


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Without ``-m slow``, do not import files in which every test is slow."""
    is_named = any(collection_path.name in argument for argument in config.args)
    if config.option.markexpr != "not slow" or is_named or not collection_path.match("test_*.py"):
        return None
    text = collection_path.read_text(encoding="utf-8")
    return True if re.search(r"^pytestmark = \[?pytest.mark.slow\b", text, re.M) else None


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(20_000)  # with the default (700), it takes several percent of the time
    gc.enable()


def pytest_sessionfinish() -> None:
    gc.collect()  # pytest reports errors of objects that are deleted here
    gc.unfreeze()


def pytest_unconfigure() -> None:
    gc.freeze()  # pytest runs garbage collection five times; without freeze, this takes seconds


@pytest.fixture(autouse=True)
def seeded():
    """Start every test from the same global random state, and restore the state afterwards."""
    import torch
    from sklearn.utils import check_random_state

    rng = check_random_state(None)  # the global state of NumPy
    state = rng.get_state()
    with torch.random.fork_rng():
        # torch.manual_seed is slow: it formats the stack for each type of device that is missing.
        torch.default_generator.manual_seed(0)
        if torch.cuda.is_available():
            torch.cuda.manual_seed_all(0)
        rng.seed(0)
        yield
    rng.set_state(state)


@pytest.fixture(autouse=True, scope="session")
def no_power_loss():
    """Disable os.fsync, which makes tests slow and protects only against a power failure.

    MNE sets the level of its logger in most calls; this no longer clears the caches of all loggers.
    """
    log = logging.getLogger("mne")

    def set_level_of_mne(level):
        log.level = level
        log._cache.clear()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        patch.setattr(log, "setLevel", set_level_of_mne)
        yield


@pytest.fixture(scope="session")
def plain_log():
    """Return the level and the handlers of the package's logger before any command runs."""
    log = logging.getLogger("braindecode_pars")
    return log.level, list(log.handlers)


@pytest.fixture(autouse=True)
def reset_log(plain_log):
    """Undo changes of the logger by commands that run in a test or in a module-scoped fixture."""
    log = logging.getLogger("braindecode_pars")
    level, handlers = plain_log

    def reset():
        if log.level != level:  # setting the level clears the caches of all loggers
            log.setLevel(level)
        log.handlers[:] = handlers

    reset()
    yield
    reset()


@pytest.fixture(scope="session")
def nights():
    """Four simulated subjects, twelve minutes and three channels each: 96 windows at 100 Hz."""
    from braindecode_pars import datasets

    return datasets.simulated.sleep(n_subjects=4, hours=0.2, n_chans=3, sfreq=100, random_state=3)


@pytest.fixture(scope="session")
def short_nights():
    """Four simulated subjects, three minutes and one channel each: 24 windows at 100 Hz."""
    from braindecode_pars import datasets

    return datasets.simulated.sleep(n_subjects=4, hours=0.05, n_chans=1, sfreq=100, random_state=3)


@pytest.fixture(scope="session")
def uneven():
    """Six subjects with uneven numbers of recordings, windows, classes and labels."""
    from support.uneven_subjects import uneven_subjects

    return uneven_subjects()


@pytest.fixture
def own_task(tmp_path, monkeypatch):
    """Path of a Python file with the pretext task "slope" (class Slope), not imported yet."""
    from support.own_task import SOURCE, forget

    monkeypatch.setattr(sys, "path", [*sys.path])
    file = tmp_path / "own" / "my_task.py"
    file.parent.mkdir()
    file.write_text(SOURCE, encoding="utf-8")
    yield file
    forget()


@pytest.fixture(scope="session")
def eeg_folder() -> Path:
    """Folder of real recordings, from the environment variable BRAINDECODE_PARS_EEG."""
    folder = os.environ.get("BRAINDECODE_PARS_EEG")
    if not folder:
        pytest.skip("real recordings: the environment variable BRAINDECODE_PARS_EEG is not set")
    return Path(folder)


#: Sizes of a very small transformer encoder.
TINY = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=32)


@pytest.fixture
def tiny() -> dict:
    """Sizes of a very small transformer encoder."""
    return dict(TINY)


@pytest.fixture(scope="session")
def labeled_store(nights, tmp_path_factory):
    """A store of the labeled windows of ``nights``, in single precision."""
    from braindecode_pars.signal_store import SignalStore

    path = tmp_path_factory.mktemp("labeled") / "store"
    return SignalStore.create(path, nights, dtype="float32", verbose=0)
