"""Dependencies between the parts of the package: layers, no import cycles, unique names."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from graphlib import TopologicalSorter
from pathlib import Path

from support.structure import MODULES, ROOT, imported_paths, imports, part_of, tree

PACKAGE = "braindecode_pars"


def layers() -> list[set[str]]:
    """Return the folders of each layer in setup.cfg, from the highest to the lowest layer."""
    settings = ConfigParser()
    settings.read(ROOT.parent / "setup.cfg", encoding="utf-8")
    lines = settings["importlinter:contract:parts"]["layers"].strip().splitlines()
    return [set(line.split(" : ")) for line in lines]


def checked_contracts(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the import contracts in a folder; in another process, because this changes loggers."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"]
    return subprocess.run([*command, "--no-cache"], cwd=folder, capture_output=True, text=True)


def test_the_import_contracts_hold():
    result = checked_contracts(ROOT.parent)
    assert result.returncode == 0, result.stdout


def test_an_import_of_a_higher_part_breaks_a_contract(tmp_path):
    """Check that the contracts can fail."""
    shutil.copytree(
        ROOT, tmp_path / PACKAGE, ignore=shutil.ignore_patterns("sample_data", "shipped")
    )
    shutil.copy(ROOT.parent / "setup.cfg", tmp_path)
    with (tmp_path / PACKAGE / "tokens.py").open("a", encoding="utf-8") as file:
        file.write("\n\ndef late():\n    import braindecode_pars.evaluation\n")
    result = checked_contracts(tmp_path)
    assert result.returncode == 1
    assert f"{PACKAGE}.tokens -> {PACKAGE}.evaluation" in result.stdout


def test_the_diagram_of_the_parts_matches_the_contract():
    text = (ROOT.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    parts, data_flow = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    drawn = [set(line.split()[1:]) for line in parts.strip().splitlines()]
    study_layers, lower_layers = layers()[:3], layers()[3:]
    assert drawn == [set().union(*study_layers) - {"__main__"}, *lower_layers]
    columns = [re.split(r"\s{2,}", line.strip())[0] for line in data_flow.strip().splitlines()[1:]]
    names = [name for column in columns for name in column.split(", ")]
    assert len(names) >= 12
    assert {f"{PACKAGE}.{name}" for name in names} <= MODULES.keys()


def test_the_package_has_few_folders_and_files_at_the_top():
    entries = [p for p in ROOT.iterdir() if p.suffix != ".typed" and p.name != "__pycache__"]
    assert len(entries) <= 23


def test_no_two_modules_share_a_name():
    stems = [path.stem for path in MODULES.values() if path.stem != "__init__"]
    assert sorted(stems) == sorted(set(stems))


def test_there_are_no_import_cycles():
    graph = {name: imports(name) for name in MODULES if name != "braindecode_pars"}
    graph = {name: {d for d in used if d != "braindecode_pars"} for name, used in graph.items()}
    assert list(TopologicalSorter(graph).static_order())


def test_parts_that_use_braindecode_import_hosts():
    """hosts silences a warning about montages, and shortens an error of torchaudio."""
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


#: Reasons why several modules may define the same name, and these names.
SHARED_NAMES = {
    "every recipe of a corpus defines these names": {
        "CARD",
        "Settings",
        "cut",
        "load",
        "prepare",
        "recordings",
    },
    "a command has the name of the function that it calls": {
        *("audit_split", "evaluate", "plan", "pretrain", "reproduce", "study"),
    },
    "a plotting function has the name of the result that it shows": {
        "control_gains",
        "label_efficiency",
    },
    "both return sleep recordings": {"sleep"},
}


def test_a_public_name_has_one_meaning():
    """No two functions or classes of the package have the same name, except SHARED_NAMES."""
    modules_by_name: dict[str, set[str]] = {}
    for module in MODULES:
        for node in tree(module).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                modules_by_name.setdefault(node.name, set()).add(module)
    repeated = {name for name, modules in modules_by_name.items() if len(modules) > 1}
    assert repeated - set().union(*SHARED_NAMES.values()) == set()


def test_no_private_names_of_host_libraries_are_imported():
    hosts = {"sklearn", "skorch", "braindecode", "mne", "torch"}
    private_names = [
        path
        for path in set().union(*map(imported_paths, MODULES))
        if path.partition(".")[0] in hosts
        and any(part.startswith("_") and part != "__version__" for part in path.split("."))
    ]
    assert private_names == []
