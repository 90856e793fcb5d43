"""How the modules of the package depend on each other, read from their imports.

``python tests/support/structure.py [PACKAGE]`` prints the layers and the reach of some modules;
PACKAGE is the folder of another version of the package.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2] / "braindecode_pars"
MODULES: dict[str, Path] = {}


def read(root: Path) -> None:
    """Read the modules of a package."""
    MODULES.clear()
    for path in root.rglob("*.py"):
        parts = path.relative_to(root.parent).with_suffix("").parts
        MODULES[".".join(parts).removesuffix(".__init__")] = path


read(ROOT)


@cache
def imports(name: str) -> frozenset[str]:
    """Modules of the package that a module imports, at the top or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in MODULES else node.module)
    return frozenset(module for module in found if module in MODULES and module != name)


def reach(name: str) -> set[str]:
    """Modules that a module imports, and those that they import, and so on."""
    reached, waiting = set(), [name]
    while waiting:
        new = imports(waiting.pop()) - reached
        reached |= new
        waiting += new
    return reached - {name}


def part_of(name: str) -> str:
    """The folder or file at the top of the package that a module belongs to."""
    return name.split(".")[1] if "." in name else ""


def parts() -> dict[str, set[str]]:
    """What every part imports of the others; the package's own names are not counted."""
    found: dict[str, set[str]] = {}
    for name in MODULES:
        if part_of(name):
            others = {part_of(module) for module in imports(name)}
            found.setdefault(part_of(name), set()).update(others - {part_of(name), ""})
    return found


def layers() -> dict[str, int]:
    """A part is one layer above the highest part that it imports."""
    graph = parts()

    @cache
    def layer(part: str) -> int:
        return 1 + max(map(layer, graph[part]), default=0)

    return {part: layer(part) for part in graph}


def show(root: Path) -> None:
    """Print layers and reach."""
    read(root)
    found = layers()
    for number in range(max(found.values()), 0, -1):
        print(f"layer {number}: {', '.join(sorted(r for r in found if found[r] == number))}")
    for name in ("estimators.transformers", "evaluation.protocols", "windows", "callbacks"):
        full = f"braindecode_pars.{name}"
        if full in MODULES:
            reached = reach(full)
            lines = sum(len(MODULES[m].read_text().splitlines()) for m in reached)
            print(f"{name} reaches {len(reached)} modules, {lines} lines")


if __name__ == "__main__":
    show(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
