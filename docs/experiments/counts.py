"""Count the code: lines and modules of each part, functions, imports, and lines of tests.

    python docs/experiments/counts.py
    python docs/experiments/counts.py --check

Lines of code have a token that is no comment and no docstring. Functions are those with a name, and
methods; imports are import statements, also those inside functions and of types only. The parts are
the layers of the contract in ``setup.cfg``. With ``--check``, the script exits with 1 if a part has
more lines than its budget.
"""

from __future__ import annotations

import argparse
import ast
import configparser
import io
import sys
import tokenize
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: One module of each layer -> the part that the layer belongs to.
PARTS = {
    "cli": "study",
    "study": "study",
    "predictions": "study",
    "signal_store": "scale",
    "recordings": "data",
    "evaluation": "evaluation",
    "pretext": "core",
}
#: Lines of code that a part may have.
BUDGETS = {"core": 7_500, "evaluation": 3_900, "data": 3_300, "scale": 2_100, "study": 2_900}
BUDGET = 19_700
#: Row of folders and files that are in no layer.
NO_PART = "no part"
_LAYOUT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}


def code_lines(text: str) -> int:
    """Return the number of lines with code."""
    lines: set[int] = set()
    for token in tokenize.tokenize(io.BytesIO(text.encode()).readline):
        if token.type not in _LAYOUT:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(ast.Constant(str())):  # a docstring
                lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def number_of(text: str, *kinds: type[ast.AST]) -> int:
    """Return how many nodes of the syntax tree are of some kinds."""
    return sum(isinstance(node, kinds) for node in ast.walk(ast.parse(text)))


def read_parts(file: Path = ROOT / "setup.cfg") -> dict[str, str]:
    """Return the part of each folder and file of the package, by its name without ending."""
    config = configparser.ConfigParser()
    config.read(file, encoding="utf-8")
    layers = config["importlinter:contract:parts"]["layers"].strip().splitlines()
    parts = {"__init__": "core"}
    for layer in layers:
        names = [name.strip() for name in layer.split(":")]
        (part,) = {PARTS[name] for name in names if name in PARTS}
        parts |= dict.fromkeys(names, part)
    return parts


def lines_by_part(package: Path, parts: Mapping[str, str]) -> dict[str, list[int]]:
    """Return the lines of code of each module, by part."""
    lines: dict[str, list[int]] = {part: [] for part in BUDGETS}
    for file in sorted(package.rglob("*.py")):
        name = file.relative_to(package).parts[0].removesuffix(".py")
        part = parts.get(name, NO_PART)
        lines.setdefault(part, []).append(code_lines(file.read_text(encoding="utf-8")))
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 above a budget")
    options = parser.parse_args()
    package = ROOT / "braindecode_pars"
    lines = lines_by_part(package, read_parts())
    rows = [(part, sum(of), BUDGETS.get(part, 0), len(of)) for part, of in lines.items()]
    _, counts, _, numbers = zip(*rows, strict=True)
    rows.append(("all", sum(counts), BUDGET, sum(numbers)))
    print(f"{'part':<12}{'code lines':>12}{'budget':>9}{'modules':>9}")
    for part, n_lines, budget, n_modules in rows:
        print(f"{part:<12}{n_lines:>12,}{budget:>9,}{n_modules:>9,}")
    texts = [file.read_text(encoding="utf-8") for file in package.rglob("*.py")]
    tests = [file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("*.py")]
    imports = sum(number_of(text, ast.Import, ast.ImportFrom) for text in texts)
    functions = sum(number_of(text, ast.FunctionDef, ast.AsyncFunctionDef) for text in texts)
    print(f"\nfunctions            {functions:>7,}")
    print(f"imports a module     {imports / len(texts):>7.1f}")
    print(f"lines of tests       {sum(text.count(chr(10)) for text in tests):>7,}")
    above = [part for part, n_lines, budget, _ in rows if n_lines > budget]
    if options.check and above:
        print(f"\nAbove the budget: {', '.join(above)}.")
    return int(options.check and bool(above))


if __name__ == "__main__":
    sys.exit(main())
