"""Checksums of files and arrays."""

from __future__ import annotations

import hashlib
from typing import Any

__all__ = ["checksum_of"]


def checksum_of(content: Any) -> str:
    """Return a checksum of bytes or of a C-ordered array, 16 hexadecimal digits (BLAKE2b).

    Examples
    --------
    >>> from braindecode_pars.storage._checksum import checksum_of
    >>> checksum_of(b"ab")
    '0e52b5f187de1088'
    """
    return hashlib.blake2b(content, digest_size=8).hexdigest()
