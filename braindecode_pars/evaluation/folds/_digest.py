"""Digests of values and arrays."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch

from braindecode_pars.storage._checksum import checksum_of

__all__ = ["digest", "digest_array"]


def digest(*parts: Any) -> str:
    """Return twelve hexadecimal digits that change with the text of any part."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def digest_array(array: np.ndarray | torch.Tensor) -> str:
    """Return type, shape, and hexadecimal digits that change with every bit of the content."""
    if isinstance(array, torch.Tensor):
        # As bytes, because NumPy has no bfloat16.
        content = array.detach().cpu().to_dense().contiguous().reshape(-1).view(torch.uint8)
        return f"{array.dtype}{tuple(array.shape)} {checksum_of(content.numpy())}"
    if array.dtype.hasobject:
        return f"{array.dtype}{array.shape} {digest(array.tolist())}"
    return f"{array.dtype}{array.shape} {checksum_of(np.ascontiguousarray(array))}"
