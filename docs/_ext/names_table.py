"""Directive ``names``: the rows of a table in ``_common/names.py``, with what each name is."""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from braindecode_pars._common import names


class Names(SphinxDirective):
    """List the names of a table: ``.. names:: TASKS``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        rows = getattr(names, self.arguments[0]).values()
        lines = [f"- ``{row.name}``: {row.says}{_link(row)}" for row in rows]
        return self.parse_text_to_nodes("\n".join(lines))


def _link(row: names.Entry | names.Metric | names.Column) -> str:
    """Return a link to the class of a task."""
    if isinstance(row, names.Entry) and row.place.startswith("pretext."):
        return f" (:class:`~braindecode_pars.pretext.{row.attribute}`)"
    return ""


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("names", Names)
    return {"parallel_read_safe": True}
