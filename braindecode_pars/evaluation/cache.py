"""A folder of finished folds, from which an interrupted evaluation resumes.

A result depends on the data, the estimator with its parameters and code, and versions. Digests of
these tell whether a stored result is still valid.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import importlib.metadata
import os
import platform
import random
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Number
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, clone
from torch import nn

from braindecode_pars._common.files import (
    as_read,
    check_may_write,
    checksum_of,
    checksum_of_file,
    differences,
    locked,
    read_checked,
    read_json,
    replace_file,
    to_json,
    write_checked,
)
from braindecode_pars._common.model_files import model_folder
from braindecode_pars.evaluation.corpus import Corpus

_SETTINGS = "settings.json"
_FORMAT = "braindecode_pars scores"
_VERSION = 2  # version 1 had no entries for format and version
#: Entries that the file of a finished fold must contain.
_ENTRIES = (
    *("key", "rows", "true", "predicted", "probabilities", "subjects"),
    *("seen", "history", "seconds"),
)
#: Settings to which a later run may add entries.
_GROWING = ("datasets", "methods")


@dataclass(frozen=True)
class FoldStore:
    """Folder with one JSON file for each fold in ``folder/folds``.

    Files are written under a temporary name and then renamed, so that no file is incomplete. Each
    file contains the name of its fold and a checksum. Several processes may use the folder at the
    same time.
    """

    folder: Path

    @classmethod
    def open(cls, folder: str | Path, settings: Mapping[str, Any]) -> FoldStore:
        """Open a folder of results, or create it.

        Parameters
        ----------
        folder : path
            Folder of results.
        settings : dict
            Settings that all folds depend on. A later run may add ``datasets`` and ``methods``,
            but must not change existing ones.

        Raises
        ------
        TypeError
            When ``folder`` is not a path.
        ValueError
            When the folder contains results of other data or settings (the message lists the
            differences), results of another version of this package, a settings file that is
            damaged or of another program, or files of other programs only.
        BlockingIOError
            When another process does not release the folder.
        """
        if not isinstance(folder, (str, os.PathLike)):
            raise TypeError(f"out must be the path of a folder, or None, got {folder!r}.")
        # Create the folder, or check it before a lock is left in it.
        folder = Path(folder).expanduser()
        file = folder / _SETTINGS
        check_may_write(folder, "an evaluation", is_ours=file.is_file())
        if file.is_file():
            _check_format(folder, read_json(file))
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"out={str(folder)!r} cannot be a folder: {error}.") from error
        # Another process may add its methods at the same moment.
        wanted = {"format": _FORMAT, "version": _VERSION, **as_read(settings)}
        with locked(folder, f"{folder} is locked by another process; try again.", wait=60):
            replace_file(file, to_json(_with_earlier(folder, wanted)))
            (folder / "folds").mkdir(exist_ok=True)
        return cls(folder)

    def finished_methods(self) -> dict[str, Any]:
        """Return the settings of the methods when folds are finished, which must not change."""
        finished = any((self.folder / "folds").glob("*.json"))
        return dict(read_json(self.folder / _SETTINGS)["methods"]) if finished else {}

    def check_methods(self, methods: Mapping[str, Any]) -> None:
        """Check settings of methods against those of the finished folds; nothing is saved.

        Raises
        ------
        ValueError
            When they differ.
        """
        before = self.finished_methods()
        shared = before.keys() & methods.keys()
        old, new = ({"methods": {k: of[k] for k in shared}} for of in (before, methods))
        _check_same(self.folder, differences(old, new))

    def file_of(self, key: Mapping[str, Any], content: str) -> Path:
        """Return the path of the file of a fold.

        Parameters
        ----------
        key : dict
            Columns that identify the fold; they give the readable part of the name.
        content : str
            Digest of everything that the result depends on.
        """
        parts = [key["method"], key["dataset"], f"subject-{key['subject']}"]
        parts += [f"n{key['n_train_subjects']}", f"seed{key['seed']}"]
        readable = "_".join(re.sub(r"[^\w.+=-]+", "-", str(part)) for part in parts if part != "")
        # File systems limit the length of a name.
        name = f"{readable[:120]}_{digest(dict(key), content)}"
        return self.folder / "folds" / f"{name}.json"

    def read(self, file: Path) -> dict[str, Any] | None:
        """Read a finished fold; None when there is no file.

        Raises
        ------
        ValueError
            When the file is damaged, was edited, or is the file of another fold.
        """
        try:
            content = read_checked(file)
        except FileNotFoundError:
            return None
        if content.get("fold") != file.stem:
            raise ValueError(f"{file} was saved as {content.get('fold')}.json.")
        absent = [entry for entry in _ENTRIES if entry not in content]
        if absent:
            raise ValueError(f"{file} has no entry {absent[0]!r}.")
        return {entry: content[entry] for entry in _ENTRIES}

    def write(self, file: Path, result: Mapping[str, Any]) -> None:
        """Save a finished fold."""
        write_checked(file, {"fold": file.stem, **result})

    def write_table(self, name: str, table: pd.DataFrame) -> None:
        """Write a table of the whole run as CSV."""
        replace_file(self.folder / name, table.to_csv(index=False))


def _with_earlier(folder: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    """Return the settings together with those of the finished folds, which must not differ."""
    file = folder / _SETTINGS
    if not file.exists():
        return wanted
    try:
        before = read_json(file)
        _check_format(folder, before)
        if not any((folder / "folds").glob("*.json")):
            return wanted  # without a finished fold, all settings may change
        found, merged = _differences(before, wanted), _merged(before, wanted)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{file} is damaged ({error!r}); use another folder, or delete this one."
        ) from error
    _check_same(folder, found)
    return merged


def _check_same(folder: Path, found: list[str]) -> None:
    """Check that there are no differences between the settings of two runs."""
    if found:
        what = "data" if all(clause.startswith("datasets.") for clause in found) else "settings"
        more = f"; and {len(found) - 3} more" if len(found) > 3 else ""
        raise ValueError(
            f"{folder} contains results of other {what}: {'; '.join(found[:3])}{more}. "
            f"Use another folder, or restore the {what} to resume this one."
        )


def _check_format(folder: Path, before: Mapping[str, Any]) -> None:
    """Check that the settings are those of an evaluation, and of this version."""
    version = before.get("version") if before.get("format") == _FORMAT else None
    if version == _VERSION:
        return
    if version is not None:
        raise ValueError(
            f"{folder} contains scores in format {version}; this version of the package reads "
            f"format {_VERSION}. Install the newer version, or use another folder."
        )
    if not {"protocol", *_GROWING} <= before.keys():
        raise ValueError(f"{folder / _SETTINGS} is not of an evaluation; use another folder.")
    if any((folder / "folds").glob("*.json")):
        raise ValueError(
            f"{folder} contains scores of version 0.1.0, which compared a few samples of the data "
            "only, so they may be of other data. Use another folder to compute them again."
        )


def _merged(before: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """Settings of both runs together."""
    return {**wanted, **{name: {**before[name], **wanted[name]} for name in _GROWING}}


def _differences(before: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """Differences between two runs; datasets and methods of only one run do not count."""
    shared = {name: before[name].keys() & wanted[name].keys() for name in _GROWING}
    old, new = (
        {**run, **{name: {k: run[name][k] for k in shared[name]} for name in _GROWING}}
        for run in (before, wanted)
    )
    return differences(old, new)


#: Parameters that do not change what is learned.
_IMMATERIAL = ("verbose", "n_jobs", "device")
#: Packages whose version every result depends on.
_PACKAGES = ("braindecode_pars", "braindecode", "torch", "sklearn")
_DEEPEST = 40


def describe_estimator(estimator: BaseEstimator) -> dict[str, Any]:
    """Describe everything about an estimator that its predictions depend on.

    Returns
    -------
    dict
        Class, parameters, weights of a given encoder, a digest of code of the user, and the
        versions of the packages that contain the other code; as JSON takes them.
    """
    walk = _Walk()
    # A protocol sets the seeds among the parameters. Others, as in an augmentation, count.
    described = _describe(with_seed(clone(estimator), 0), walk)
    packages = sorted({*_PACKAGES, *walk.packages})
    versions = {name: version_of(name) for name in packages}
    python = ".".join(platform.python_version_tuple()[:2])  # bytecode depends on it
    known = {name: version for name, version in versions.items() if version is not None}
    return {**described, "package versions": {"python": python, **known}}


def describe_corpus(corpus: Corpus) -> dict[str, Any]:
    """Describe all samples, labels, subjects, channels and descriptions of a dataset.

    Every bit of every sample counts. Another machine may filter to other last digits; its windows
    are other windows.

    Returns
    -------
    dict
        Sizes and names as they are, and digests of what is long; of the samples, one for each
        subject. As JSON takes them.
    """
    windows = corpus.X
    recordings = windows.recordings
    return {
        "n_windows": len(windows),
        "labels": digest(corpus.y.tolist()),
        "unlabeled_label": repr(corpus.unlabeled_label),
        "subjects": digest(corpus.groups.tolist()),
        "sfreq": windows.sfreq,
        "channels": [ch["ch_name"] for ch in windows.chs_info or ()],
        "sensors": digest([_sensors_of(recording) for _, recording in recordings.iterrows()]),
        "descriptions": digest(
            recordings[["corpus", "session", "split"]].astype(str).to_numpy().tolist()
        ),
        "samples": _samples_of(corpus),
    }


def _samples_of(corpus: Corpus) -> dict[str, str]:
    """Return a digest of all windows of each subject, in the order of the dataset."""
    digests: dict[str, Any] = {}
    for i, subject in enumerate(corpus.groups.tolist()):
        window = corpus.X[i]
        of_subject = digests.setdefault(str(subject), hashlib.blake2b(digest_size=8))
        of_subject.update(f"{window.dtype.str}{window.shape}".encode())
        of_subject.update(window)
    return {subject: found.hexdigest() for subject, found in digests.items()}


def _sensors_of(recording: pd.Series) -> Any:
    """Return names, types and positions of the channels of a recording, and the bad channels."""
    montage = recording["channels"]
    return _plain_channels(montage.chs_info or ()), sorted(montage.bads)


def _plain_channels(chs_info: Iterable[Mapping[str, Any]]) -> list[tuple]:
    return [
        (ch["ch_name"], int(ch.get("kind", -1)), np.asarray(ch.get("loc", ())).tolist())
        for ch in chs_info
    ]


class _Walk:
    """One walk over an object and everything that it holds.

    Attributes
    ----------
    met : dict of int to tuple
        Objects that were met, by identity, with their descriptions. The objects are kept, so that
        no other object gets their identity.
    packages : set of str
        Installed packages whose code was met.
    depth : int
        Number of objects that contain the present one.
    """

    def __init__(self):
        self.met: dict[int, tuple[Any, Any]] = {}
        self.packages: set[str] = set()
        self.depth = 0

    def name_of(self, thing: Any) -> str:
        """Return the name of a class, function or module, and record the package."""
        if isinstance(thing, ModuleType):
            module = name = thing.__name__
        else:
            module = str(getattr(thing, "__module__", ""))
            name = f"{module}.{getattr(thing, '__qualname__', repr(type(thing)))}"
        if is_installed(module):
            self.packages.add(module.partition(".")[0])
        return name


def _is_own(thing: Any) -> bool:
    """Whether a class or function has no version: the user's, a lambda or an inner function."""
    return not is_installed(thing.__module__ or "") or "<" in thing.__qualname__


def _describe(value: Any, walk: _Walk) -> Any:
    """Describe a value as JSON takes it; what is nested too deeply by its class only."""
    described = _describe_leaf(value)
    if described is not NotImplemented:
        return described
    if id(value) in walk.met:
        return walk.met[id(value)][1]
    name = walk.name_of(type(value))
    if walk.depth > _DEEPEST:
        return name
    walk.met[id(value)] = value, f"the {name} that contains this"
    walk.depth += 1
    described = _describe_parts(value, walk)
    walk.depth -= 1
    walk.met[id(value)] = value, described
    return described


def _describe_entry(name: str, value: Any, walk: _Walk) -> Any:
    """Describe a parameter; a pretrained encoder by its content, not by its place."""
    if name == "encoder" and isinstance(value, (str, Path)):
        try:
            folder = model_folder(value)
        except (FileNotFoundError, ImportError):
            return str(value)  # a bundled encoder, or none: the fit will say so
        return {"folder": Path(value).name, "content": _folder_digest(folder)}
    return _describe(value, walk)


@functools.singledispatch
def _describe_leaf(value: Any) -> Any:
    """Describe what has no parts; NotImplemented for anything else."""
    return NotImplemented


@_describe_leaf.register(type(None))
@_describe_leaf.register(bool)
@_describe_leaf.register(int)
@_describe_leaf.register(str)
def _(value: Any) -> Any:
    return value


@_describe_leaf.register(float)
def _(value: float) -> float | str:
    return value if np.isfinite(value) else repr(value)


@_describe_leaf.register(complex)
@_describe_leaf.register(range)
@_describe_leaf.register(slice)
def _(value: Any) -> str:
    return repr(value)


@_describe_leaf.register(bytes)
def _(value: bytes) -> str:
    return f"bytes {digest(value)}"


@_describe_leaf.register(np.generic)
def _(value: np.generic) -> Any:
    return _describe_leaf(value.item())


@_describe_leaf.register(Path)
@_describe_leaf.register(torch.device)
@_describe_leaf.register(torch.dtype)
@_describe_leaf.register(np.dtype)
def _(value: Any) -> str:
    return str(value)


@_describe_leaf.register(np.ndarray)
@_describe_leaf.register(torch.Tensor)
def _(value: np.ndarray | torch.Tensor) -> str:
    return digest_array(value)


@_describe_leaf.register(pd.DataFrame)
@_describe_leaf.register(pd.Series)
def _(value: pd.DataFrame | pd.Series) -> str:
    return f"{type(value).__name__}{value.shape} {digest(str(value.dtypes), value.to_csv())}"


@_describe_leaf.register(random.Random)
@_describe_leaf.register(np.random.RandomState)
@_describe_leaf.register(np.random.Generator)
@_describe_leaf.register(torch.Generator)
def _(value: Any) -> str:
    return type(value).__qualname__  # like a seed, its state does not count


@functools.singledispatch
def _describe_parts(value: Any, walk: _Walk) -> Any:
    """Describe an object by its class and parameters; its ``repr`` may contain an address."""
    has_params = hasattr(value, "get_params")
    settings = value.get_params(deep=False) if has_params else _attributes(value)
    described = {
        name: _describe_entry(name, inner, walk)
        for name, inner in sorted(settings.items())
        if name not in _IMMATERIAL
    }
    if isinstance(value, nn.Module) and not has_params:
        modules = [
            (name, _describe(type(part), walk), _describe(_attributes(part), walk))
            for name, part in value.named_modules()
            if name
        ]
        described |= {"parts": digest(modules)} if modules else {}
    weights = _weights_of(value)
    if weights:
        described["weights"] = digest({k: digest_array(v) for k, v in weights.items()})
        if hasattr(value, "classes_"):
            described["classes_"] = _describe(value.classes_, walk)
    elif has_params:
        # clone() does not remove what scikit-learn's FrozenEstimator has learned.
        described |= {k: _describe(v, walk) for k, v in _attributes(value).items() if _is_fitted(k)}
    if _is_own(type(value)):
        described["source code"] = _describe(type(value), walk)
    return {"class": walk.name_of(type(value)), **described}


@_describe_parts.register(type)
def _(value: type, walk: _Walk) -> str:
    return _describe_code(value, parts_of_class, walk)


@_describe_parts.register(FunctionType)
def _(value: FunctionType, walk: _Walk) -> str:
    return _describe_code(value, parts_of_function, walk)


@_describe_parts.register(BuiltinFunctionType)
@_describe_parts.register(ModuleType)
def _(value: Any, walk: _Walk) -> str:
    return walk.name_of(value)


@_describe_parts.register(MethodType)
def _(value: MethodType, walk: _Walk) -> list:
    return [_describe(value.__func__, walk), _describe(value.__self__, walk)]


@_describe_parts.register(staticmethod)
@_describe_parts.register(classmethod)
def _(value: Any, walk: _Walk) -> Any:
    return _describe(value.__func__, walk)


@_describe_parts.register(property)
def _(value: property, walk: _Walk) -> list:
    return [_describe(function, walk) for function in (value.fget, value.fset)]


@_describe_parts.register(functools.partial)
def _(value: functools.partial, walk: _Walk) -> dict[str, Any]:
    inner = {"args": list(value.args), "keywords": value.keywords}
    return {"class": _describe(value.func, walk), **_describe(inner, walk)}


@_describe_parts.register(Mapping)
def _(value: Mapping, walk: _Walk) -> dict[str, Any]:
    return {str(name): _describe_entry(str(name), inner, walk) for name, inner in value.items()}


@_describe_parts.register(set)
@_describe_parts.register(frozenset)
def _(value: set | frozenset, walk: _Walk) -> list:
    return sorted((_describe(inner, walk) for inner in value), key=repr)


@_describe_parts.register(list)
@_describe_parts.register(tuple)
def _(value: list | tuple, walk: _Walk) -> list:
    return [_describe(inner, walk) for inner in value]


def _describe_code(thing: Any, parts_of: Any, walk: _Walk) -> str:
    """Return the name of a class or function; of the user's own code with a digest."""
    name = walk.name_of(thing)
    return f"{name} {digest(_describe(parts_of(thing), walk))}" if _is_own(thing) else name


def _attributes(value: Any) -> dict[str, Any]:
    """Attributes of an object; of a torch module, without those that every module has."""
    if not hasattr(value, "__dict__"):
        return _state_of(value)
    of_any = vars(nn.Module()) if isinstance(value, nn.Module) else ()
    return {k: v for k, v in vars(value).items() if k not in of_any}


def _state_of(value: Any) -> dict[str, Any]:
    """State of an object of a compiled class, or of one with slots, as pickle would store it."""
    try:
        reduced = value.__reduce_ex__(4)
    except Exception:  # an object that cannot be pickled, such as a lock
        return {}
    return {"state": reduced if isinstance(reduced, str) else reduced[1:3]}


def _is_fitted(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _weights_of(value: Any) -> Mapping[str, torch.Tensor]:
    """Weights of a model, or of all layers in a fitted estimator or net."""
    net = getattr(value, "net_", value)
    for module in (value, getattr(net, "module_", None), getattr(value, "encoder_", None)):
        if isinstance(module, nn.Module):
            return {k: v for k, v in module.state_dict().items() if isinstance(v, torch.Tensor)}
    return {}


def _folder_digest(folder: Path) -> str:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return digest([(str(f.relative_to(folder)), checksum_of_file(f)) for f in files])


#: Types of global variables that are compared; of others, such as loggers, only the class is.
_COMPARED = (
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
    is_compared = isinstance(value, _COMPARED) or not is_installed(type(value).__module__)
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


def with_seed(estimator: BaseEstimator, seed: int) -> BaseEstimator:
    """Set every ``random_state`` among the parameters of an estimator, in place.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from braindecode_pars.evaluation.cache import with_seed
    >>> with_seed(LogisticRegression(), 3)
    LogisticRegression(random_state=3)
    """
    names = [
        name
        for name in estimator.get_params()
        # An estimator passed as ``encoder`` is fitted already; its seed must not change.
        if name.split("__")[-1] == "random_state" and "encoder" not in name.split("__")
    ]
    estimator.set_params(**dict.fromkeys(names, int(seed)))  # FrozenEstimator returns None
    return estimator
