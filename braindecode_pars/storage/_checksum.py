"""Checksums of files and arrays."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from typing import Any

__all__ = ["checksum_of", "checksum_of_file"]

_blake2b = partial(hashlib.blake2b, digest_size=8)


def checksum_of(content: Any) -> str:
    """Return a checksum of bytes or of a C-ordered array, 16 hexadecimal digits (BLAKE2b).

    Examples
    --------
    >>> from braindecode_pars.storage._checksum import checksum_of
    >>> checksum_of(b"ab")
    '0e52b5f187de1088'
    """
    return _blake2b(content).hexdigest()


def checksum_of_file(file: Path) -> str:
    """Return the checksum of the content of a file, without reading all of it at once."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, _blake2b).hexdigest()
