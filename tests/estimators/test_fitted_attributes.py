"""Fitted attributes (``x_``) are assigned by the class that has them, and by nobody else."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from support.structure import MODULES, part_of, tree

#: Objects of other packages, and the score that a study adds to its model: module -> names.
OTHER_OBJECTS = {
    "braindecode_pars.baselines.few_labels": {
        "scaler",
        "regression",
        "step",
        "self.tangent_space_",
    },
    "braindecode_pars.baselines.new_subject": {"scaler", "linear"},
    "braindecode_pars.study.study_model": {"estimator"},
}


def is_of_own_class(node: ast.AST) -> bool:
    """Whether a call returns an object of the class in whose method it is."""
    match node:
        case ast.Call(ast.Name("cls")):
            return True
        case ast.Call(ast.Attribute(ast.Name("copy"), "copy"), [ast.Name("self")]):
            return True
    return False


def outside_assignments(module: ast.AST) -> Iterator[str]:
    """Yield the objects whose fitted attributes are assigned outside of their class."""
    functions = (ast.FunctionDef, ast.Lambda)
    methods = [
        node
        for owner in ast.walk(module)
        if isinstance(owner, ast.ClassDef)
        for node in owner.body
        if isinstance(node, functions)
    ]
    allowed: dict[ast.AST, set[str]] = {}
    for method in methods:
        assigned = [n for n in ast.walk(method) if isinstance(n, ast.Assign)]
        own = [n.targets[0] for n in assigned if any(map(is_of_own_class, ast.walk(n.value)))]
        names = {n.id for target in own for n in ast.walk(target) if isinstance(n, ast.Name)}
        allowed |= dict.fromkeys(ast.walk(method), names | {"self"})
    for node in ast.walk(module):
        match node:
            case ast.Attribute(value=value, attr=name, ctx=ast.Store()):
                pass
            case ast.Call(ast.Name("setattr"), [value, ast.Constant(name), _]):
                pass
            case ast.Call(ast.Name("setattr"), [value, ast.JoinedStr([*_, ast.Constant(name)]), _]):
                pass
            case ast.Call(ast.Attribute(ast.Call(ast.Name("vars"), [value]), "update")):
                name = "any_"
            case _:
                continue
        if name.endswith("_") and ast.unparse(value) not in allowed.get(node, ()):
            yield ast.unparse(value)


def test_a_fitted_attribute_is_assigned_by_its_own_class():
    # Commands have no estimators of their own.
    trees = {name: tree(name) for name in MODULES if part_of(name) != "cli"}
    found = {
        name: {*outside_assignments(module)} - OTHER_OBJECTS.get(name, set())
        for name, module in trees.items()
    }
    assert {name: names for name, names in found.items() if names} == {}


FAULTS = {
    "estimator.x_ = 1": {"estimator"},
    "def f(self, other):\n    self.x_, other.y = 1, 2": {"self"},
    "class A:\n    def f(self, other):\n        self.x_ = other.y_ = 1": {"other"},
    "class A:\n    def f(self, it):\n        return lambda x: setattr(it, 'x_', x)": {"it"},
    "class A:\n    def f(self, it):\n        setattr(it, f'{name}_', 1)": {"it"},
    "class A:\n    def f(cls, it):\n        vars(it).update(a)": {"it"},
    "class A:\n    def f(self):\n        new = copy.copy(self)\n        new.x_ = 1": set(),
}


@pytest.mark.parametrize("code", FAULTS)
def test_an_assignment_elsewhere_is_seen(code):
    assert {*outside_assignments(ast.parse(code))} == FAULTS[code]
