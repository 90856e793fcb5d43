"""Who may import whom: one way, no circles."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import braindecode_pars

ROOT = Path(braindecode_pars.__file__).parent
MODULES = {
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in ROOT.rglob("*.py")
}


def imports(name: str) -> set[str]:
    """Modules of this package that a module imports, at the top or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in MODULES else node.module)
    return {module for module in found if module in MODULES and module != name}


def of(package: str) -> list[str]:
    return sorted(name for name in MODULES if name.startswith(f"braindecode_pars.{package}"))


P = "braindecode_pars."
#: Those at the top, who may import anything below.
TOP = {
    "braindecode_pars",
    *(P + name for name in ("__main__", "contenders", "demo", "estimators", "pretext", "reports")),
    *of("benchmarks"),
    *of("cli"),
}
ALLOWED = {
    P + "tokens": set(),
    P + "encoder": {P + "tokens"},
    P + "augmentation": set(),
    P + "device": set(),
    P + "files": set(),
    P + "subjects": set(),
    P + "electrodes": set(),
    P + "paper": set(),
    P + "window_set": {P + "signal_store.store", P + "signal_store.windows"},
    P + "windows": {
        P + name for name in ("window_set", "labels", "signal_store.store", "signal_store.windows")
    },
    P + "precision": set(),
    P + "pretraining": {P + "precision", P + "seeding"},
    P + "seeding": set(),
    P + "labels": {P + "window_set", P + "subjects"},
    P + "hub": set(),
    P + "weights": set(),
    P + "models": {P + "tokens", P + "encoder", P + "electrodes", P + "hub", P + "weights"},
    P + "pretrained": {P + "encoder", P + "models", P + "hub", P + "weights"},
    P + "callbacks": {P + "encoder", P + "pretext.base", P + "pretraining", P + "windows"},
    P + "pretext.base": {P + "encoder", P + "tokens"},
    P + "pretext.grid": {P + "encoder", P + "pretext.base", P + "tokens"},
    P + "pretext.pairwise": {P + "encoder"},
}


@pytest.mark.parametrize("name", sorted(ALLOWED))
def test_each_room_has_its_doors(name):
    assert imports(name) <= ALLOWED[name]


#: Rooms of pretext/ that several tasks share.
SHARED = ("base", "grid", "pairwise")
TASKS = [name for name in of("pretext.") if name.split(".")[-1] not in SHARED]


@pytest.mark.parametrize("name", TASKS)
def test_pretext_tasks_do_not_know_each_other(name):
    allowed = {P + "tokens", P + "encoder", *(P + f"pretext.{name}" for name in SHARED)}
    assert imports(name) <= allowed


BELOW = (
    {
        P + name
        for name in ("callbacks", "device", "electrodes", "encoder", "hub", "labels", "models")
    }
    | {
        P + name
        for name in ("precision", "pretext.base", "pretrained", "pretraining", "seeding", "weights")
    }
    | {P + "window_set"}
)


@pytest.mark.parametrize("name", of("estimators."))
def test_estimators_know_no_data_and_no_evaluation(name):
    assert imports(name) <= BELOW | set(of("estimators."))


@pytest.mark.parametrize("name", of("datasets"))
def test_datasets_know_no_model(name):
    allowed = {P + "electrodes", P + "datasets", *of("datasets")}
    assert imports(name) <= allowed


@pytest.mark.parametrize("name", of("signal_store"))
def test_a_store_knows_recordings_and_no_model(name):
    assert imports(name) <= {
        *(P + name for name in ("datasets.preparation", "files", "subjects")),
        *of("signal_store"),
    }


@pytest.mark.parametrize("name", of("runs"))
def test_a_run_trains_an_encoder_and_knows_no_estimator(name):
    below = BELOW - {P + "electrodes", P + "hub", P + "labels", P + "models", P + "window_set"}
    stores = {P + name for name in ("signal_store", "paper", "pretext", "files")}
    assert imports(name) <= below | stores | set(of("runs"))


@pytest.mark.parametrize("name", of("evaluation"))
def test_evaluation_takes_any_estimator(name):
    allowed = {P + "windows", P + "window_set", P + "subjects", P + "evaluation"}
    allowed |= {*of("evaluation")}
    assert imports(name) <= allowed


@pytest.mark.parametrize("name", of("plotting"))
def test_plotting_knows_arrays_and_tables_only(name):
    assert imports(name) <= set(of("plotting"))


def test_every_room_is_under_some_rule():
    ruled = {*TOP, *ALLOWED, *TASKS, *of("estimators."), *of("datasets"), *of("evaluation")}
    ruled |= {*of("plotting"), *of("runs"), *of("signal_store")}
    assert set(MODULES) - ruled == set()


def test_there_are_no_circles():
    graph = {name: imports(name) for name in MODULES if name != "braindecode_pars"}
    graph = {name: {d for d in found if d != "braindecode_pars"} for name, found in graph.items()}
    assert list(TopologicalSorter(graph).static_order())


def test_there_are_no_drawers():
    stems = {path.stem for path in MODULES.values()}
    assert stems.isdisjoint({"utils", "util", "helpers", "misc", "common", "tools"})
