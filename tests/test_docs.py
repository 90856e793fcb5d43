"""Tests and paths that the documentation names exist, and its code runs."""

from __future__ import annotations

import ast
import html
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support.page_commands import commands_of, parse

from braindecode_pars import __version__
from braindecode_pars._common import settings
from braindecode_pars.estimators import fine_tuning

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "guide"
PAGES = [
    *(
        page
        for folder in (".", "guide", "results", "project")  # not what a build of the site writes
        for page in sorted((ROOT / "docs" / folder).glob("*.rst"))
    ),
    ROOT / "docs" / "guide" / "extending.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "README.md",
]


def test_named_tests_exist():
    missing = []
    for page in PAGES:
        named = re.findall(
            r"`(tests/[\w/]+\.py)::(?:\w+::)?(\w+)`", page.read_text(encoding="utf-8")
        )
        for file, test in named:
            if f"def {test}(" not in (ROOT / file).read_text(encoding="utf-8"):
                missing.append((page.name, file, test))
    assert missing == []


def test_the_code_about_the_paper_runs():
    assert run_page("../paper.rst")["clf"].pretrain_epochs == 1000


def test_the_citation_has_the_current_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    (cited,) = re.findall(r"^version: (\S+)$", citation, re.MULTILINE)
    assert cited == __version__
    (dated,) = re.findall(r"^date-released: (\S+)$", citation, re.MULTILINE)
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\d.*)$", changes, re.MULTILINE)[0] == f"{__version__} - {dated}"


def test_the_answers_of_all_pages_are_those_of_the_report():
    """Its pictures too are of this report: docs/experiments/study_pictures.py takes them again."""
    stored = json.loads((ROOT / "docs" / "_static" / "study.json").read_text(encoding="utf-8"))
    report = (ROOT / "docs" / "_static" / "study.html").read_text(encoding="utf-8")
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", report)).split())
    for answer in stored["answers"]:
        assert answer.partition(". ")[0] in text
    primary = stored["comparisons"]["primary"]
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    for name in ("score", "reference_score", "difference", "ci_low", "ci_high"):
        assert f"{primary[name]:.3f}".replace("-", "\N{MINUS SIGN}") in readme


@pytest.mark.slow
def test_the_code_of_the_readme_runs_and_prints(capsys):
    """With short trainings instead of the default ones."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    short = code.replace("PARSEmbedder()", "PARSEmbedder(pretrain_epochs=2)")
    short = short.replace("encoder=embedder)", "encoder=embedder, finetune_epochs=2)")
    assert short.count("epochs=2") == 2
    exec(short, {})
    labels, scores = re.findall(r"\[([^]]*)\]", capsys.readouterr().out)
    assert (set(labels.replace("...", "").split())) <= {"0", "1", "2"}
    assert [0 <= float(score) <= 1 for score in scores.split()] == [True] * 6


def python_blocks(page: Path) -> list[str]:
    """Return the blocks of Python code on a page, in their order."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^\.\. code-block:: python\n\n((?: {3}.*\n|\n)+)", text, re.MULTILINE)
    return [textwrap.dedent(block) for block in blocks]


def run_page(name: str) -> dict:
    """Run the code of a page, and return its variables."""
    names: dict = {}
    exec("\n".join(python_blocks(GUIDE / name)), names)
    return names


#: Pages whose code takes less than a second; the code of other pages is run with the slow tests.
QUICK = {"from_yasa.rst", "pars.rst"}
#: The code of this page takes minutes; tests/study/test_study.py tests the same on small signals.
NOT_RUN = {"study.rst"}

RUNNABLE = [
    pytest.param(page.name, marks=[] if page.name in QUICK else [pytest.mark.slow], id=page.stem)
    for page in sorted(GUIDE.glob("*.rst"))
    if page.name not in NOT_RUN and python_blocks(page)
]


@pytest.mark.parametrize("name", RUNNABLE)
# MOABB uses a montage name that MNE deprecates, and creates h5py datasets without a dtype. The page
# on it says that the reference is another one.
@pytest.mark.filterwarnings(
    "ignore:Montage name:FutureWarning",
    "ignore:Creating a dataset without passing data or dtype",
    "ignore:.*reference as recorded, but average in ",
)
def test_the_code_of_a_guide_page_runs(name, tmp_path, monkeypatch):
    """In an empty folder; a training without a given number of epochs has two."""
    monkeypatch.setattr(fine_tuning, "EPOCHS", 2)
    monkeypatch.setattr(fine_tuning, "STEPS", 1)
    monkeypatch.setattr(settings, "MAX_STEPS", 2)
    for variable in ("MNE_DATA", "_MNE_FAKE_HOME_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / "mne"))
    (tmp_path / "page").mkdir()
    monkeypatch.chdir(tmp_path / "page")
    run_page(name)


@pytest.mark.parametrize("name", sorted(NOT_RUN | QUICK))
def test_slow_code_compiles_and_what_it_imports_exists(name):
    blocks = python_blocks(GUIDE / name)
    assert blocks, f"{name} has no code; take it out of NOT_RUN and QUICK"
    for node in ast.walk(ast.parse("\n".join(blocks))):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("braindecode_pars"):
            exec(ast.unparse(node), {})


COMMANDS = [
    pytest.param(command.arguments, id=f"{page.stem}: {' '.join(command.arguments[:2])}")
    for page in sorted((ROOT / "docs").rglob("*.rst"))
    if "_build" not in page.parts and "generated" not in page.parts
    for command in commands_of(page)
]


@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_command_of_a_page_parses(arguments):
    assert parse([re.sub(r"\$\w+", "1", argument) for argument in arguments])  # $ is of a shell


#: Where the rows and entries on the page belong, in their order: a file, and the line before them.
PLACES = [
    ("_common/names.py", '_entries(\n    "pretext.",\n'),
    ("_common/names.py", '_entries(\n    "datasets.",\n'),
    ("recordings/label_files.py", "LABEL_SOURCES = (\n"),
    ("_common/names.py", "METRICS = _by_name(\n"),
    ("evaluation/metrics.py", "_LABEL_METRICS: dict[str, Callable[..., torch.Tensor]] = {\n"),
    ("../tests/evaluation/test_metrics.py", '    ("name", "reference"),\n    [\n'),
    ("_common/names.py", 'BASELINES = _entries(\n    "",\n'),
    ("baselines/methods.py", "_LINEAR: dict[str, _Linear] = {\n"),
]

#: Tests of all tasks, recipes, metrics and methods.
OF_ALL_ROWS = [
    *("test_architecture.py", "test_names.py", "test_public_api.py"),
    *("evaluation/test_metrics.py", "baselines/test_baselines.py::test_every_method_by_name"),
]


@pytest.mark.slow
def test_the_examples_of_the_page_on_extending_work(tmp_path):
    """In a copy of the repository, with the files and the rows that the page gives."""
    for folder in ("braindecode_pars", "tests", "docs/api", "docs/_ext"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("*.pyc"))
    for file in ("pyproject.toml", "setup.cfg", "CONTRIBUTING.md"):
        shutil.copy(ROOT / file, tmp_path)
    text = (GUIDE / "extending.md").read_text(encoding="utf-8")
    files = re.findall(r"\*\*\d\. [^*]+,\*\* `(\S+\.py)`.*?```python\n(.*?)```", text, re.DOTALL)
    paths = [file for file, _ in files]
    tests = [file for file in paths if file.startswith("tests/")]
    assert len(tests) == 3  # of a task, a dataset and a format of labels
    for file, content in files:
        (tmp_path / file).write_text(content, encoding="utf-8")
    rows = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    for row, (place, before) in zip(rows, PLACES, strict=True):
        edited = tmp_path / "braindecode_pars" / place
        content = edited.read_text(encoding="utf-8")
        assert before in content, (place, before)
        edited.write_text(content.replace(before, before + row, 1), encoding="utf-8")
    readers = tmp_path / "braindecode_pars" / "recordings" / "label_files.py"
    (functions,) = re.findall(r"The functions\.\*\*.*?```python\n(.*?)```", text, re.DOTALL)
    before, table, after = readers.read_text("utf-8").partition("#: Formats of label files")
    readers.write_text(f"{before}{functions}\n\n{table}{after}", "utf-8")
    for command in (
        ["pytest", "-q", *tests, *(f"tests/{name}" for name in OF_ALL_ROWS)],
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
    ):
        result = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stdout + result.stderr
