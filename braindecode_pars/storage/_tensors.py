"""Loading of tensors into modules, with a report on which were loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["LoadReport", "build_and_load", "load_tensors"]


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
    report = _compare(module, tensors, source, strict)
    # The report above replaces torch's own check.
    module.load_state_dict({name: tensors[name] for name in report.loaded}, strict=False)
    return report


def _compare(
    module: nn.Module, tensors: Mapping[str, Tensor], source: Any, strict: bool
) -> LoadReport:
    """Return which tensors match a module, after the checks of :func:`load_tensors`."""
    # A tensor matches when the module has one of the same name and shape.
    expected = module.state_dict()
    fits = {
        name for name, t in tensors.items() if name in expected and t.shape == expected[name].shape
    }
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
    # torch would silently convert integers and complex numbers.
    for name in report.loaded:
        found, wanted = tensors[name], expected[name]
        if wanted.is_floating_point() and not found.is_floating_point():
            raise ValueError(
                f"{name} of {source} has type {found.dtype}; it must be {wanted.dtype}."
            )
        if not found.isfinite().all():
            raise ValueError(f"{name} of {source} contains NaN or infinite values.")
    return report


def build_and_load(
    build: Callable[[], nn.Module],
    tensors: Mapping[str, Tensor],
    source: Any,
    *,
    num_layers: int,
    strict: bool = True,
) -> tuple[nn.Module, LoadReport]:
    """Build a module and load its tensors; nothing large is built for tensors that do not match.

    The module is first built without memory, on torch's meta device, and compared with the tensors.

    Parameters
    ----------
    build : callable
        Function that returns a new module.
    tensors, source, strict
        As in :func:`load_tensors`.
    num_layers : int
        Number of layers of the module. Each has at least one tensor.

    Returns
    -------
    module : nn.Module
        The module.
    report : LoadReport
        As in :func:`load_tensors`.

    Raises
    ------
    ValueError
        As in :func:`load_tensors`; when the module cannot be built; when there are fewer tensors
        than layers, or when the module is more than ten times as large as the tensors.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from braindecode_pars.storage._tensors import build_and_load
    >>> tensors = {"weight": torch.zeros(1, 2), "bias": torch.ones(1)}
    >>> linear, report = build_and_load(lambda: nn.Linear(2, 1), tensors, "a dict", num_layers=1)
    >>> linear(torch.ones(2))
    tensor([1.], grad_fn=<ViewBackward0>)
    """
    if not isinstance(num_layers, int) or num_layers > len(tensors):
        raise ValueError(
            f"{source} has {len(tensors)} tensors, too few for the {num_layers} layers that its "
            "description names."
        )
    try:
        with torch.device("meta"):
            skeleton = build()
    except (TypeError, ValueError, KeyError, AttributeError, RuntimeError) as error:
        raise ValueError(f"{source} does not describe a model: {error}.") from error
    _compare(skeleton, tensors, source, strict)
    described = sum(value.numel() for value in skeleton.state_dict().values())
    found = sum(value.numel() for value in tensors.values())
    if described > 10 * found:
        raise ValueError(
            f"{source} contains {found:,} numbers, but its description is of a model with "
            f"{described:,}."
        )
    module = build()
    return module, load_tensors(module, tensors, source, strict=strict)
