"""Code of functions and classes, and the version of the packages that contain it.

Code of an installed package is known by the version of the package. Code of the user, from a
script, a notebook or a package under development, has no version, so its bytecode is compared.
"""

from __future__ import annotations

import dis
import functools
import importlib.metadata
import sys
from collections.abc import Iterator
from numbers import Number
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator

from braindecode_pars.evaluation.folds._digest import digest

__all__ = ["is_installed", "parts_of_class", "parts_of_function", "version_of"]

#: Types of global variables that are compared; of others, such as loggers, only the class is.
_SETTINGS = (
    *(type(None), Number, str, bytes, list, tuple, dict, set, frozenset, Path),
    *(type, ModuleType, FunctionType, MethodType, functools.partial),
    *(np.ndarray, np.generic, torch.Tensor, torch.nn.Module, BaseEstimator),
    *(pd.DataFrame, pd.Series, property, classmethod, staticmethod, functools.cached_property),
)


@functools.cache
def is_installed(module: str) -> bool:
    """Whether a module belongs to Python, to this package or to another installed package."""
    top = module.partition(".")[0]
    if top == "__main__":  # a script or a notebook, whichever program runs it
        return False
    if top in sys.stdlib_module_names or top in ("builtins", "braindecode_pars"):
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and bool({"site-packages", "dist-packages"} & {*Path(file).parts})


@functools.cache
def version_of(package: str) -> str | None:
    """Return the version of an installed package; None when it has none.

    This package is often used from its sources, so its version comes with a digest of them.
    """
    if package == "braindecode_pars":
        return f"{_metadata_version(package)}, sources {_digest_of_sources(package)}"
    return _metadata_version(package)


#: Distributions by the modules that they install; a slow search of the whole environment.
_distributions = functools.cache(importlib.metadata.packages_distributions)


def _metadata_version(package: str) -> str | None:
    distributions = _distributions().get(package, [package])
    try:
        return importlib.metadata.version(distributions[0])
    except importlib.metadata.PackageNotFoundError:
        return None


def _digest_of_sources(package: str) -> str:
    folder = Path(sys.modules[package].__file__).parent
    files = sorted(folder.rglob("*.py"))
    return digest([(file.relative_to(folder).as_posix(), file.read_bytes()) for file in files])


def parts_of_function(function: FunctionType) -> dict[str, Any]:
    """Return everything that a function of the user depends on.

    Returns
    -------
    dict
        A digest of the bytecode; the values of the defaults, of the variables of an enclosing
        function, and of the global variables that it reads.
    """
    closure = [_content(cell) for cell in function.__closure__ or ()]
    return {
        "bytecode": _bytecode_digest(function.__code__, function.__doc__),
        "defaults": function.__defaults__,
        "keyword defaults": function.__kwdefaults__,
        "closure": closure,
        "globals": {name: _setting(value) for name, value in _globals_of(function)},
    }


def parts_of_class(cls: type) -> dict[str, Any]:
    """Return everything that a class of the user depends on: its bases, methods and attributes."""
    attributes = {
        name: _setting(value)
        for name, value in vars(cls).items()
        # Of the special names only methods count; others are docstrings and numbers of lines.
        if not name.startswith("__") or isinstance(value, FunctionType)
    }
    return {"bases": cls.__bases__, **attributes}


def _globals_of(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the global variables that a function reads, also out of the user's other modules."""
    for code in _with_inner(function.__code__):
        for instruction in dis.get_instructions(code):
            if instruction.opname not in ("LOAD_GLOBAL", "LOAD_NAME"):
                continue
            name = instruction.argval
            if name not in function.__globals__:
                continue  # a builtin
            value = function.__globals__[name]
            yield name, value
            if isinstance(value, ModuleType) and not is_installed(value.__name__):
                used = (attribute for attribute in code.co_names if attribute in vars(value))
                yield from ((f"{name}.{attribute}", vars(value)[attribute]) for attribute in used)


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_inner(constant)


def _setting(value: Any) -> Any:
    """Return a value that is compared; of any other installed object, its class."""
    is_compared = isinstance(value, _SETTINGS) or not is_installed(type(value).__module__)
    return value if is_compared else type(value)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a variable without a value
        return None


def _bytecode_digest(code: CodeType, doc: str | None = None) -> str:
    """Return a digest of bytecode, without docstring and numbers of lines."""
    constants = [_constant(value) for value in code.co_consts if doc is None or value is not doc]
    n_arguments = code.co_argcount + code.co_kwonlyargcount
    arguments = code.co_varnames[:n_arguments], code.co_argcount, code.co_flags
    return digest(code.co_code, code.co_exceptiontable, constants, code.co_names, arguments)


def _constant(value: Any) -> Any:
    """Return a constant such that its ``repr`` is the same in every process."""
    if isinstance(value, CodeType):
        return _bytecode_digest(value)
    if isinstance(value, frozenset):
        return sorted(map(repr, value))
    return tuple(map(_constant, value)) if isinstance(value, tuple) else value
