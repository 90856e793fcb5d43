"""Imports between the parts of the package: one way, without circles."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from graphlib import TopologicalSorter
from pathlib import Path

from support.structure import MODULES, ROOT, imports, part_of, tree

PACKAGE = "braindecode_pars"


def layers() -> list[set[str]]:
    """The folders of each layer in setup.cfg, the highest first."""
    settings = ConfigParser()
    settings.read(ROOT.parent / "setup.cfg", encoding="utf-8")
    lines = settings["importlinter:contract:parts"]["layers"].strip().splitlines()
    return [set(line.split(" : ")) for line in lines]


def checked_contracts(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts in a folder; in another process, since this changes loggers."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"]
    return subprocess.run([*command, "--no-cache"], cwd=folder, capture_output=True, text=True)


def test_the_contracts_of_imports_hold():
    found = checked_contracts(ROOT.parent)
    assert found.returncode == 0, found.stdout


def test_an_import_of_a_higher_part_breaks_a_contract(tmp_path):
    """Else the contracts would hold whatever the code does."""
    shutil.copytree(
        ROOT, tmp_path / PACKAGE, ignore=shutil.ignore_patterns("sample_data", "shipped")
    )
    shutil.copy(ROOT.parent / "setup.cfg", tmp_path)
    with (tmp_path / PACKAGE / "tokens.py").open("a", encoding="utf-8") as file:
        file.write("\n\ndef late():\n    import braindecode_pars.evaluation\n")
    found = checked_contracts(tmp_path)
    assert found.returncode == 1
    assert f"{PACKAGE}.tokens -> {PACKAGE}.evaluation" in found.stdout


def test_the_picture_of_the_parts_is_that_of_the_contract():
    text = (ROOT.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    parts, way = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    drawn = [set(line.split()[1:]) for line in parts.strip().splitlines()]
    of_study, others = layers()[:3], layers()[3:]
    assert drawn == [set().union(*of_study) - {"__main__"}, *others]
    columns = [re.split(r"\s{2,}", line.strip())[0] for line in way.strip().splitlines()[1:]]
    named = [name for column in columns for name in column.split(", ")]
    assert len(named) >= 12
    assert {f"{PACKAGE}.{name}" for name in named} <= MODULES.keys()


def test_a_folder_of_the_package_is_seen_at_one_glance():
    entries = [p for p in ROOT.iterdir() if p.suffix != ".typed" and p.name != "__pycache__"]
    assert len(entries) <= 23


def test_no_two_modules_share_a_name():
    stems = [path.stem for path in MODULES.values() if path.stem != "__init__"]
    assert sorted(stems) == sorted(set(stems))


def test_there_are_no_circles():
    graph = {name: imports(name) for name in MODULES if name != "braindecode_pars"}
    graph = {name: {d for d in found if d != "braindecode_pars"} for name, found in graph.items()}
    assert list(TopologicalSorter(graph).static_order())


def test_parts_that_use_braindecode_import_hosts():
    """Else a user sees a warning about montages, or torchaudio's long error."""
    use_braindecode = {
        part_of(name)
        for name, path in MODULES.items()
        if re.search(r"^(from|import) braindecode[. ]", path.read_text("utf-8"), re.MULTILINE)
    }
    import_hosts = {
        part_of(name) for name in MODULES if f"{PACKAGE}._common.hosts" in imports(name)
    }
    assert len(use_braindecode) >= 6
    assert use_braindecode - {"cli", "_common"} <= import_hosts


def test_no_module_is_named_utils_or_the_like():
    stems = {path.stem for path in MODULES.values()}
    assert stems.isdisjoint({"utils", "util", "helpers", "misc", "common", "tools"})


#: Names that several modules have, and why each has one meaning all the same.
SHARED_NAMES = {
    "a recipe of a corpus has these": {"CARD", "Settings", "cut", "load", "prepare", "recordings"},
    "a command has the name of the function it calls": {
        *("evaluate", "plan", "pretrain", "reproduce", "study"),
    },
    "a figure has the name of what it shows": {"control_gains", "label_efficiency"},
    "both return nights of sleep": {"sleep"},
}


def test_a_public_name_has_one_meaning():
    """No two functions or classes of the package share a name, but for these."""
    of_name: dict[str, set[str]] = {}
    for module in MODULES:
        for node in tree(module).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                of_name.setdefault(node.name, set()).add(module)
    twice = {name for name, modules in of_name.items() if len(modules) > 1}
    assert twice - set().union(*SHARED_NAMES.values()) == set()


def test_nothing_private_is_imported():
    found = []
    for name in MODULES:
        for node in ast.walk(tree(name)):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                modules = [f"{node.module}.{alias.name}" for alias in node.names]
            for module in modules:
                parts = module.split(".")
                if parts[0] in {"sklearn", "skorch", "braindecode", "mne", "torch"} and any(
                    part.startswith("_") and part != "__version__" for part in parts
                ):
                    found.append(module)
    assert found == []
