"""Parse repeated options of the form KEY=VALUE."""

from __future__ import annotations

import ast
import json
from typing import Any

__all__ = ["pairs", "values"]


def values(options: list[str] | None, name: str) -> dict[str, Any]:
    """Return values by key; a value is a Python or JSON literal, or else a string."""
    return {key: _value(text) for key, text in pairs(options, name)}


def pairs(options: list[str] | None, name: str, form: str = "KEY=VALUE") -> list[tuple[str, str]]:
    """Return pairs of key and text.

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
    # JSON comes second, for true, false and null.
    for read in (ast.literal_eval, json.loads):
        try:
            return read(text)
        except (ValueError, SyntaxError):
            continue
    return text
