"""Dependencies between the modules of the package, determined from their import statements."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2] / "braindecode_pars"
#: Module name -> file.
MODULES = {
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in ROOT.rglob("*.py")
}


@cache
def tree(name: str) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(MODULES[name].read_text(encoding="utf-8"))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements of a syntax tree without their expressions; faster than ast.walk."""
    for field in ("body", "orelse", "handlers", "finalbody", "cases"):
        for statement in getattr(node, field, ()):
            yield statement
            yield from statements(statement)


@cache
def imported_paths(name: str) -> frozenset[str]:
    """Return all imported modules, and imported names with their module: ``torch.nn.Module``."""
    paths = set()
    for node in statements(tree(name)):
        if isinstance(node, ast.Import):
            paths |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            paths |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(paths)


@cache
def imports(name: str) -> frozenset[str]:
    """Return the modules of the package that a module imports, at the top or inside a function."""
    paths = imported_paths(name)
    modules = {path if path in MODULES else path.rpartition(".")[0] for path in paths}
    return frozenset((modules & MODULES.keys()) - {name})


def part_of(name: str) -> str:
    """Return the top-level folder or file of the package that contains a module."""
    return name.split(".")[1] if "." in name else ""
