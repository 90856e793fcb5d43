"""Tensors in safetensors files, with JSON files that describe them and a report on loading."""

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
    """Report on which tensors of a module were loaded from a file.

    Attributes
    ----------
    loaded : tuple of str
        Tensors of the module that were loaded.
    missing : tuple of str
        Tensors of the module that are not in the file; their values are unchanged.
    reshaped : tuple of str
        Tensors of the module that have another shape in the file; their values are unchanged.
    unexpected : tuple of str
        Tensors of the file that are not in the module.

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
        """Whether all tensors of the module and of the file were loaded."""
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
        Module whose tensors are replaced.
    tensors : dict of str to Tensor
        New tensors, by their names in the module's ``state_dict``.
    source : Any
        Origin of the tensors, for the error message.
    strict : bool
        Whether names and shapes must all match. If False, the matching tensors are loaded.

    Returns
    -------
    LoadReport
        Names of the tensors that were loaded, and of those that were not.

    Raises
    ------
    ValueError
        With ``strict``, when tensors are missing, unexpected or of another shape; without it, when
        no tensor matches.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from braindecode_pars.storage._tensors import load_tensors
    >>> tensors = {"weight": torch.zeros(1, 2)}
    >>> print(load_tensors(nn.Linear(2, 1), tensors, "a dict", strict=False))
    1 of 2 tensors loaded; 1 missing (such as bias)
    """
    # A tensor matches when the module has one of the same name and shape.
    expected = {name: value.shape for name, value in module.state_dict().items()}
    fits = {n: t for n, t in tensors.items() if n in expected and t.shape == expected[n]}
    report = LoadReport(
        loaded=tuple(name for name in expected if name in fits),
        missing=tuple(name for name in expected if name not in tensors),
        reshaped=tuple(name for name in expected if name in tensors and name not in fits),
        unexpected=tuple(name for name in tensors if name not in expected),
    )
    if not report.loaded or (strict and not report.complete):
        advice = "" if not report.loaded else "; strict=False loads the matching tensors"
        raise ValueError(
            f"The tensors of {source} do not match the {type(module).__name__}: {report}{advice}."
        )
    module.load_state_dict(fits, strict=False)  # the report above replaces torch's own check
    return report


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file.

    Parameters
    ----------
    path : Path
        Path of the file.

    Returns
    -------
    dict of str to Tensor
        Tensors by name, on the CPU.

    Raises
    ------
    FileNotFoundError
        When the file does not exist.
    ValueError
        When the file is damaged, or not a safetensors file.

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
        raise ValueError(f"{path} is damaged or not a safetensors file: {error}.") from error


def write_folder(
    folder: str | Path,
    *,
    tensors: Mapping[str, Mapping[str, Tensor]],
    described: Mapping[str, Mapping[str, Any]],
) -> Path:
    """Write safetensors and JSON files into a folder, all of them or none.

    The files are first written into a temporary folder and then renamed. A reader never sees an
    incomplete file, and a full disk leaves the previous files unchanged.

    Parameters
    ----------
    folder : path
        Folder of the files; created when it does not exist.
    tensors : dict of str to dict of str to Tensor
        Content of each safetensors file, by file name: tensors by name.
    described : dict of str to dict
        Content of each JSON file, by file name.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ValueError
        When a tensor contains NaN or infinite values.
    OSError
        When the files cannot be written; the previous content of the folder is unchanged.

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
    # The content of all files, before any of them is written.
    contents: dict[str, bytes] = {}
    for name, values in tensors.items():
        values = {key: value.detach().cpu().contiguous() for key, value in values.items()}
        bad = [key for key, value in values.items() if not value.isfinite().all()]
        if bad:
            raise ValueError(
                f"{bad[0]} contains NaN or infinite values, so the model is not saved."
            )
        contents[name] = safetensors.torch.save(values)
    for name, value in described.items():
        contents[name] = to_json(value).encode()
    replace_files(folder, contents)
    return folder
