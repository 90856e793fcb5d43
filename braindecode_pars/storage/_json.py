"""Values as JSON, and back."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd

__all__ = ["as_read", "plain", "read_json", "to_json"]


def plain(value: Any) -> Any:
    """Convert one value to what JSON knows.

    NumPy scalars become numbers, missing values (NaN, NA) None, anything else its text.

    Parameters
    ----------
    value : Any
        Not a list or dict.

    Returns
    -------
    bool | int | float | str | None
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
    """Write lists, dicts and values as indented JSON that ends with a line break."""
    return json.dumps(value, indent=2, default=plain) + "\n"


def as_read(value: Any) -> Any:
    """Convert to what comes back from JSON, to compare it with what was read."""
    return json.loads(to_json(value))


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    dict
        What it holds.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    ValueError
        When the file is damaged or something else.
    """
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # of JSON or of UTF-8
        raise ValueError(f"{path} is damaged or no JSON file: {error}.") from error
    if not isinstance(described, dict):
        raise ValueError(f"{path} holds a {type(described).__name__}, not a JSON object.")
    return described
