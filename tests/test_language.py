"""Terms of the field in names, docstrings, messages and pages, instead of earlier terms."""

from __future__ import annotations

import re
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
#: Lines in which these words are meant: names, keys and values in stored files, and readers.
ALLOWED = re.compile(
    r'"(people|person)"|`person`|\[.people.\]|facts\.held_out\.people|decision about a person'
    r'|"(un)?labelled windows of the test person"|subject-\)\?centred|``people``'
    r"|\(beside :=|any\(beside"
)


def test_terms_of_the_field():
    pattern = re.compile(rf"\b(?:{'|'.join(TERMS)})\b", re.IGNORECASE)
    places = [
        f"{file.relative_to(ROOT)}:{number}: {match[0]}, see TERMS"
        for file in (*PACKAGE, *PAGES, *EXAMPLES)
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        for match in pattern.finditer(ALLOWED.sub("", line))
    ]
    assert not places, "\n".join(places)
