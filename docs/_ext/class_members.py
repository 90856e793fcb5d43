"""Documented classes, and the content of their pages.

A page has the members of the class, the members of the host libraries, and the signature.
"""

from __future__ import annotations

import inspect
import re
import sys
from functools import cached_property
from typing import Any

from braindecode_pars._common import names as tables

__all__ = ["documented_names", "inherited_members", "own_members", "signature_of"]

#: Members with a docstring that only the host libraries call.
HOOKS = {"get_augmentation_params", "get_torchinfo_statistics", "input_shape", "operation"}
#: Modules of classes whose members every Python object or container has.
BASIC = {"builtins", "typing", "abc"}


def documented_names(table: str) -> list[str]:
    """Return the objects of a table of names: ``pretext.PARS``, or the module of a recipe."""
    rows = getattr(tables, table).values()
    if table == "RECIPES":
        return [row.place.partition(":")[0] for row in rows]
    return [f"{row.place.partition('.')[0]}.{row.attribute}" for row in rows]


def is_ours(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == "braindecode_pars"


def own_members(cls: type) -> list[str]:
    """Return the documented members, starting with the members of the class itself.

    An overriding member without a docstring is a hook of a host library, and is skipped.
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

    Members of a private mixin are listed with the public class that inherits from it.
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
    """Return the shortest importable name of a class, such as ``torch.nn.Module``."""
    parts = cls.__module__.split(".")
    for n in range(2, len(parts)):
        module = sys.modules.get(".".join(parts[:n]))
        if getattr(module, cls.__name__, None) is cls:
            return f"{module.__name__}.{cls.__name__}"
    return f"{cls.__module__}.{cls.__qualname__}"


def signature_of(cls: type) -> str:
    """Return the signature of a class if ``__new__`` of a host hides it from Sphinx, else ""."""
    if not (cls.__new__.__module__ or "").startswith("huggingface_hub"):
        return ""

    def shown(parameter: inspect.Parameter) -> inspect.Parameter:
        if isinstance(parameter.default, type):
            parameter = parameter.replace(default=_Literal(public_name(parameter.default)))
        return parameter.replace(annotation=parameter.empty)

    parameters = inspect.signature(cls).parameters.values()
    return str(inspect.Signature([shown(parameter) for parameter in parameters]))


class _Literal(str):
    """String that a signature shows without quotation marks."""

    __repr__ = str.__str__
