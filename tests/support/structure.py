"""How the modules of the package depend on each other, read from their imports."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2] / "braindecode_pars"
#: Name of each module -> its file.
MODULES = {
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in ROOT.rglob("*.py")
}


@cache
def tree(name: str) -> ast.Module:
    """The parsed code of a module."""
    return ast.parse(MODULES[name].read_text(encoding="utf-8"))


@cache
def imports(name: str) -> frozenset[str]:
    """Modules of the package that a module imports, at the top or inside a function."""
    found = set()
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in MODULES else node.module)
    return frozenset(module for module in found if module in MODULES and module != name)


def part_of(name: str) -> str:
    """The folder or file at the top of the package that a module belongs to."""
    return name.split(".")[1] if "." in name else ""
