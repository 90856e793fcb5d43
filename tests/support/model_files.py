"""Change the content of saved models, with a valid checksum."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor

from braindecode_pars._common.model_files import ModelFile, unpack, write_model


def model_in(folder: Path) -> ModelFile:
    """Read the only model file of a folder."""
    (file,) = folder.glob("*.safetensors")
    return unpack(file.read_bytes(), file)


def change_description(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the description of a saved model, and update the checksum."""
    model = model_in(folder)
    change(model.description)
    write_model(folder, model.kind, model.description, model.tensors)


def change_tensors(folder: Path, changes: dict[str, Tensor | None]) -> None:
    """Replace tensors of a saved model, or delete them (None), and update the checksum."""
    model = model_in(folder)
    tensors = {**model.tensors, **changes}
    remaining = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    write_model(folder, model.kind, model.description, remaining)
