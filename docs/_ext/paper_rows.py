"""Rows of tables about the paper: decisions, and defaults that differ from the paper."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterable

from braindecode_pars import PARSClassifier, paper
from braindecode_pars.pretext import PARS

__all__ = ["decisions", "other_defaults"]


def decisions(lines: Iterable[str]) -> list[list[str]]:
    """Return the cells of each row: question, paper, package, code and tests.

    A row starts at the beginning of a line, continuation lines are indented, and " | " separates
    cells.

    Raises
    ------
    ValueError
        If a row does not have four cells, or its last cell names no object of the package.
    """
    rows: list[str] = []
    for line in filter(None, lines):
        if line.startswith(" "):
            rows[-1] += " " + line.strip()
        else:
            rows.append(line)
    cells = [row.split(" | ") for row in rows]
    for row in cells:
        named = re.findall(r"``([\w.]+)``", row[-1])
        if len(row) != 4 or not named:
            raise ValueError(
                f"expected the cells question | paper | package | code and tests, got {row}"
            )
        for name in named:
            try:
                pkgutil.resolve_name(f"braindecode_pars.{name}")
            except (ImportError, AttributeError) as error:
                raise ValueError(
                    f"braindecode_pars.{name} in row {row[0]!r} does not exist"
                ) from error
    return cells


def other_defaults() -> dict[str, tuple[object, object]]:
    """Return published and default values of parameters if they differ."""
    defaults = PARSClassifier().get_params() | {"pretext_params": dict(PARS.short_params)}
    return {
        name: (published, defaults[name])
        for name, published in paper.CLASSIFIER.items()
        if published != defaults[name]
    }
