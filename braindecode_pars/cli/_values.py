"""Options of the form KEY=VALUE, which may be repeated."""

from __future__ import annotations

import ast
import json
from typing import Any

__all__ = ["pairs", "values"]


def values(options: list[str] | None, name: str) -> dict[str, Any]:
    """Values as Python or JSON writes them; anything else is a string."""
    return {key: _value(text) for key, text in pairs(options, name)}


def pairs(options: list[str] | None, name: str, form: str = "KEY=VALUE") -> list[tuple[str, str]]:
    """Keys and texts.

    Raises
    ------
    ValueError
        When an option has no ``=``.
    """
    for option in options or ():
        if "=" not in option:
            raise ValueError(f"{name} {option!r} is not of the form {form}.")
    return [tuple(option.split("=", 1)) for option in options or ()]


def _value(text: str) -> Any:
    """A number, list or dict as Python or JSON writes it; anything else is a string."""
    for read in (ast.literal_eval, json.loads):
        try:
            return read(text)
        except (ValueError, SyntaxError):
            continue
    return text
