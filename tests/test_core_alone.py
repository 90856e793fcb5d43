"""The core works without the other parts and without the packages of the extras."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

#: Packages that the core does without: those of the extras, and that of the evaluation.
BLOCKED = ("accelerate", "pyriemann", "rich", "torchmetrics", "typer")

#: Makes the import of these packages fail as if they were not installed.
BLOCK = "import sys\nsys.modules.update(dict.fromkeys({}))\n"

USE = """
import configparser
import importlib
import sys
from pathlib import Path

import numpy as np
from braindecode_pars import PARSClassifier, estimators

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
few = dict(pretrain_epochs=1, finetune_epochs=1, sfreq=100, random_state=0, verbose=0, **sizes)
for estimator, y in (
    (estimators.PARSClassifier(**few), np.tile([0, 1], 12)),
    (estimators.PARSRegressor(**few), rng.normal(size=24)),
):
    estimator.fit(X, y, groups=subjects)
    place = folder / type(estimator).__name__
    estimator.save(place)
    again = type(estimator).load(place)
    assert np.array_equal(again.predict(X), estimator.predict(X))

others = {name for name in sys.modules if name.startswith("braindecode_pars.")}
others = {name.split(".")[1] for name in others} - {*core}
assert others == set(), others
print(len(files), "modules")
"""


def run_blocked(
    code: str, *arguments: str | Path, cwd: Path, packages: Sequence[str] = BLOCKED
) -> str:
    """Run code in a process without some packages, and return its output."""
    command = [sys.executable, "-c", BLOCK.format(packages) + code, *map(str, arguments)]
    process = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr[-3000:]
    return process.stdout


def test_the_core_fits_predicts_saves_and_loads_without_the_other_parts(tmp_path, pytestconfig):
    output = run_blocked(USE, pytestconfig.rootpath / "setup.cfg", tmp_path, cwd=tmp_path)
    assert int(output.split()[-2]) >= 50


MISSING = """
import numpy as np

def reply(use):
    try:
        use()
    except (ImportError, SystemExit) as error:
        print(error)

def commands():
    from braindecode_pars.cli import main
    main()

def scale():
    from braindecode_pars.runs import pretrain

def evaluation():
    from braindecode_pars.evaluation import SpatialCovariance
    SpatialCovariance().fit_transform(np.zeros((2, 3, 9)))

for use in commands, scale, evaluation:
    reply(use)
"""


def test_a_missing_package_is_answered_with_its_extra(tmp_path):
    optional = [name for name in BLOCKED if name != "torchmetrics"]  # which is required
    lines = run_blocked(MISSING, packages=optional, cwd=tmp_path).splitlines()
    extras = [re.search(r"pip install 'braindecode_pars\[(\w+)\] @", line)[1] for line in lines]
    assert extras == ["commands", "scale", "evaluation"]
