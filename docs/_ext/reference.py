"""Directives of the API reference: ``class-page`` for a class, ``commands`` for the command line.

A class is documented by its own members. What it inherits from the host libraries is listed in a
fold-out for each host class, with a link where the pages of the library can be reached.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from functools import cached_property
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.rst import escape
from typer.main import get_command

import braindecode_pars.cli._app

__all__ = ["ClassPage", "Commands", "inherited_members", "own_members", "signature_of"]

#: Members that only the host libraries call, though they have a docstring of ours.
HOOKS = {"get_augmentation_params", "get_torchinfo_statistics", "input_shape", "operation"}
#: Classes whose members every Python object or container has.
BASIC = {"builtins", "typing", "abc"}


def is_ours(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == "braindecode_pars"


def own_members(cls: type) -> list[str]:
    """Return the members that the package documents, those of the class itself first.

    A member that overrides one of a host class without a docstring is a hook of the host.
    """
    found = {
        name: None  # a dictionary keeps the order
        for base in cls.__mro__
        if is_ours(base)
        for name, member in vars(base).items()
        if not name.startswith("_") and name not in HOOKS and _has_docstring(member)
    }
    return list(found)


def _has_docstring(member: Any) -> bool:
    function = getattr(member, "__func__", None) or getattr(member, "fget", None)
    if isinstance(member, cached_property):
        function = member.func
    function = function or member
    return inspect.isfunction(function) and bool(function.__doc__)


def inherited_members(cls: type) -> dict[str, list[str]]:
    """Return the names of public members by the public name of the host class that has them.

    Those of a private mixin count to the public class that brings it.
    """
    listed = set(own_members(cls))
    found: dict[str, list[str]] = {}
    hosts = [base for base in cls.__mro__ if not is_ours(base)]
    for host in hosts:
        if host.__module__ in BASIC:
            continue
        public = next((base for base in hosts if issubclass(base, host) and is_public(base)), host)
        names = [
            name
            for name, member in vars(host).items()
            if not name.startswith("_")
            and name not in listed
            and (callable(member) or isinstance(member, property | classmethod | staticmethod))
        ]
        listed |= set(names)
        found.setdefault(public_name(public), []).extend(names)
    return {name: sorted(members) for name, members in found.items() if members}


def is_public(cls: type) -> bool:
    return not re.search(r"(^|\.)_", f"{cls.__module__}.{cls.__qualname__}")


def public_name(cls: type) -> str:
    """Return the shortest name of a class below the package itself, such as ``torch.nn.Module``."""
    parts = cls.__module__.split(".")
    for n in range(2, len(parts)):
        module = sys.modules.get(".".join(parts[:n]))
        if getattr(module, cls.__name__, None) is cls:
            return f"{module.__name__}.{cls.__name__}"
    return f"{cls.__module__}.{cls.__qualname__}"


def signature_of(cls: type) -> str:
    """Return the signature of a class where a host's ``__new__`` hides it from Sphinx, else ""."""
    if not (cls.__new__.__module__ or "").startswith("huggingface_hub"):
        return ""

    def shown(one: inspect.Parameter) -> inspect.Parameter:
        if isinstance(one.default, type):
            one = one.replace(default=_Literal(public_name(one.default)))
        return one.replace(annotation=one.empty)

    parameters = inspect.signature(cls).parameters.values()
    return str(inspect.Signature([shown(one) for one in parameters]))


class _Literal(str):
    """A text that a signature shows without quotation marks."""

    __repr__ = str.__str__


class ClassPage(SphinxDirective):
    """Document a class: ``.. class-page:: NAME``, the full name."""

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
        group = get_command(braindecode_pars.cli._app.app)
        lines = _sections(group, ["braindecode-pars"])
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def _sections(group: Any, path: list[str]) -> list[str]:
    """Return a section for each command: its help, its usage, and a table of its options."""
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
    """Cut what braindecode appends to the docstring of a model: its code imports other names."""
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
