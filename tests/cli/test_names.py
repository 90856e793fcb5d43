"""The names in the help texts equal those of the registries."""

from __future__ import annotations

import subprocess
import sys
import time

from braindecode_pars.baselines import METHODS
from braindecode_pars.cli import terminal
from braindecode_pars.datasets import RECIPES
from braindecode_pars.evaluation import GRIDS
from braindecode_pars.evaluation.metrics import METRICS
from braindecode_pars.pretext import PRETEXT_TASKS


def test_names_are_those_of_the_registries():
    # Other tests register tasks of their own.
    own = {n for n, task in PRETEXT_TASKS.items() if task.__module__.startswith("braindecode_pars")}
    assert set(terminal.TASKS) == own
    assert tuple(sorted(RECIPES)) == terminal.CORPORA
    assert tuple(METHODS) == terminal.METHODS
    assert tuple(METRICS) == terminal.METRICS
    assert tuple(GRIDS) == terminal.GRIDS


def test_help_imports_no_heavy_library():
    """Help must be fast; torch, MNE and scikit-learn take seconds to import."""
    code = (
        "import sys, typer.testing\n"
        "from braindecode_pars.cli import app\n"
        "for command in ([], ['demo'], ['store'], ['plan'], ['pretrain'], ['encoders'], "
        "['evaluate', 'compare']):\n"
        "    result = typer.testing.CliRunner().invoke(app, [*command, '--help'])\n"
        "    assert result.exit_code == 0, result.output\n"
        "heavy = {'torch', 'mne', 'sklearn', 'pandas', 'numpy', 'braindecode', 'matplotlib'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert time.perf_counter() - start < 30
