"""Contents of the source distribution and the wheel, and use of the installed wheel."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import braindecode_pars

ROOT = Path(__file__).parents[1]
#: Folders that must not be in a distribution: tests, files of the documentation, caches.
UNWANTED = {"tests", "docs", "examples", "__pycache__", ".git", ".hypothesis", ".pytest_cache"}
DATA = {
    "braindecode_pars/py.typed",
    "braindecode_pars/datasets/sample_data/README.md",
    "braindecode_pars/datasets/sample_data/recordings.npz",
    "braindecode_pars/datasets/sample_data/sleep.npz",
    "braindecode_pars/study/study_report.css",
    "braindecode_pars/study/study_report.html",
    *(
        f"braindecode_pars/pretrained/shipped/{name}/{file}"
        for name in ("features-eegmmidb", "pars-sleep")
        for file in ("README.md", "encoder.json", "encoder.safetensors")
    ),
}

pytestmark = pytest.mark.slow


def run(*command: str | Path, **options: object) -> str:
    """Run a command without PYTHONPATH, and return its output."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    result = subprocess.run(command, capture_output=True, text=True, env=environment, **options)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory) -> dict[str, Path]:
    """Build a source distribution, and a wheel from it."""
    folder = tmp_path_factory.mktemp("distribution")
    source = folder / "source"
    generated = shutil.ignore_patterns("_build", "auto_examples", "generated")
    for name in ("braindecode_pars", "docs", "tests", "examples"):
        shutil.copytree(ROOT / name, source / name, ignore=generated)
    for file in ROOT.iterdir():
        if file.is_file():
            shutil.copy(file, source)
    # Add a cache file, since the tests may run without bytecode files.
    (source / "braindecode_pars" / "__pycache__").mkdir(exist_ok=True)
    (source / "braindecode_pars" / "__pycache__" / "stale.cpython-311.pyc").touch()
    # In the current environment, since an isolated build needs the network
    run(sys.executable, "-m", "build", "--no-isolation", "-o", folder / "dist", source)
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    (wheel,) = (folder / "dist").glob("*.whl")
    return {"sdist": sdist, "wheel": wheel}


def contents(path: Path) -> set[str]:
    """Return the paths of all files in a wheel, or in the folder of a source distribution."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            return set(archive.namelist())
    with tarfile.open(path) as archive:
        return {file.name.partition("/")[2] for file in archive.getmembers() if file.isfile()}


def test_both_contain_the_package_with_license_and_data(distributions):
    modules = {str(file.relative_to(ROOT)) for file in (ROOT / "braindecode_pars").rglob("*.py")}
    info = f"braindecode_pars-{braindecode_pars.__version__}.dist-info"
    assert modules | DATA | {f"{info}/licenses/LICENSE"} <= contents(distributions["wheel"])
    assert modules | DATA | {"LICENSE", "pyproject.toml"} <= contents(distributions["sdist"])


def test_neither_contains_tests_builds_or_caches(distributions):
    for names in map(contents, distributions.values()):
        assert [name for name in names if UNWANTED.intersection(Path(name).parts)] == []
        assert [name for name in names if name.endswith((".pyc", ".csv", ".svg"))] == []


@pytest.fixture(scope="module")
def environment(distributions, tmp_path_factory) -> Path:
    """Create a virtual environment with the wheel and access to the installed dependencies."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "-q")
    run(*pip, "--no-deps", "--no-index", distributions["wheel"])
    (packages,) = folder.glob("lib/python*/site-packages")
    # These folders are searched after the site-packages of the environment; their .pth files are
    # not read.
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return folder


def test_the_wheel_loads_its_data_outside_the_checkout(environment, tmp_path):
    code = """
import braindecode_pars
import braindecode_pars.cli
from importlib.metadata import version
from braindecode_pars import datasets
from braindecode_pars.pretrained import load_encoder
assert version("braindecode_pars") == braindecode_pars.__version__
print(braindecode_pars.__file__)
print(len(datasets.mental_arithmetic()) + len(datasets.sleep()))
for name in ("small", "pars-sleep"):
    print(load_encoder(name).encoder.embed_dim)
"""
    lines = run(environment / "bin" / "python", "-c", code, cwd=tmp_path).splitlines()
    assert Path(lines[0]).is_relative_to(environment)
    assert int(lines[1]) > 0
    assert [int(size) > 0 for size in lines[2:]] == [True] * 2
