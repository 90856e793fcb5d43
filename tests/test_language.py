"""Terms of the field in names, docstrings, messages and pages, instead of earlier terms."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = sorted((ROOT / "braindecode_pars").rglob("*.py"))
TEMPLATES = [f for end in ("html", "md") for f in (ROOT / "braindecode_pars").rglob(f"*.{end}")]
PAGES = [
    *(ROOT / "docs").glob("*.rst"),
    *(f for part in ("api", "guide", "results") for f in (ROOT / "docs" / part).glob("*.rst")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
]
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))

#: Earlier term -> term of the field.
TERMS = {
    r"people|persons?|someone|somebody": "subject",
    r"whom|(?<!of )whose subject": "subject",
    r"anew": "again",
    r"perhaps": "may",
    r"beside": "next to, in addition to",
    r"otherwise than|prepared otherwise|prepared alike": "preprocessing differs",
    r"untrained": "random",
    r"twin": "random encoder",
    r"rivals?": "baseline",
    r"guesses of chance|loss of chance": "chance level",
    r"looked at": "checked, inspected",
    r"is told|are told|told apart|tell apart|tells apart": "distinguish, report",
    r"so many": "number of",
    r"needed are|drawn are|read are": "(no inversion)",
    r"stretch|stretches": "segment",
    r"recentred|centred|labelled|unlabelled": "(American spelling)",
    r"at chance alone": "chance level",
    r"goes with the|go with the": "is confounded with",
    r"of no use|of no account": "(state the reason)",
}
#: Place and text in which an earlier term has another meaning.
ALLOWED: dict[str, str] = {}

#: Names that do not say what the variable holds.
VAGUE = {
    "found",
    "given",
    "own",
    "told",
    "kept",
    "left",
    "each",
    "one",
    "those",
    "how",
    "far",
    "rest",
    "most",
    "few",
}


@cache
def texts(file: Path) -> list[tuple[int, str]]:
    """Return strings and comments of a Python file with their line, or the lines of a page."""
    content = file.read_text(encoding="utf-8")
    if file.suffix != ".py":
        return list(enumerate(content.splitlines(), 1))
    tokens = tokenize.generate_tokens(io.StringIO(content).readline)
    kinds = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1)}
    return [(token.start[0], token.string) for token in tokens if token.type in kinds]


@pytest.mark.parametrize("term", TERMS)
def test_terms_of_the_field(term):
    pattern = re.compile(rf"\b(?:{term})\b", re.IGNORECASE)
    places = [
        f"{file.relative_to(ROOT)}:{line}: {text.strip()[:80]}"
        for file in (*PACKAGE, *TEMPLATES, *PAGES, *EXAMPLES)
        for line, text in texts(file)
        if pattern.search(text)
    ]
    assert not places, f"{TERMS[term]}:\n" + "\n".join(places)


def test_names_say_what_variables_hold():
    vague = [
        f"{file.relative_to(ROOT)}:{node.lineno} {name}"
        for file in PACKAGE
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        for name in [getattr(node, "arg", None) or getattr(node, "id", None)]
        if name in VAGUE and isinstance(getattr(node, "ctx", ast.Store()), ast.Store)
        if isinstance(node, ast.arg | ast.Name)
    ]
    assert len(vague) < 20, "\n".join(vague)
