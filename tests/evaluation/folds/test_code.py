"""Code of the user is compared by what it does; code of packages by their versions."""

from __future__ import annotations

import logging
import types

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

from braindecode_pars import PARSClassifier
from braindecode_pars.evaluation import cache as _code
from braindecode_pars.evaluation.cache import describe_estimator, is_installed, version_of

SCRIPT = '''
import logging
import helpers
from sklearn.base import BaseEstimator

log = logging.getLogger("mine")
SETTINGS = {"gain": 2}

def scale(x, power=2):
    """Scale."""
    log.info("scaled")
    return x ** power * SETTINGS["gain"] if x not in {"a", "b", "c"} else helpers.shift(x)

class Mine(BaseEstimator):
    offset = 1

    def __init__(self, strength=1):
        self.strength = strength

    def fit(self, X, y):
        self.scaled_ = scale(self.strength)
        return self

    @property
    def double(self):
        return 2 * self.offset

    @staticmethod
    def triple(x):
        return [3 * value for value in x]
'''
HELPERS = "def shift(x): return x + 1"


def described(script=SCRIPT, helpers=HELPERS):
    """Run a script, and describe its class."""
    module, helping = types.ModuleType("script"), types.ModuleType("helpers")
    exec(helpers, vars(helping))
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(__import__("sys").modules, "helpers", helping)
        exec(script, vars(module))
    return describe_estimator(module.Mine())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("scale(self.strength)", "scale(-self.strength)"),
        ("power=2", "power=3"),
        ('"gain": 2', '"gain": 3'),
        ('{"a", "b", "c"}', '{"a", "b", "d"}'),
        ("offset = 1", "offset = 2"),
        ("2 * self.offset", "4 * self.offset"),
        ("3 * value", "5 * value"),
        ("X, y):", "X, y, z=None):"),
        ("class Mine(BaseEstimator)", "class Base(BaseEstimator):\n    a = 1\nclass Mine(Base)"),
    ],
)
def test_a_change_of_code_changes_the_description(old, new):
    assert old in SCRIPT
    before, after = described(), described(SCRIPT.replace(old, new))
    assert before.pop("source code") != after.pop("source code")
    assert before == after


def test_a_change_in_a_module_of_the_user_changes_the_description():
    assert described() != described(helpers=HELPERS.replace("1", "2"))
    assert described() == described(helpers=HELPERS + "\ndef unused(): pass")


def test_comments_docstrings_and_lines_do_not_count():
    other = SCRIPT.replace('"""Scale."""', '"""Another text."""\n\n    # a comment')
    logging.getLogger("mine").setLevel("ERROR")
    assert described("\n\n" + other) == described()


def test_defaults_and_outer_variables_of_functions_count():
    def make(factor, power=1):
        return lambda x, power=power: factor * x**power

    class Holder(BaseEstimator):
        def __init__(self, function):
            self.function = function

    one, same, factor, power = (
        describe_estimator(Holder(make(*arguments))) for arguments in [(1,), (1,), (2,), (1, 2)]
    )
    assert one == same
    assert one not in (factor, power)


def test_functions_that_call_each_other_are_described():
    script = SCRIPT + "\ndef one(x): return other(x)\ndef other(x): return one(x)\n"
    script = script.replace("self.scaled_ = scale", "self.scaled_ = one")
    assert described(script) == described(script) != described(script.replace("one(x)\n", "x\n"))


def test_constants_have_the_same_text_in_every_process():
    constants = (frozenset("abcdefgh"), (1, frozenset("xyz")))
    assert _code._constant(constants) == (sorted(map(repr, "abcdefgh")), (1, ["'x'", "'y'", "'z'"]))


def test_packages_count_by_their_version(monkeypatch):
    versions = describe_estimator(LogisticRegression())["package versions"]
    assert {"python", "braindecode_pars", "braindecode", "torch", "sklearn"} == versions.keys()
    assert "sources" in versions["braindecode_pars"]
    monkeypatch.setattr("braindecode_pars.evaluation.cache.version_of", lambda name: f"{name} 9")
    assert describe_estimator(LogisticRegression())["package versions"]["torch"] == "torch 9"
    assert "numpy" in describe_estimator(PARSClassifier(callbacks=[np.sum]))["package versions"]


def test_installed_code_is_told_from_code_of_the_user():
    assert all(map(is_installed, ["sklearn.base", "json", "builtins", "braindecode_pars.models"]))
    assert not any(map(is_installed, ["__main__", "support.subjects", __name__]))
    assert version_of("sklearn").count(".") >= 1
    assert version_of("no_such_package") is None
