"""Directives of the API reference: ``class-page`` for classes, ``commands`` for the command line.

The page of a class documents its own members. Members that are inherited from host libraries are
listed in a dropdown per host class, with links to the documentation of the library if available.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from class_members import inherited_members, own_members, signature_of
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.rst import escape
from typer.main import get_command

import braindecode_pars.cli.commands

__all__ = ["ClassPage", "Commands"]


class ClassPage(SphinxDirective):
    """Document a class by its full name: ``.. class-page:: NAME``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module, _, name = self.arguments[0].rpartition(".")
        cls = getattr(importlib.import_module(module), name)
        lines = [f".. autoclass:: {module}.{name}{signature_of(cls)}", "   :member-order: bysource"]
        if own_members(cls):
            lines += [f"   :members: {', '.join(own_members(cls))}"]
        for host, members in inherited_members(cls).items():
            roles = ", ".join(f":py:obj:`~{host}.{member}`" for member in members)
            lines += ["", f".. dropdown:: Inherited from {host}", "", f"   {roles}"]
        return self.parse_text_to_nodes("\n".join(lines))


class Commands(SphinxDirective):
    """Show the help of every command of ``braindecode-pars``: ``.. commands::``."""

    def run(self) -> list[nodes.Node]:
        group = get_command(braindecode_pars.cli.commands.app)
        lines = _sections(group, ["braindecode-pars"])
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def _sections(group: Any, path: list[str]) -> list[str]:
    """Return one section per command, with its help, its usage and a table of its options."""
    lines = []
    for name, command in group.commands.items():
        words = [*path, name]
        if hasattr(command, "commands"):
            lines += _sections(command, words)
            continue
        title = " ".join(words)
        context = command.context_class(command, info_name=title)
        usage = " ".join(command.collect_usage_pieces(context))
        rows = [parameter.get_help_record(context) for parameter in command.get_params(context)]
        lines += [title, "-" * len(title), "", *escape(inspect.cleandoc(command.help)).split("\n")]
        lines += ["", ".. code-block:: sh", "", f"   {title} {usage}", ""]
        lines += [".. list-table::", "   :widths: 2 3", "   :class: options", ""]
        for record in rows:
            if record is not None and record[0] != "--help":
                option, text = (escape(" ".join(part.split())) for part in record)
                lines += [f"   * - :literal:`{option}`", f"     - {text}"]
        lines += [""]
    return lines


def leave_out_the_hub(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Remove the text about the Hub that braindecode appends to the docstrings of models."""
    start = next(
        (i for i, line in enumerate(lines) if "Hugging Face Hub integration" in line), None
    )
    if start is not None and name.startswith("braindecode_pars."):
        del lines[start:]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("class-page", ClassPage)
    app.add_directive("commands", Commands)
    # Before numpydoc reads the docstring.
    app.connect("autodoc-process-docstring", leave_out_the_hub, priority=400)
    return {"parallel_read_safe": True}
