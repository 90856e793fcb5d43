"""Count the code: lines, modules, functions, imports, and lines of tests.

    python docs/experiments/counts.py

Lines of code have a token that is no comment and no docstring. Functions are those with a name, and
methods; imports are import statements, also those inside functions and of types only.
"""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[2]
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


def main() -> None:
    texts = [file.read_text(encoding="utf-8") for file in (ROOT / "braindecode_pars").rglob("*.py")]
    tests = [file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("*.py")]
    imports = sum(number_of(text, ast.Import, ast.ImportFrom) for text in texts)
    functions = sum(number_of(text, ast.FunctionDef, ast.AsyncFunctionDef) for text in texts)
    print(f"code lines           {sum(map(code_lines, texts)):>7,}")
    print(f"modules              {len(texts):>7,}")
    print(f"functions            {functions:>7,}")
    print(f"imports a module     {imports / len(texts):>7.1f}")
    print(f"lines of tests       {sum(text.count(chr(10)) for text in tests):>7,}")


if __name__ == "__main__":
    main()
