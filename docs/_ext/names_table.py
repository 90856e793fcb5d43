"""Directives for the tables in ``_common/names.py``.

``names`` describes each row, and ``pages`` links the page of each row, which is written here.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from class_members import documented_names
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.ext.autosummary.generate import generate_autosummary_docs
from sphinx.util.docutils import SphinxDirective

from braindecode_pars._common import names


class Names(SphinxDirective):
    """List the names of a table: ``.. names:: TASKS``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        rows = getattr(names, self.arguments[0]).values()
        lines = [f"- ``{row.name}``: {row.description}{_link(row)}" for row in rows]
        return self.parse_text_to_nodes("\n".join(lines))


def _link(row: names.Entry | names.Metric | names.Column) -> str:
    """Return a link to the class of a task."""
    if isinstance(row, names.Entry) and row.place.startswith("pretext."):
        return f" (:class:`~braindecode_pars.pretext.{row.attribute}`)"
    return ""


class Pages(SphinxDirective):
    """Summarize the objects of a table, with a page for each: ``.. pages:: TASKS``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(_summary(self.arguments[0], "../generated"))


def _summary(table: str, folder: str) -> str:
    """Return the directive ``autosummary`` of a table, with pages in a folder."""
    options = [".. autosummary::", f"   :toctree: {folder}", "   :nosignatures:", ""]
    return "\n".join([*options, *(f"   ~{path}" for path in documented_names(table))])


def write_pages(app: Sphinx) -> None:
    """Write the pages with autosummary, which detects only its own directive in files."""
    generated = Path(app.srcdir, "generated")
    with TemporaryDirectory() as folder:
        listing = Path(folder, "names.rst")
        summaries = [_summary(table, str(generated)) for table in ("TASKS", "RECIPES")]
        head = ".. currentmodule:: braindecode_pars\n\n"
        listing.write_text(head + "\n\n".join(summaries), encoding="utf-8")
        generate_autosummary_docs([str(listing)], generated, app=app)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("names", Names)
    app.add_directive("pages", Pages)
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True}
