"""Saved models with other content."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor

from braindecode_pars._common.model_files import ModelFile, unpack, write_model


def model_in(folder: Path) -> ModelFile:
    (file,) = folder.glob("*.safetensors")
    return unpack(file.read_bytes(), file)


def change_description(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Write the model with another description and a right checksum, as anyone could."""
    model = model_in(folder)
    change(model.description)
    write_model(folder, model.kind, model.description, model.tensors)


def change_tensors(folder: Path, changes: dict[str, Tensor | None]) -> None:
    """Write the model with other tensors and a right checksum; None deletes one."""
    model = model_in(folder)
    tensors = {**model.tensors, **changes}
    kept = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    write_model(folder, model.kind, model.description, kept)
