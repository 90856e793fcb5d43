"""The data of a command: a corpus by name, a store, own recordings, or a module with ``load``."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from braindecode.datasets import BaseConcatDataset

from braindecode_pars.cli._labelled import labelled_windows, recipe_of
from braindecode_pars.datasets import RECIPES, folder, mental_arithmetic, simulated
from braindecode_pars.signal_store._parts import is_store

__all__ = ["load", "title"]


def title(dataset: str) -> str:
    """Return the name of a corpus in tables and figures."""
    recipe = recipe_of(dataset)
    if recipe in RECIPES:
        return RECIPES[recipe].CARD["name"]
    is_path = Path(dataset).exists()
    return Path(dataset).resolve().stem if is_path else dataset


def load(dataset: str, data: Path | None, arguments: Mapping[str, Any]) -> BaseConcatDataset:
    """Read a corpus, own recordings or the recordings in the package, or simulate nights of sleep.

    Parameters
    ----------
    dataset : str
        Name of a corpus; path of a store with labels, or of a folder of own recordings, or any name
        for the one in ``data``; path of a Python file, or dotted name of an installed module, with
        a function ``load``.
    data : Path | None
        Folder of the corpus, or of a store of it; the first argument of ``load``.
    arguments : dict
        Further arguments of ``load``.

    Raises
    ------
    ValueError
        When the corpus or an argument is unknown, the folder is missing, or a store has no labels.
    """
    given = [] if data in (None, Path()) else [data]  # "simulated=" of transfer has an empty path
    if given and dataset in ("mental_arithmetic", "simulated"):
        raise ValueError(f"{dataset} reads no folder; omit {data}.")
    if dataset == "mental_arithmetic":
        return _load(mental_arithmetic, dataset, **arguments)
    if dataset == "simulated":
        defaults = dict(n_subjects=6, hours=1, random_state=0)
        return _load(simulated.sleep, dataset, **{**defaults, **arguments})
    found = given[0] if given else Path(dataset)
    if is_store(found):
        return _load(labelled_windows, dataset, found, **arguments)
    if dataset in RECIPES:
        if not given:
            raise ValueError(
                f"{dataset} needs --data, the folder of its files; there is no download."
            )
        return _load(RECIPES[dataset].load, dataset, *given, **arguments)
    if Path(dataset).is_dir() and not given:
        return _load(folder.load, dataset, Path(dataset), **arguments)
    module = _module(dataset)
    if module is not None:
        return _load(module.load, dataset, *given, **arguments)
    if given and given[0].is_dir():
        return _load(folder.load, dataset, *given, **arguments)
    known = ", ".join(["mental_arithmetic", "simulated", *sorted(RECIPES)])
    raise ValueError(
        f"Unknown corpus {dataset!r}; known are {known}, a folder of own recordings, a store with "
        "labels, and a Python file or module with a function load."
    )


def _load(
    loader: Callable[..., BaseConcatDataset], dataset: str, *given: Path, **arguments: Any
) -> BaseConcatDataset:
    # Checked here, because the loader's own TypeError does not list the known arguments.
    parameters = inspect.signature(loader).parameters
    known = list(parameters)[len(given) :]
    takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    unknown = [name for name in arguments if name not in known and not takes_any]
    if unknown:
        raise ValueError(f"{dataset} has no argument {unknown[0]!r}; it has {', '.join(known)}.")
    return loader(*given, **arguments)


def _module(dataset: str) -> ModuleType | None:
    """Import a Python file or an installed module with a function ``load``; None if it is neither.

    The code of the file is run.
    """
    file = Path(dataset).expanduser()
    if file.suffix == ".py":
        if not file.is_file():
            raise ValueError(f"{dataset} does not exist; pass the path of a Python file.")
        # Worker processes have the same path, and import the module for themselves.
        sys.path.append(str(file.resolve().parent))
        module = importlib.import_module(file.stem)
        if Path(module.__file__ or "").resolve() != file.resolve():
            raise ValueError(f"{dataset} has the name of another module; rename the file.")
    elif "." in dataset.strip("."):  # a single word is a mistyped corpus, or the name of a folder
        try:
            module = importlib.import_module(dataset)
        except (ImportError, ValueError):
            return None
    else:
        return None
    if not callable(getattr(module, "load", None)):
        raise ValueError(f"{dataset} has no function load, which returns labelled windows.")
    return module
