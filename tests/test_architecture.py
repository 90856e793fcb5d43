"""Imports between the parts of the package: one way, without circles."""

from __future__ import annotations

import ast
import re
from graphlib import TopologicalSorter

from support.structure import MODULES, ROOT, imports, part_of, parts, reach, tree

PACKAGE = "braindecode_pars"

#: The floors of the package, the lowest first, each with its parts. A part imports earlier ones.
FLOORS = {
    "shared": ["_common"],
    "data": ["recordings", "windows", "signal_store", "datasets"],
    "method": [
        *("paper", "tokens", "encoder", "models", "pretext"),
        *("pretraining", "callbacks", "pretrained", "runs"),
    ],
    "estimators": ["estimators", "baselines"],
    "scores": ["predictions", "plotting", "evaluation"],
    "commands": ["cli", "__main__"],
}
ORDER = [part for floor in FLOORS.values() for part in floor]


def test_a_part_imports_only_what_is_below_it():
    for part, imported in parts().items():
        assert imported <= set(ORDER[: ORDER.index(part)]), part


def test_the_picture_of_the_house_is_that_of_the_code():
    text = (ROOT.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    floors, way = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    drawn = {line.split()[0]: line.split()[1:] for line in floors.strip().splitlines()[::-1]}
    assert drawn == {name: [p for p in own if p != "__main__"] for name, own in FLOORS.items()}
    columns = [re.split(r"\s{2,}", line.strip())[0] for line in way.strip().splitlines()[1:]]
    named = [name for column in columns for name in column.split(", ")]
    assert len(named) >= 12
    assert {f"{PACKAGE}.{name}" for name in named} <= MODULES.keys()


def test_the_method_knows_no_dataset():
    for part in FLOORS["method"]:
        assert "datasets" not in parts()[part], part


def test_figures_know_nothing_but_names():
    assert parts()["plotting"] <= {"_common", "predictions"}


def test_a_folder_of_the_package_is_seen_at_one_glance():
    entries = [p for p in ROOT.iterdir() if p.suffix != ".typed" and p.name != "__pycache__"]
    assert len(entries) <= 22


def test_no_two_modules_share_a_name():
    stems = [path.stem for path in MODULES.values() if path.stem != "__init__"]
    assert sorted(stems) == sorted(set(stems))


#: Modules of pretext/ that several tasks share.
SHARED = ("base", "grid", "pairwise")


def test_pretext_tasks_do_not_import_each_other():
    tasks = [name for name in MODULES if part_of(name) == "pretext" and name.count(".") == 2]
    tasks = [name for name in tasks if name.rpartition(".")[2] not in SHARED]
    assert len(tasks) >= 4
    for task in tasks:
        assert imports(task).isdisjoint(tasks)


def test_recipes_do_not_import_each_other():
    recipes = [name for name in MODULES if part_of(name) == "datasets" and name.count(".") == 2]
    recipes.remove(f"{PACKAGE}.datasets.temple")  # what the corpora of Temple University share
    assert len(recipes) >= 8
    for recipe in recipes:
        assert imports(recipe).isdisjoint(recipes)


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


def test_estimators_read_windows_without_importing_the_store():
    """An import for isinstance would import the writer of stores too."""
    reached = {part_of(module) for module in reach(f"{PACKAGE}.estimators")}
    assert reached.isdisjoint({"signal_store", "datasets", "runs"})


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
