"""A model in one safetensors file: tensors, a description and a checksum."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from braindecode_pars.storage._json import as_read, parse_json

__all__ = ["VERSION", "ModelFile", "pack", "unpack"]

#: Version of the format. A file of a newer version is refused.
VERSION = 2
#: The only key of the metadata in the header, so that the bytes of a file do not depend on the
#: order of keys.
_KEY = "braindecode_pars"


@dataclass(frozen=True)
class ModelFile:
    """Content of a model file.

    Attributes
    ----------
    kind : str | None
        Kind of model, such as ``"PARSNet"``. None when the file has no description and no
        checksum, as files of version 0.1.0 and of other programs.
    description : dict
        JSON object that describes the model.
    tensors : dict of str to Tensor
        Tensors by name, on the CPU.
    """

    kind: str | None
    description: dict[str, Any]
    tensors: dict[str, Tensor]


def pack(kind: str, description: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> bytes:
    """Return the content of a model file.

    Parameters
    ----------
    kind, description, tensors
        As in :class:`ModelFile`.

    Returns
    -------
    bytes
        A safetensors file. The description and the SHA-256 are in its metadata.

    Raises
    ------
    ValueError
        When a tensor contains NaN or infinite values.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.storage._model_file import pack, unpack
    >>> content = pack("example", {"sfreq": 200.0}, {"weight": torch.ones(2)})
    >>> unpack(content, "memory").description
    {'sfreq': 200.0}
    """
    tensors = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    bad = [name for name, value in tensors.items() if not value.isfinite().all()]
    if bad:
        raise ValueError(f"{bad[0]} contains NaN or infinite values, so the model is not saved.")
    entries = {"version": VERSION, "kind": kind, "description": as_read(description)}
    # Saved twice, because the checksum covers the header and is a part of it.
    header, data = _split(safetensors.torch.save(tensors))
    entries["sha256"] = _sha256(entries, header, data)
    return safetensors.torch.save(tensors, metadata={_KEY: json.dumps(entries)})


def unpack(content: bytes, source: str | Path) -> ModelFile:
    """Return what :func:`pack` has packed.

    Parameters
    ----------
    content : bytes
        Content of the file.
    source : path | str
        Origin of the content, for error messages.

    Raises
    ------
    ValueError
        When the file is damaged or was edited, is not a safetensors file, or has a newer version.
    """
    try:
        tensors = safetensors.torch.load(content)
    except SafetensorError as error:
        raise ValueError(f"{source} is damaged or not a safetensors file: {error}.") from error
    header, data = _split(content)
    metadata = header.pop("__metadata__", {})
    if _KEY not in metadata:
        return ModelFile(None, {}, tensors)

    # The version first: a newer version may have another checksum.
    try:
        entries = parse_json(metadata[_KEY])
        version, expected = entries["version"], entries.pop("sha256")
        kind, description = entries["kind"], dict(entries["description"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{source} is damaged: its description is not readable.") from error
    if version != VERSION:
        raise ValueError(
            f"{source} has version {version} of the format, but this version of braindecode_pars "
            f"reads version {VERSION}; update braindecode_pars."
        )
    if _sha256(entries, header, data) != expected:
        raise ValueError(
            f"{source} is damaged or was edited: its content does not match its checksum. Copy or "
            "download it again, or save the model in a new folder."
        )
    return ModelFile(kind, description, tensors)


def _split(content: bytes) -> tuple[dict[str, Any], memoryview]:
    """Return the header and the data of a safetensors file."""
    start = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:start]), memoryview(content)[start:]


def _sha256(entries: Mapping[str, Any], header: Mapping[str, Any], data: memoryview) -> str:
    """Return the checksum of the description, of the names and shapes of tensors, and of data."""
    content = hashlib.sha256(json.dumps([entries, header], sort_keys=True).encode())
    content.update(data)
    return content.hexdigest()
