"""Conversion of values to JSON and back."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd

__all__ = ["as_read", "plain", "read_json", "to_json"]


def plain(value: Any) -> Any:
    """Convert one value to a type that JSON supports.

    NumPy scalars become Python numbers. Missing values (NaN, NA) become None. Any other object
    becomes its ``str``.

    Parameters
    ----------
    value : Any
        Value to convert; not a list or dict.

    Returns
    -------
    bool | int | float | str | None
        Converted value.
    """
    value = value.item() if hasattr(value, "item") else value
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return None
    return str(value)


def to_json(value: Any) -> str:
    """Return lists, dicts and values as indented JSON that ends with a line break."""
    return json.dumps(value, indent=2, default=plain) + "\n"


def as_read(value: Any) -> Any:
    """Convert to JSON and back, to compare a value with one that was read from a file."""
    return json.loads(to_json(value))


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Parameters
    ----------
    path : Path
        Path of the file.

    Returns
    -------
    dict
        Content of the file.

    Raises
    ------
    FileNotFoundError
        When the file does not exist.
    ValueError
        When the file is damaged, or does not contain a JSON object.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # invalid JSON or invalid UTF-8
        raise ValueError(f"{path} is damaged or not a JSON file: {error}.") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} contains a {type(content).__name__}, not a JSON object.")
    return content
