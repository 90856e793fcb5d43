"""The script that counts lines of code: parts of the package, and lines of a module."""

from __future__ import annotations

import counts
from counts import BUDGETS, NO_PART, ROOT, code_lines, lines_by_part, read_parts


def test_every_folder_and_file_of_the_package_has_a_part(monkeypatch):
    monkeypatch.setattr(counts, "code_lines", lambda text: 0)  # counting all lines takes seconds
    parts = read_parts()
    assert set(parts.values()) == set(BUDGETS)
    expected = dict(_common="core", baselines="evaluation", datasets="data", runs="scale")
    expected |= dict(predictions="study", __main__="study")
    assert expected.items() <= parts.items()
    assert NO_PART not in lines_by_part(ROOT / "braindecode_pars", parts)


def test_comments_docstrings_and_empty_lines_are_not_counted():
    text = '"""A docstring\nof two lines."""\n\n# A comment\nx = [\n    1,  # one\n]\n'
    assert code_lines(text) == 3
