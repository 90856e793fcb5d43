"""Tensors and what describes them on disk: safetensors and JSON, loaded with a report."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor, nn

__all__ = ["LoadReport", "load_tensors", "read_json", "read_tensors", "write_folder"]


@dataclass(frozen=True)
class LoadReport:
    """What became of a module's tensors and of those in a file.

    Attributes
    ----------
    loaded : tuple of str
        Tensors of the module that were found in the file.
    missing : tuple of str
        Those that were not; they keep the values they had.
    reshaped : tuple of str
        Those that the file has in another shape; they keep the values they had.
    unexpected : tuple of str
        Tensors of the file that the module does not have.
    """

    loaded: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    reshaped: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether module and file have the same tensors."""
        return not (self.missing or self.reshaped or self.unexpected)

    def __str__(self) -> str:
        total = len(self.loaded) + len(self.missing) + len(self.reshaped)
        details = (
            f"; {len(names)} {what} (such as {names[0]})"
            for what, names in (
                ("missing", self.missing),
                ("of another shape", self.reshaped),
                ("unexpected", self.unexpected),
            )
            if names
        )
        return f"{len(self.loaded)} of {total} tensors loaded{''.join(details)}"


def load_tensors(
    module: nn.Module, tensors: Mapping[str, Tensor], source: Any, *, strict: bool = True
) -> LoadReport:
    """Load tensors into a module, in place.

    Parameters
    ----------
    module : nn.Module
    tensors : dict of str to Tensor
    source : Any
        Where they come from, for the message.
    strict : bool
        Refuse anything but an exact match. False loads what fits.

    Raises
    ------
    ValueError
        When tensors are missing, of another shape or unexpected; without ``strict`` when none
        fits.
    """
    expected = {name: value.shape for name, value in module.state_dict().items()}
    fits = {n: t for n, t in tensors.items() if n in expected and t.shape == expected[n]}
    report = LoadReport(
        loaded=tuple(name for name in expected if name in fits),
        missing=tuple(name for name in expected if name not in tensors),
        reshaped=tuple(name for name in expected if name in tensors and name not in fits),
        unexpected=tuple(name for name in tensors if name not in expected),
    )
    if not report.loaded or (strict and not report.complete):
        advice = "" if not report.loaded else "; strict=False loads what fits"
        raise ValueError(
            f"{source} does not hold the {type(module).__name__} it describes: {report}{advice}."
        )
    module.load_state_dict(fits, strict=False)
    return report


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file.

    Raises
    ------
    ValueError
        When the file is damaged or something else.
    """
    try:
        return safetensors.torch.load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged or no safetensors file: {error}.") from error


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises
    ------
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


def write_folder(
    folder: str | Path,
    *,
    tensors: Mapping[str, Mapping[str, Tensor]],
    described: Mapping[str, Mapping[str, Any]],
) -> Path:
    """Write safetensors and JSON files into a folder.

    All are written aside first and then renamed: a reader never sees half a file, and a full
    disk leaves what was there.

    Parameters
    ----------
    folder : path
        Made when it does not exist.
    tensors : dict of file name to dict of str to Tensor
    described : dict of file name to JSON object

    Raises
    ------
    ValueError
        When a tensor is not finite.
    OSError
        When the folder cannot be written.
    """
    folder = Path(folder)
    contents: dict[str, bytes] = {}
    for name, values in tensors.items():
        values = {key: value.detach().cpu().contiguous() for key, value in values.items()}
        bad = [key for key, value in values.items() if not value.isfinite().all()]
        if bad:
            raise ValueError(f"{bad[0]} has weights that are not finite, not worth keeping.")
        contents[name] = safetensors.torch.save(values)
    for name, value in described.items():
        contents[name] = (json.dumps(value, indent=2, default=_to_json) + "\n").encode()

    try:
        folder.mkdir(parents=True, exist_ok=True)
        # A folder of its own: several processes may write at once.
        with tempfile.TemporaryDirectory(prefix=".writing-", dir=folder) as aside:
            new, old = Path(aside) / "new", Path(aside) / "old"
            new.mkdir()
            old.mkdir()
            for name, content in contents.items():
                _write(new / name, content)
            _exchange(folder, new, old, list(contents))
    except OSError as error:
        raise type(error)(
            error.errno,
            f"{folder} cannot be written ({error.strerror}); what it held before is unchanged",
        ) from error
    return folder


def _exchange(folder: Path, new: Path, old: Path, names: list[str]) -> None:
    """Put all new files in the place of the old ones, or none."""
    try:
        for name in names:
            with suppress(FileNotFoundError):
                shutil.copy2(folder / name, old / name)
        for name in names:
            os.replace(new / name, folder / name)
    except BaseException:
        for name in names:
            if (new / name).exists():
                continue  # not exchanged yet
            if (old / name).exists():
                os.replace(old / name, folder / name)
            else:
                (folder / name).unlink()
        raise


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _to_json(value: Any) -> Any:
    """NumPy scalars as numbers; anything else, such as an enum of subjects, as its name."""
    return value.item() if hasattr(value, "item") else str(value)
