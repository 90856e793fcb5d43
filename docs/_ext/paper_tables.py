"""Tables of the page on the paper: its decisions, and the defaults that differ from it."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterable

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from braindecode_pars import PARSClassifier, paper

__all__ = ["Decisions", "Defaults", "decisions", "differences"]

#: PARS has these values by default, so the classifier passes none.
PUBLISHED_BY_DEFAULT = {"position_mask_ratio": 0.8}


def decisions(lines: Iterable[str]) -> list[list[str]]:
    """Return the cells of each row: question, paper, package, code and tests.

    A row begins a line, its further lines are indented, and " | " is between cells.

    Raises
    ------
    ValueError
        When a row has not four cells, or the last one names no object of the package.
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
            raise ValueError(f"not question | paper | package | code: tests, but {row}")
        for name in named:
            try:
                pkgutil.resolve_name(f"braindecode_pars.{name}")
            except (ImportError, AttributeError) as error:
                raise ValueError(f"braindecode_pars has no {name}, which {row[0]} names") from error
    return cells


def differences() -> dict[str, tuple[object, object]]:
    """Return the published and the default value of the parameters where these differ."""
    defaults = PARSClassifier().get_params() | {"pretext_params": PUBLISHED_BY_DEFAULT}
    return {
        name: (published, defaults[name])
        for name, published in paper.CLASSIFIER.items()
        if published != defaults[name]
    }


def _table(header: str, widths: str, css: str, rows: Iterable[Iterable[str]]) -> str:
    lines = [".. list-table::", "   :header-rows: 1"]
    lines += [f"   :widths: {widths}", f"   :class: {css}", ""]
    for first, *others in [header.split(" | "), *rows]:
        lines += [f"   * - {first}", *(f"     - {cell}" for cell in others)]
    return "\n".join(lines)


class Decisions(SphinxDirective):
    """``.. decisions::`` with the rows of :func:`decisions`."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        header = "Question | The paper | This package | Code and tests"
        rows = decisions(self.content)
        return self.parse_text_to_nodes(_table(header, "15 30 30 25", "decisions thirds", rows))


class Defaults(SphinxDirective):
    """``.. defaults::`` with what is said of a default instead of its value, as ``name: text``."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        said = dict(line.split(": ", 1) for line in self.content if line)
        found = differences()
        if unknown := set(said) - set(found):
            raise self.error(f"{sorted(unknown)} have the paper's value by default")
        rows = [
            [f"``{name}``", f"``{published!r}``", said.get(name, f"``{default!r}``")]
            for name, (published, default) in found.items()
        ]
        header = "Parameter | The paper (``paper.CLASSIFIER``) | Default"
        return self.parse_text_to_nodes(_table(header, "40 30 30", "defaults", rows))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("decisions", Decisions)
    app.add_directive("defaults", Defaults)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
