"""Tables about the paper: decisions, and defaults that differ from the paper."""

from __future__ import annotations

from collections.abc import Iterable

from docutils import nodes
from paper_rows import decisions, other_defaults
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

__all__ = ["Decisions", "Defaults"]


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
    """``.. defaults::`` with lines ``name: text``; the text is shown instead of the default."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        texts = dict(line.split(": ", 1) for line in self.content if line)
        differing = other_defaults()
        if unknown := set(texts) - set(differing):
            raise self.error(f"The defaults of {sorted(unknown)} do not differ from the paper.")
        rows = [
            [f"``{name}``", f"``{published!r}``", texts.get(name, f"``{default!r}``")]
            for name, (published, default) in differing.items()
        ]
        header = "Parameter | The paper (``paper.CLASSIFIER``) | Default"
        return self.parse_text_to_nodes(_table(header, "40 30 30", "defaults", rows))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("decisions", Decisions)
    app.add_directive("defaults", Defaults)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
