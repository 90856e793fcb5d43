"""Code of the user counts by its source, with what it imports; code of packages by versions."""

from __future__ import annotations

import importlib.util
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import FunctionTransformer

from braindecode_pars.evaluation.cache import describe_estimator, is_own

LAB = {
    "lab/__init__.py": "",
    "lab/estimators.py": '''
"""Estimators of a lab."""
from sklearn.base import BaseEstimator
from . import filters
SETTINGS = {"gain": 2}

class Base(BaseEstimator):
    offset = 1

class Mine(Base):
    def __init__(self, strength=1):
        self.strength = strength

    def fit(self, X, y):
        """Fit."""
        from lab.deep import helpers  # only when it is fitted
        self.scaled_ = helpers.shift(filters.smooth(self.strength))
        return self
''',
    "lab/filters.py": "import lab.deep.tables as tables\ndef smooth(x): return x * tables.FACTOR\n",
    "lab/deep/__init__.py": "",
    "lab/deep/helpers.py": "def shift(x): return x + 1\n",
    "lab/deep/tables.py": "FACTOR = 3\n",
    "lab/unrelated.py": "x = 1\n",
}


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A package of the user; the function describes its estimator after a change of a file."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def described(**changes):
        for name, text in LAB.items():
            file = tmp_path / name
            file.parent.mkdir(exist_ok=True, parents=True)
            old, new = changes.get(file.stem, ("", ""))
            assert old in text
            file.write_text(text.replace(old, new) if old else text)
        for module in [name for name in sys.modules if name.partition(".")[0] == "lab"]:
            del sys.modules[module]
        importlib.invalidate_caches()
        return describe_estimator(importlib.import_module("lab.estimators").Mine())

    yield described
    for module in [name for name in sys.modules if name.partition(".")[0] == "lab"]:
        del sys.modules[module]


@pytest.mark.parametrize(
    "changes",
    [
        dict(estimators=("self.strength))", "-self.strength))")),
        dict(estimators=('"gain": 2', '"gain": 3')),
        dict(estimators=("offset = 1", "offset = 2")),
        dict(filters=("x * tables", "x / tables")),
        dict(helpers=("x + 1", "x + 2")),
        dict(tables=("FACTOR = 3", "FACTOR = 4")),
    ],
    ids=["method", "constant", "base", "relative import", "import in a function", "submodule"],
)
def test_a_changed_module_is_named(lab, changes):
    before, after = lab(), lab(**changes)
    differing = {
        name for name in before["sources"] if before["sources"][name] != after["sources"][name]
    }
    assert {name.rpartition(".")[2] for name in differing} == {*changes}
    assert {k: v for k, v in before.items() if k != "sources"} == {
        k: v for k, v in after.items() if k != "sources"
    }


def test_comments_docstrings_layout_and_other_modules_do_not_count(lab):
    before = lab()
    changed = lab(estimators=('"""Fit."""', '"""Another text."""\n\n        # a comment\n'))
    assert changed == lab(unrelated=("x = 1", "x = 2")) == before
    assert {*before["sources"]} == {
        *("lab", "lab.deep", "lab.deep.helpers", "lab.deep.tables", "lab.estimators", "lab.filters")
    }


SCRIPT = '''
import json, sys
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.preprocessing import FunctionTransformer
GAIN, UNUSED = 2, 5

def scale(x):
    """Scale."""
    return x * GAIN

class Mine(BaseEstimator):
    def fit(self, X, y):
        return scale(X)

def unrelated(): return 1
'''


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("x * GAIN", "x + GAIN", True),
        ("GAIN, UNUSED = 2, 5", "GAIN, UNUSED = 3, 5", True),
        ("return scale(X)", "return scale(-X)", True),
        ("UNUSED = 2, 5", "UNUSED = 2, 6", False),
        ("return 1", "return 2", False),
        ('"""Scale."""', "# a comment", False),
    ],
)
def test_of_a_script_count_the_definitions_and_constants_that_are_used(
    tmp_path, monkeypatch, old, new, counts
):
    found = []
    for name, text in (("before", SCRIPT), ("after", SCRIPT.replace(old, new))):
        file = tmp_path / f"{name}.py"
        file.write_text(text)
        spec = importlib.util.spec_from_file_location("__main__", file)
        script = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "__main__", script)
        spec.loader.exec_module(script)
        found.append(describe_estimator(script.Mine())["sources"])
    assert "unknown" not in found[0].values()
    assert (found[0] != found[1]) == counts


def test_values_that_functions_and_parameters_hold_count():
    def make(factor, power=1):
        return lambda x, power=power: factor * x**power

    def described(function, **held):
        return describe_estimator(FunctionTransformer(function, kw_args=SimpleNamespace(**held)))

    one = described(make(1), gain=1)
    assert one == described(make(1), gain=1)
    for other in (make(2), make(1, 2), lambda x: x):
        assert described(other, gain=1) != one
    assert described(make(1), gain=2) != one


def test_packages_count_by_their_version(monkeypatch):
    before = describe_estimator(LogisticRegression())
    assert {*before["versions"]} == {"braindecode_pars", "braindecode", "torch", "sklearn"}
    assert before["sources"] == describe_estimator(FunctionTransformer(np.log))["sources"] == {}
    monkeypatch.setattr("torch.__version__", "9")
    assert describe_estimator(LogisticRegression()) != before


def test_code_of_the_user_is_told_from_installed_code():
    assert not any(map(is_own, ["sklearn.base", "json", "builtins", "braindecode_pars.models"]))
    assert all(map(is_own, ["__main__", "support.subjects", __name__]))


class Unfinished(BaseEstimator):
    """Its module is this test."""


def test_a_class_of_a_test_is_the_users():
    assert __name__ in describe_estimator(Unfinished())["sources"]
