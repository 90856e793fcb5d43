"""Conversion of values to JSON and back."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd

__all__ = ["LARGEST", "as_read", "parse_json", "plain", "read_json", "to_json"]

#: Largest file that is read, in bytes, and deepest nesting. A description of a model or of a run
#: is far below both; Python itself fails on deep nesting with a RecursionError.
LARGEST = 256 * 2**20
_DEEPEST = 64


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


def parse_json(text: str | bytes, *, largest: int = LARGEST) -> dict[str, Any]:
    """Return a JSON object.

    Parameters
    ----------
    text : str | bytes
        JSON, in UTF-8.
    largest : int
        Largest accepted length.

    Raises
    ------
    ValueError
        When the text is not JSON or not an object, is too long, or has more than 64 nested levels.

    Examples
    --------
    >>> from braindecode_pars.storage._json import parse_json
    >>> parse_json('{"sfreq": 200.0}')
    {'sfreq': 200.0}
    """
    _check_size(len(text), largest)
    try:
        content = json.loads(text if isinstance(text, str) else text.decode("utf-8"))
    except RecursionError:
        raise ValueError("its entries are nested too deeply") from None
    if not isinstance(content, dict):
        raise ValueError(f"it contains a {type(content).__name__}, not a JSON object")
    _check_depth(content)
    return content


def _check_size(size: int, largest: int) -> None:
    if size > largest:
        raise ValueError(f"it has {size} bytes, more than the {largest} that are accepted")


def _check_depth(content: dict[str, Any]) -> None:
    level: list[Any] = [content]
    for _ in range(_DEEPEST):
        inner = [value.values() if isinstance(value, dict) else value for value in level]
        level = [v for values in inner for v in values if isinstance(v, (dict, list))]
        if not level:
            return
    raise ValueError(f"its entries are nested in more than {_DEEPEST} levels")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; the limits are those of :func:`parse_json`.

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
        _check_size(path.stat().st_size, LARGEST)  # before it is read
        return parse_json(path.read_bytes())
    except ValueError as error:  # invalid JSON or invalid UTF-8
        raise ValueError(f"{path} is damaged or not a JSON file: {error}.") from error
