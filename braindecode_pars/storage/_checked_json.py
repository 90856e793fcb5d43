"""A JSON object in a file, with a checksum that shows damage and edits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from braindecode_pars.storage._atomic import replace_file
from braindecode_pars.storage._checksum import checksum_of
from braindecode_pars.storage._json import read_json, to_json

__all__ = ["read_checked", "write_checked"]


def write_checked(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object and its checksum, completely or not at all.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars.storage._checked_json import read_checked, write_checked
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_checked(Path(folder, "a.json"), {"sfreq": 200.0})
    ...     read_checked(Path(folder, "a.json"))
    {'sfreq': 200.0}
    """
    replace_file(path, to_json({**content, "checksum": _checksum_of(content)}))


def read_checked(path: Path) -> dict[str, Any]:
    """Read what :func:`write_checked` has written.

    Raises
    ------
    FileNotFoundError
        When the file does not exist.
    ValueError
        When the file cannot be read, was damaged or edited, or has no checksum.
    """
    try:
        content = read_json(path)
    except FileNotFoundError:
        raise
    except OSError as error:  # a folder, for example
        raise ValueError(f"{path} cannot be read ({error.strerror}).") from error
    if "checksum" not in content:
        raise ValueError(f"{path} has no checksum; it is of version 0.1.0, or was edited.")
    if content.pop("checksum") != _checksum_of(content):
        raise ValueError(f"{path} does not match its checksum.")
    return content


def _checksum_of(content: Mapping[str, Any]) -> str:
    return checksum_of(to_json(content).encode())
