"""Imports between the parts of the package: one way, without circles."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from support.structure import MODULES, ROOT, imports, layers, part_of, parts, reach

TESTS = Path(__file__).parent

#: What each part of the package, a folder or a file, may import.
MAY_IMPORT = {
    "_channel_names": set(),
    "_columns": set(),
    "_hosts": set(),
    "_lists": set(),
    "_parameters": set(),
    "_sampling_rate": set(),
    "_hidden_names": set(),
    "_subjects": {"_hidden_names", "_warnings"},
    "_warnings": set(),
    "augmentation": {"_hosts", "_parameters"},
    "electrodes": {"_channel_names"},
    "paper": set(),
    "preprocessing": {"_channel_names", "_parameters"},
    "sleep_stages": set(),
    "storage": {"_hidden_names", "_warnings"},
    "tokens": set(),
    "plotting": {"_columns", "sleep_stages"},
    "predictions": {"_columns", "sleep_stages", "storage"},
    "training": {"_columns", "_parameters", "_warnings"},
    "encoder": {"_parameters", "tokens"},
    "windows": {
        *("_channel_names", "_hosts", "_sampling_rate", "_subjects", "_warnings", "preprocessing"),
    },
    "recordings": {
        *("_channel_names", "_hosts", "_parameters", "_subjects", "_warnings", "preprocessing"),
        "storage",
    },
    "evaluation": {
        *("_columns", "_parameters", "_subjects", "_warnings", "storage", "training", "windows"),
        "_lists",
    },
    "pretext": {"_parameters", "encoder", "tokens"},
    "models": {
        *("_hosts", "_parameters", "_sampling_rate", "electrodes", "encoder", "storage", "tokens"),
        *("_warnings", "training"),
    },
    "datasets": {
        *("_hosts", "_parameters", "_subjects", "_warnings", "electrodes", "preprocessing"),
        "recordings",
    },
    "signal_store": {
        *("_channel_names", "_hosts", "_parameters", "_sampling_rate", "_subjects"),
        *("_warnings", "preprocessing", "recordings", "storage", "windows"),
    },
    "pretraining": {"_columns", "_parameters", "encoder", "pretext", "training", "windows"},
    "pretrained": {
        *(
            "_hidden_names",
            "_subjects",
            "encoder",
            "models",
            "preprocessing",
            "storage",
            "training",
        ),
    },
    "callbacks": {"_parameters", "encoder", "pretext", "pretraining", "training"},
    "runs": {
        *("_channel_names", "_columns", "_parameters", "encoder", "paper", "pretext", "pretrained"),
        *("_sampling_rate", "_subjects", "_warnings", "pretraining", "signal_store", "storage"),
        *("_lists", "training"),
    },
    "encoders": {"pretrained", "runs", "signal_store", "storage"},
    "estimators": {
        *("_columns", "_hosts", "_parameters", "_sampling_rate", "_subjects", "_warnings"),
        *("_channel_names", "augmentation", "electrodes", "encoder", "models", "preprocessing"),
        "_lists",
        *("pretext", "pretrained", "pretraining", "storage", "training", "windows"),
        "recordings",  # predict_raw prepares a recording as those of the training were
    },
    "baselines": {"encoder", "estimators", "evaluation", "pretext", "pretrained"},
}
#: At the top: they may import anything below.
TOP = {"__main__", "benchmarks", "cli"}


@pytest.mark.parametrize("part", sorted(MAY_IMPORT))
def test_imports_of_a_part(part):
    assert parts()[part] <= MAY_IMPORT[part]


def test_every_part_has_a_rule():
    assert set(parts()) == {*MAY_IMPORT, *TOP}


#: Modules of pretext/ that several tasks share.
SHARED = ("_placement", "base", "distance", "grid", "lags", "masked", "pairwise")


def test_pretext_tasks_do_not_import_each_other():
    tasks = [name for name in MODULES if part_of(name) == "pretext" and name.count(".") == 2]
    tasks = [name for name in tasks if name.rpartition(".")[2] not in SHARED]
    assert len(tasks) >= 5
    for task in tasks:
        assert imports(task).isdisjoint(tasks)


def test_recipes_do_not_import_each_other():
    recipes = [name for name in MODULES if part_of(name) == "datasets" and name.count(".") == 2]
    assert len(recipes) >= 8
    for recipe in recipes:
        assert imports(recipe).isdisjoint(recipes)


def test_there_are_no_circles():
    graph = {name: imports(name) for name in MODULES if name != "braindecode_pars"}
    graph = {name: {d for d in found if d != "braindecode_pars"} for name, found in graph.items()}
    assert list(TopologicalSorter(graph).static_order())


def test_there_are_eight_layers():
    assert max(layers().values()) <= 8


def test_parts_that_use_braindecode_import_hosts():
    """Else a user sees a warning about montages, or torchaudio's long error."""
    use_braindecode = {
        part_of(name)
        for name, path in MODULES.items()
        if re.search(r"^(from|import) braindecode[. ]", path.read_text("utf-8"), re.MULTILINE)
    }
    assert len(use_braindecode - TOP) >= 6
    for part in use_braindecode - TOP - {"_hosts"}:
        assert "_hosts" in parts()[part], part


def test_band_power_reaches_windows_only():
    """Not the store: an import for isinstance would import the writer of stores too."""
    reached = reach("braindecode_pars.evaluation.band_power")
    shared = "braindecode_pars.evaluation._window_features"
    beside = {"_channel_names", "_hidden_names", "_parameters", "_sampling_rate", "_subjects"}
    beside |= {"_warnings", "preprocessing"}
    assert {part_of(module) for module in reached - {shared}} <= {"windows", *beside}
    assert len(reached) <= 18


def test_every_module_has_a_test_file_of_its_name():
    """In the folder of the same name; benchmarks are run by tests/benchmarks, by their names."""
    missing = []
    for name, path in MODULES.items():
        *folders, stem = path.relative_to(ROOT).with_suffix("").parts
        if stem.startswith("__") or part_of(name) == "benchmarks":
            continue
        file = TESTS.joinpath(*folders, f"test_{stem.removeprefix('_')}.py")
        if not file.is_file():
            missing.append(f"{name}: {file.relative_to(TESTS)}")
    assert missing == []


def test_no_module_is_named_utils_or_the_like():
    stems = {path.stem.removeprefix("_") for path in MODULES.values()}
    assert stems.isdisjoint({"utils", "util", "helpers", "misc", "common", "tools"})
