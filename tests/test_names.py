"""The tables of names: everything with a name has a row, and every row has its thing and tests."""

from __future__ import annotations

import re
from importlib import import_module

import pandas as pd
import pytest
from support.structure import MODULES

from braindecode_pars import baselines, datasets
from braindecode_pars._common import model_files, names, subjects, tables
from braindecode_pars.evaluation import changed_signals, metrics
from braindecode_pars.pretext import PRETEXT_TASKS, AllChannelTask

TESTS = MODULES["braindecode_pars"].parents[1] / "tests"


def test_every_registered_task_has_a_row_and_is_the_class_of_the_row():
    tasks = {n: task for n, task in PRETEXT_TASKS.items() if "braindecode_pars" in task.__module__}
    assert tasks == {name: entry.load() for name, entry in names.TASKS.items()}


@pytest.mark.parametrize("entry", names.TASKS.values(), ids=list(names.TASKS))
def test_every_task_has_a_test(entry):
    """Tasks on single channels have that of the contract of all tasks."""
    texts = [file.read_text(encoding="utf-8") for file in (TESTS / "pretext").glob("test_*.py")]
    is_of_all_channels = issubclass(entry.load(), AllChannelTask)
    pattern = r"\b{}\(" if is_of_all_channels else r"^    task = {}$"
    use = re.compile(pattern.format(entry.attribute), re.MULTILINE)
    assert any(map(use.search, texts))


def test_every_recipe_has_a_row_and_a_test():
    modules = [name for name in MODULES if re.fullmatch(r"braindecode_pars\.datasets\.\w+", name)]
    recipes = [module.RECIPE for module in map(import_module, modules) if "RECIPE" in vars(module)]
    assert {recipe.name: recipe for recipe in recipes} == datasets.RECIPES
    for name in names.RECIPES:
        tests = (TESTS / "datasets" / f"test_{name}.py").read_text(encoding="utf-8")
        assert f'(RecipeContract):\n    name = "{name}"\n' in tests, name


def test_corpora_and_their_families_are_those_of_the_rows():
    assert tuple(names.RECIPES) == subjects.CORPORA
    assert subjects.public_corpora(["tuab:aaaaaaaa", "laboratory:7"]) == ["tuab"]
    assert subjects.subject_key("tuab:aaaaaaaa") == subjects.subject_key("tueg:aaaaaaaa")


def test_methods_are_the_tasks_and_the_baselines_in_the_order_of_the_rows():
    assert (*names.TASKS, *names.BASELINES) == baselines.METHODS
    made = baselines.make_methods(baselines.METHODS)
    assert len(made) == len(baselines.METHODS)


def test_every_metric_is_computed_from_what_its_row_says():
    labels, probabilities = metrics._LABEL_METRICS, metrics._BINARY_METRICS
    of_rows = {"labels": {*labels}, "probabilities": {*probabilities}}
    for name, metric in names.METRICS.items():
        of_rows[metric.needs].remove(name)
    assert not any(of_rows.values())


@pytest.mark.parametrize(
    ("metric", "chance"),
    [("kappa", 0.0), ("balanced_accuracy", 0.25), ("auroc", 0.5), ("f1", None), ("speed", None)],
)
def test_the_chance_level_is_that_of_the_row(metric, chance):
    """Without a number of classes, that of balanced accuracy is unknown."""
    rows = pd.DataFrame(dict(metric=[metric], value=[0.5]))
    without = None if metric == "balanced_accuracy" else chance
    assert tables.chance_level(rows) == without
    if metric in names.METRICS:
        known = names.METRICS[metric].chance_level(4)
        assert tables.chance_level(rows.assign(chance=known)) == chance


def test_columns_of_scores_are_those_of_the_rows():
    """Each has a text for the documentation, and keys tell scores apart."""
    assert [*names.SCORES][: len(tables.SCORES)] == tables.SCORES
    assert {*tables.TEST_SUBJECT_COLUMNS, tables.PRETRAINING_SEED} < {*names.SCORES}
    rows = pd.DataFrame({name: [column.kind(0)] * 2 for name, column in names.SCORES.items()})
    rows = rows.assign(control="none")
    assert len(tables.checked_scores(rows, tables.SCORES)) == 1
    for name, column in names.SCORES.items():
        other = rows.assign(**{name: [column.kind(0), column.kind(1)]})
        if column.is_key:
            assert len(tables.checked_scores(other, [*tables.SCORES, "control"])) == 2, name
        elif name == "value":
            with pytest.raises(ValueError, match="several rows"):
                tables.checked_scores(other, tables.SCORES)
        else:
            assert len(tables.checked_scores(other, tables.SCORES)) == 1, name


def test_rows_are_those_of_a_metric_that_is_named_where_there_are_several():
    scores = pd.DataFrame(dict(metric=["f1", "kappa"], value=[0.1, 0.2]))
    assert tables.rows_of(scores, "kappa")["value"].tolist() == [0.2]
    assert tables.rows_of(scores[:1])["value"].tolist() == [0.1]
    for metric in (None, "auroc"):
        with pytest.raises(ValueError, match=r"metric.* f1, kappa"):
            tables.rows_of(scores, metric)


def test_only_one_function_selects_a_metric():
    select = re.compile(r"""\["metric"\]\s*==|\.metric\s*==|query\([^)]*metric""")
    places = [name for name, file in MODULES.items() if select.search(file.read_text("utf-8"))]
    assert places == ["braindecode_pars._common.tables"]


def test_every_control_but_labels_changes_signals():
    assert {*names.CONTROLS} - {*changed_signals.CHANGES} == {"labels"}
    for control in changed_signals.CHANGES:
        changed_signals.ControlSignals(control).fit([[0.0]])


def test_every_kind_of_model_is_a_class_and_every_shipped_encoder_has_a_row():
    for name, kind in names.MODEL_KINDS.items():
        cls = kind.load()
        assert cls.__name__ == name
        assert getattr(cls, "_kind", name) == name
    assert sorted(row.place for row in names.ENCODERS.values()) == model_files.bundled_names()


@pytest.mark.parametrize("path", names.LAZY)
def test_every_lazy_name_is_there(path):
    folder, _, name = path.partition(".")
    assert names.lazy(path) is not None
    shown = getattr(import_module(f"braindecode_pars.{folder}"), "__all__", ())
    if name in shown:
        assert getattr(import_module(f"braindecode_pars.{folder}"), name) is names.lazy(path)
