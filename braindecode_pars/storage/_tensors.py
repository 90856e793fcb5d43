"""Tensors on disk as safetensors, loaded with a report, and what describes them as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor, nn

from braindecode_pars.storage._atomic import replace_files
from braindecode_pars.storage._json import to_json

__all__ = ["LoadReport", "load_tensors", "read_tensors", "write_folder"]


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

    Examples
    --------
    >>> from braindecode_pars.storage import LoadReport
    >>> report = LoadReport(loaded=("weight", "bias"), missing=("mask_token",))
    >>> report.complete
    False
    >>> print(report)
    2 of 3 tensors loaded; 1 missing (such as mask_token)
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
        What gets the tensors.
    tensors : dict of str to Tensor
        By their names in the module's ``state_dict``.
    source : Any
        Where they come from, for the message.
    strict : bool
        Refuse anything but an exact match. False loads what fits.

    Returns
    -------
    LoadReport
        What was loaded and what was not.

    Raises
    ------
    ValueError
        When tensors are missing, of another shape or unexpected; without ``strict`` when none
        fits.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from braindecode_pars.storage._tensors import load_tensors
    >>> tensors = {"weight": torch.zeros(1, 2)}
    >>> print(load_tensors(nn.Linear(2, 1), tensors, "a dict", strict=False))
    1 of 2 tensors loaded; 1 missing (such as bias)
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

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    dict of str to Tensor
        On the CPU.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    ValueError
        When the file is damaged or something else.

    Examples
    --------
    >>> import tempfile
    >>> import torch
    >>> from braindecode_pars.storage._tensors import read_tensors, write_folder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tensors = {"a.safetensors": {"weight": torch.ones(2)}}
    ...     folder = write_folder(folder, tensors=tensors, described={})
    ...     read_tensors(folder / "a.safetensors")
    {'weight': tensor([1., 1.])}
    """
    try:
        return safetensors.torch.load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged or no safetensors file: {error}.") from error


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
    tensors : dict of str to dict of str to Tensor
        Tensors by name, by the name of their file.
    described : dict of str to dict
        JSON objects by the name of their file.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ValueError
        When a tensor is not finite.
    OSError
        When the folder cannot be written; what it held before is unchanged.

    Examples
    --------
    >>> import tempfile
    >>> import torch
    >>> from braindecode_pars.storage._tensors import write_folder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     folder = write_folder(
    ...         folder,
    ...         tensors={"a.safetensors": {"weight": torch.ones(2)}},
    ...         described={"a.json": {"sfreq": 200.0}},
    ...     )
    ...     sorted(file.name for file in folder.iterdir())
    ['a.json', 'a.safetensors']
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
        contents[name] = to_json(value).encode()
    replace_files(folder, contents)
    return folder
