"""The core works without the other parts of the package and without optional dependencies.

The slow tests check the output of one process, because importing the core takes several seconds.
``tests/test_architecture.py`` checks the imports without running them.
"""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

from braindecode_pars._common.names import extra_module
from braindecode_pars.evaluation import SpatialCovariance

#: Packages that the core does not import: the optional dependencies, and torchmetrics.
BLOCKED = ("accelerate", "pyriemann", "rich", "torchmetrics", "typer")

#: Makes the import of these packages fail, as if they were not installed.
BLOCK = f"import sys\nsys.modules.update(dict.fromkeys({BLOCKED}))\n"

USE = """
import configparser
import importlib
import sys
from pathlib import Path

import numpy as np
from braindecode_pars import PARSClassifier

setup, folder = map(Path, sys.argv[1:])
settings = configparser.ConfigParser()
settings.read(setup)
layers = settings["importlinter:contract:parts"]["layers"].strip().splitlines()
core = layers[-1].split(" : ")
package = Path(importlib.import_module("braindecode_pars").__file__).parent
files = [f for part in core for f in [*package.glob(f"{part}.py"), *package.glob(f"{part}/*.py")]]
for file in files:
    name = ".".join(file.relative_to(package.parent).with_suffix("").parts)
    importlib.import_module(name.removesuffix(".__init__"))

rng = np.random.default_rng(0)
X, subjects = rng.normal(size=(24, 2, 400)), np.repeat(["a", "b", "c"], 8)
sizes = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=32)
training = dict(pretrain_epochs=1, finetune_epochs=1, sfreq=100, random_state=0, verbose=0)
clf = PARSClassifier(**training, **sizes).fit(X, np.tile([0, 1], 12), groups=subjects)
clf.save(folder / "model")
assert np.array_equal(PARSClassifier.load(folder / "model").predict(X), clf.predict(X))

imported = {name for name in sys.modules if name.startswith("braindecode_pars.")}
other_parts = {name.split(".")[1] for name in imported} - {*core}
assert other_parts == set(), other_parts
print("Imported modules:", len(files))
"""

MISSING = """
sys.argv[1:] = []  # arguments of a command
del sys.modules["torchmetrics"]  # it is a required dependency

def commands():
    from braindecode_pars.cli import main
    main()

def scale():
    from braindecode_pars.runs import pretrain

for use in commands, scale:
    try:
        use()
    except (ImportError, SystemExit) as error:
        print(error)
"""


@pytest.fixture(scope="module")
def output_lines(pytestconfig, tmp_path_factory) -> list[str]:
    """Use the core, then the other parts, in a process without optional dependencies."""
    folder = tmp_path_factory.mktemp("core")
    command = [sys.executable, "-c", BLOCK + USE + MISSING]
    command += [str(pytestconfig.rootpath / "setup.cfg"), str(folder)]
    process = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr[-3000:]
    lines = process.stdout.splitlines()
    (first,) = (i for i, line in enumerate(lines) if line.startswith("Imported modules:"))
    return lines[first:]


@pytest.mark.slow
def test_the_core_fits_predicts_saves_and_loads_without_the_other_parts(output_lines):
    assert int(output_lines[0].split()[-1]) >= 50


#: Module of an optional package -> the extra that installs it.
EXTRAS = {"typer": "commands", "accelerate": "scale", "pyriemann.estimation": "evaluation"}


def extra_in(message: str) -> str:
    """Return the extra in the command that a message contains."""
    return re.search(r"pip install 'braindecode_pars\[(\w+)\] @", message)[1]


@pytest.mark.slow
def test_the_error_of_a_new_process_names_the_extra_to_install(output_lines):
    assert list(map(extra_in, output_lines[1:])) == ["commands", "scale"]


@pytest.mark.parametrize("module", EXTRAS)
def test_the_error_about_a_missing_package_names_the_extra_to_install(module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError) as error:
        extra_module(module)
    assert extra_in(str(error.value)) == EXTRAS[module]


def test_features_that_require_an_extra_name_it(monkeypatch):
    for name in ("pyriemann", "pyriemann.estimation"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError) as error:
        SpatialCovariance().fit_transform(np.random.default_rng(0).normal(size=(2, 3, 9)))
    assert extra_in(str(error.value)) == "evaluation"
