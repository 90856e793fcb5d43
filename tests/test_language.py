"""Terms of the field in names, docstrings, messages and pages, instead of earlier terms."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = sorted((ROOT / "braindecode_pars").rglob("*.py"))
PAGES = [
    *(f for end in ("html", "md") for f in sorted((ROOT / "braindecode_pars").rglob(f"*.{end}"))),
    *sorted((ROOT / "docs").glob("*.rst")),
    *(f for part in ("api", "guide", "results") for f in sorted((ROOT / "docs" / part).glob("*"))),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
]
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))

#: Earlier term -> term of the field.
TERMS = {
    r"people|persons?|someone|somebody": "subject",
    r"anew": "again",
    r"perhaps": "may",
    r"beside": "next to, in addition to",
    r"otherwise than|prepared otherwise|prepared alike": "preprocessing differs",
    r"untrained": "random",
    r"twin": "random encoder",
    r"rivals?": "baseline",
    r"looked at": "checked, inspected",
    r"is told|are told|told apart|tells? apart": "distinguish, report",
    r"so many": "number of",
    r"stretch|stretches": "segment",
    r"recentred|centred|labelled|unlabelled": "American spelling",
    r"of no use|of no account": "state the reason",
}
PATTERN = re.compile(rf"\b(?:{'|'.join(TERMS)})\b", re.IGNORECASE)
#: Texts in which these words are meant: keys and values in stored files, and who reads a page.
ALLOWED = re.compile(
    r'"(people|person)"|`person`|\[.people.\]|facts\.held_out\.people|decision about a person'
    r'|"(un)?labelled windows of the test person"|subject-\)\?centred|``people``'
)

#: Names that do not say what a variable holds.
VAGUE = {*re.findall(r"\w+", "found given own told kept left each one those how far rest most few")}
#: Such a name where a variable may be set. Only files with one are parsed, to be fast.
SET = re.compile(rf"\b(?:{'|'.join(VAGUE)})\b\s*(?:[^\w\s.(\"'`;]|in\b|$)", re.MULTILINE)


def lines(file: Path) -> list[tuple[int, str]]:
    """Return the lines of strings and comments of a Python file, or the lines of a page."""
    content = file.read_text(encoding="utf-8")
    if not PATTERN.search(content):  # tokenizing takes long
        return []
    if file.suffix != ".py":
        return list(enumerate(content.splitlines(), 1))
    tokens = tokenize.generate_tokens(io.StringIO(content).readline)
    kinds = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1)}
    return [
        (token.start[0] + i, line)
        for token in tokens
        if token.type in kinds
        for i, line in enumerate(token.string.splitlines())
    ]


def test_terms_of_the_field():
    places = [
        f"{file.relative_to(ROOT)}:{number}: {match[0]}, better {replacement(match[0])}"
        for file in (*PACKAGE, *PAGES, *EXAMPLES)
        for number, line in lines(file)
        for match in PATTERN.finditer(ALLOWED.sub("", line))
    ]
    assert not places, "\n".join(places)


def replacement(word: str) -> str:
    """Return the term of the field for an earlier term."""
    return next(TERMS[term] for term in TERMS if re.fullmatch(term, word, re.IGNORECASE))


def test_names_say_what_variables_hold():
    names = [
        (file, node.lineno, node.arg if isinstance(node, ast.arg) else node.id)
        for file in filter(lambda file: SET.search(file.read_text(encoding="utf-8")), PACKAGE)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.arg)
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    ]
    vague = [
        f"{file.relative_to(ROOT)}:{number} {name}" for file, number, name in names if name in VAGUE
    ]
    assert len(vague) < 20, "\n".join(vague)
