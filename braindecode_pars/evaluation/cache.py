"""A folder of finished folds, from which an interrupted evaluation resumes.

A saved fold is used again as long as these are the same: the parameters of the estimator, the
samples, labels and subjects of the data, the versions of this package, braindecode, torch and
scikit-learn, and the source of the user's own classes and functions in the estimator, with the
modules that they import, also inside functions. Comments, docstrings and layout do not count.

What cannot be seen: changes of this package or of another installed one without a new version,
values that are put into a module while the program runs, code that is typed without a source, and
files that the code reads. Delete ``cache/`` in the folder of the results after such a change.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import os
import random
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import braindecode
import numpy as np
import pandas as pd
import sklearn
import torch
from sklearn.base import BaseEstimator, clone
from torch import nn

import braindecode_pars
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
from braindecode_pars._common.tables import SCORES
from braindecode_pars.evaluation.corpus import Corpus
from braindecode_pars.windows.table import Montage

_FORMAT = "braindecode_pars scores"
_VERSION = 3  # earlier ones had folds/ and settings.json beside the scores
#: Settings to which a later run may add entries.
_GROWING = ("datasets", "methods")


@dataclass(frozen=True)
class FoldStore:
    """Folder of results, with one JSON file for each fold in ``folder/cache``.

    Files are written under a temporary name and then renamed, so that no file is incomplete. Each
    file contains the name of its fold and a checksum. Several processes may use the folder at the
    same time. ``cache`` can be deleted: everything is then computed again.
    """

    folder: Path

    @property
    def cache(self) -> Path:
        """Folder of the finished folds and of their settings."""
        return self.folder / "cache"

    @property
    def settings(self) -> Path:
        """File with the settings that all folds depend on."""
        return self.cache / "settings.json"

    def finished(self) -> bool:
        """Whether any fold is finished."""
        return any(file != self.settings for file in self.cache.glob("*.json"))

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
            damaged, or files of other programs.
        BlockingIOError
            When another process does not release the folder.
        """
        if not isinstance(folder, str | os.PathLike):
            raise TypeError(f"out must be the path of a folder, or None, got {folder!r}.")
        store = cls(Path(folder).expanduser())
        # Check the folder before a lock is left in it.
        store._check_version()
        is_ours = store.settings.is_file() or _has_scores(store.folder)
        # A killed process leaves an empty cache.
        check_may_write(store.folder, "an evaluation", is_ours=is_ours, beside=("cache",))
        try:
            store.cache.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"out={str(folder)!r} cannot be a folder: {error}.") from error
        # Another process may add its methods at the same moment.
        wanted = {"format": _FORMAT, "version": _VERSION, **as_read(settings)}
        busy = f"{store.folder} is locked by another process; try again."
        with locked(store.folder, busy, wait=60):
            replace_file(store.settings, to_json(store._with_earlier(wanted)))
        return store

    def _check_version(self) -> None:
        """Refuse the results of other versions, in one sentence."""
        if (self.folder / "folds").is_dir() and (self.folder / "settings.json").is_file():
            raise ValueError(
                f"{self.folder} contains scores of an earlier version, which cannot be resumed; "
                "use another folder to compute them again."
            )
        version = read_json(self.settings).get("version") if self.settings.is_file() else _VERSION
        if version != _VERSION:
            raise ValueError(
                f"{self.folder} contains scores in format {version}; this version of the package "
                f"reads format {_VERSION}. Install the newer version, or use another folder."
            )

    def _with_earlier(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """Return the settings together with those of the finished folds, which must not differ."""
        if not self.finished():
            return wanted  # without a finished fold, all settings may change
        try:
            before = read_json(self.settings)
            self._check_same(before, wanted)
            return {**wanted, **{name: {**before[name], **wanted[name]} for name in _GROWING}}
        except (OSError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{self.settings} is damaged ({error!r}); use another folder, or delete "
                f"{self.cache}."
            ) from error

    def finished_methods(self) -> dict[str, Any]:
        """Return the settings of the methods when folds are finished, which must not change."""
        return dict(read_json(self.settings)["methods"]) if self.finished() else {}

    def check_methods(self, methods: Mapping[str, Any]) -> None:
        """Check settings of methods against those of the finished folds; nothing is saved.

        Raises
        ------
        ValueError
            When they differ.
        """
        before = {"datasets": {}, "methods": self.finished_methods()}
        self._check_same(before, {"datasets": {}, "methods": methods})

    def _check_same(self, before: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
        """Check that two runs agree; datasets and methods of only one of them do not count."""
        shared = {name: before[name].keys() & wanted[name].keys() for name in _GROWING}
        old, new = (
            {**run, **{name: {k: run[name][k] for k in shared[name]} for name in _GROWING}}
            for run in (before, wanted)
        )
        if found := differences(old, new):
            what = "data" if all(clause.startswith("datasets.") for clause in found) else "settings"
            more = f"; and {len(found) - 3} more" if len(found) > 3 else ""
            raise ValueError(
                f"{self.folder} contains results of other {what}: {'; '.join(found[:3])}{more}. "
                f"Use another folder, or restore the {what} to resume this one."
            )

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
        return self.cache / f"{name}.json"

    @staticmethod
    def read(file: Path) -> dict[str, Any] | None:
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
        fold = content.pop("fold", None)
        if fold != file.stem:
            raise ValueError(f"{file} was saved as {fold}.json.")
        return content

    @staticmethod
    def write(file: Path, result: Mapping[str, Any]) -> None:
        """Save a finished fold."""
        write_checked(file, {"fold": file.stem, **result})

    def write_table(self, name: str, table: pd.DataFrame) -> None:
        """Write a table of the whole run as CSV."""
        replace_file(self.folder / name, table.to_csv(index=False))


def _has_scores(folder: Path) -> bool:
    """Whether a folder has scores of an evaluation whose cache was deleted."""
    file = folder / "scores.csv"
    return file.is_file() and file.read_text().startswith(",".join(SCORES))


#: Parameters that do not change what is learned.
_IMMATERIAL = ("verbose", "n_jobs", "device")
#: Packages whose version every result depends on.
_PACKAGES = (braindecode_pars, braindecode, torch, sklearn)
#: Like a seed, the state of these does not count.
_GENERATORS = (random.Random, np.random.RandomState, np.random.Generator, torch.Generator)
_DEEPEST = 40


def describe_estimator(estimator: BaseEstimator) -> dict[str, Any]:
    """Describe everything about an estimator that its predictions depend on.

    Returns
    -------
    dict
        Class, parameters, weights of a given encoder, the versions of packages, and a digest of the
        source of each of the user's modules; as JSON takes them.
    """
    walk = _Walk()
    # A protocol sets the seeds among the parameters. Others, as in an augmentation, count.
    described = walk.describe(with_seed(clone(estimator), 0))
    # The builds of one version for CPU and GPU are one version.
    versions = {package.__name__: package.__version__.split("+")[0] for package in _PACKAGES}
    return {**described, "versions": versions, "sources": _Sources(walk).digests()}


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
        "sensors": digest([_sensors_of(montage) for montage in recordings["channels"]]),
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


def _sensors_of(montage: Montage) -> Any:
    """Return names, types and positions of the channels of a recording, and the bad channels."""
    channels = [
        (ch["ch_name"], int(ch.get("kind", -1)), np.asarray(ch.get("loc", ())).tolist())
        for ch in montage.chs_info or ()
    ]
    return channels, sorted(montage.bads)


class _Walk:
    """One walk over an object and everything that it holds.

    Attributes
    ----------
    own : list
        Classes and functions of the user that were met.
    """

    def __init__(self) -> None:
        self.own: list[Any] = []
        # By identity; the objects are kept, so that no other object gets their identity.
        self._met: dict[int, tuple[Any, Any]] = {}
        self._depth = 0

    def describe(self, value: Any) -> Any:
        """Describe a value as JSON takes it; what is nested too deeply by its class only."""
        described = _leaf(value)
        if described is not NotImplemented:
            return described
        if id(value) in self._met:
            return self._met[id(value)][1]
        name = _name_of(type(value))
        if self._depth > _DEEPEST:
            return name
        self._met[id(value)] = value, f"the {name} that contains this"
        self._depth += 1
        described = self._parts(value)
        self._depth -= 1
        self._met[id(value)] = value, described
        return described

    def _parts(self, value: Any) -> Any:
        match value:
            case type() | FunctionType() | BuiltinFunctionType() | ModuleType():
                return self._code(value)
            case MethodType():
                return [self.describe(value.__func__), self.describe(value.__self__)]
            case functools.partial():
                given = {"args": value.args, "keywords": value.keywords}
                return {"function": self.describe(value.func), **self.describe(given)}
            case Mapping():
                return {str(name): self._entry(str(name), each) for name, each in value.items()}
            case set() | frozenset():
                return sorted(map(self.describe, value), key=repr)
            case list() | tuple():
                return [self.describe(each) for each in value]
        return self._object(value)

    def _code(self, thing: Any) -> Any:
        """Return the name of a class, function or module; of functions what they were made with."""
        if not isinstance(thing, ModuleType) and is_own(thing.__module__ or ""):
            self.own += [
                each for each in getattr(thing, "__mro__", [thing]) if is_own(each.__module__)
            ]
        name = _name_of(thing)
        made_with = [
            getattr(thing, "__defaults__", None),
            getattr(thing, "__kwdefaults__", None),
            [_content(cell) for cell in getattr(thing, "__closure__", None) or ()],
        ]
        if "<lambda>" in name:  # several in a module have one name
            made_with.append((thing.__code__.co_code, thing.__code__.co_names))
            made_with.append([c for c in thing.__code__.co_consts if not hasattr(c, "co_code")])
        return {"function": name, "made with": self.describe(made_with)} if any(made_with) else name

    def _entry(self, name: str, value: Any) -> Any:
        """Describe a parameter; a pretrained encoder by its content, not by its place."""
        if name == "encoder" and isinstance(value, str | Path):
            try:
                folder = model_folder(value)
            except (FileNotFoundError, ImportError):
                return str(value)  # a bundled encoder, or none: the fit will say so
            return {"folder": Path(value).name, "content": _folder_digest(folder)}
        return self.describe(value)

    def _object(self, value: Any) -> dict[str, Any]:
        """Describe an object by its class and parameters; its ``repr`` may contain an address."""
        has_params = hasattr(value, "get_params")
        settings = value.get_params(deep=False) if has_params else _attributes(value)
        described = {
            name: self._entry(name, inner)
            for name, inner in sorted(settings.items())
            if name not in _IMMATERIAL
        }
        if isinstance(value, nn.Module) and not has_params:
            modules = [
                (name, self.describe(type(part)), self.describe(_attributes(part)))
                for name, part in value.named_modules()
                if name
            ]
            described |= {"parts": digest(modules)} if modules else {}
        weights = _weights_of(value)
        if weights:
            described["weights"] = digest({k: digest_array(v) for k, v in weights.items()})
            if hasattr(value, "classes_"):
                described["classes_"] = self.describe(value.classes_)
        elif has_params:
            # clone() does not remove what scikit-learn's FrozenEstimator has learned.
            fitted = {k: v for k, v in _attributes(value).items() if _is_fitted(k)}
            described |= {name: self.describe(learned) for name, learned in fitted.items()}
        return {"class": self.describe(type(value)), **described}


def _leaf(value: Any) -> Any:
    """Describe what has no parts; NotImplemented for anything else."""
    match value:
        case np.generic():
            return _leaf(value.item())
        case None | bool() | int() | str():
            return value
        case float():
            return value if np.isfinite(value) else repr(value)
        case np.ndarray() | torch.Tensor():
            return digest_array(value)
        case pd.DataFrame() | pd.Series():
            return (
                f"{type(value).__name__}{value.shape} {digest(str(value.dtypes), value.to_csv())}"
            )
        case bytes():
            return f"bytes {digest(value)}"
        case complex() | range() | slice() | Path() | torch.device() | torch.dtype() | np.dtype():
            return str(value)
    return type(value).__qualname__ if isinstance(value, _GENERATORS) else NotImplemented


def _name_of(thing: Any) -> str:
    if isinstance(thing, ModuleType):
        return thing.__name__
    return f"{thing.__module__}.{getattr(thing, '__qualname__', repr(type(thing)))}"


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a variable without a value
        return None


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


def is_own(module: str) -> bool:
    """Whether a module is the user's: not Python's, this package's or another installed one's."""
    top = module.partition(".")[0]
    if top == "__main__":  # a script or a notebook, whichever program runs it
        return True
    if top in sys.stdlib_module_names or top in ("builtins", "braindecode_pars"):
        return False
    file = _file_of(module)
    return file is None or not {"site-packages", "dist-packages"} & {*file.parts}


def _file_of(module: str) -> Path | None:
    """Return the source file of a module, which is not imported for that; None without one."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if module not in sys.modules:
        places = None
        for end in [m.start() for m in re.finditer(r"\.", module)] + [len(module)]:
            spec = PathFinder.find_spec(module[:end], places)
            if spec is None:
                return None
            file, places = spec.origin, spec.submodule_search_locations
    return Path(file) if file and file.endswith(".py") else None


class _Sources:
    """Digests of the user's source that some classes and functions depend on.

    A module counts as a whole, with all modules that it imports. Of a script or a notebook count
    the definitions and constants that are used.
    """

    def __init__(self, walk: _Walk):
        self._walk = walk
        self._found: dict[str, str] = {}

    def digests(self) -> dict[str, str]:
        """Return the digest of each module, and of each definition of a script or notebook."""
        for thing in self._walk.own:  # grows when a constant of a script holds further code
            self._add(thing)
        return dict(sorted(self._found.items()))

    def _add(self, thing: Any) -> None:
        if thing.__module__ == "__main__" or _file_of(thing.__module__) is None:
            self._add_definition(thing)
        else:
            self._add_module(thing.__module__)

    def _add_module(self, module: str) -> None:
        file = _file_of(module) if module not in self._found and is_own(module) else None
        if file is None:
            return
        tree = _without_docstrings(ast.parse(file.read_bytes()))
        self._found[module] = digest(ast.dump(tree))
        is_package = file.name == "__init__.py"
        for name in _imported(tree, module if is_package else module.rpartition(".")[0]):
            self._add_module(name)

    def _add_definition(self, thing: Any) -> None:
        """Add a class or function of a script, and what it uses of it."""
        name = _name_of(thing)
        if name in self._found:
            return
        self._found[name] = "unknown"
        try:
            tree = _without_docstrings(ast.parse(textwrap.dedent(inspect.getsource(thing))))
        except (OSError, TypeError, SyntaxError):  # a class of a notebook, or half of a statement
            for part in vars(thing).values() if isinstance(thing, type) else ():
                if isinstance(part, FunctionType):
                    self._add_definition(part)
            return
        self._found[name] = digest(ast.dump(tree))
        for module in _imported(tree, ""):
            self._add_module(module)
        known = vars(sys.modules.get(thing.__module__, object))
        for used in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & {*known}:
            self._add_used(f"{thing.__module__}.{used}", known[used])

    def _add_used(self, name: str, value: Any) -> None:
        """Add the value of a name that a definition uses."""
        if isinstance(value, ModuleType):
            self._add_module(value.__name__)
        elif isinstance(value, type | FunctionType):
            if is_own(value.__module__):
                self._add(value)
        else:
            self._found[name] = digest(self._walk.describe(value))


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def _imported(tree: ast.Module, package: str) -> Iterator[str]:
    """Yield the names of the modules that code may import, with the packages that hold them."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            base = ".".join(parents[: len(parents) - node.level + 1]) if node.level else ""
            base = ".".join(filter(None, [base, node.module]))
            names = [f"{base}.{alias.name}" for alias in node.names]  # a module or a name in it
        for name in names:
            parts = name.split(".")
            yield from (".".join(parts[:n]) for n in range(1, len(parts) + 1))


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


def parameters_called(name: str, estimator: BaseEstimator) -> dict[str, Any]:
    """Return the parameters of this name of an estimator and its parts, such as ``svc__C``."""
    params = estimator.get_params().items()
    return {full: value for full, value in params if full.split("__")[-1] == name}


def _is_unfitted(parameter: str) -> bool:
    """Whether a parameter is not of an estimator passed as ``encoder``, which is fitted already."""
    return "encoder" not in parameter.split("__")


def on_device(estimator: BaseEstimator, device: str) -> BaseEstimator:
    """Return a clone in which every ``device="auto"`` is the given device.

    Examples
    --------
    >>> from braindecode_pars import PARSClassifier
    >>> from braindecode_pars.evaluation.cache import on_device
    >>> on_device(PARSClassifier(), "cuda:1").device
    'cuda:1'
    """
    changed = clone(estimator)
    devices = parameters_called("device", changed)
    names = [n for n, value in devices.items() if _is_unfitted(n) and str(value) == "auto"]
    changed.set_params(**dict.fromkeys(names, device))
    return changed


def with_seed(estimator: BaseEstimator, seed: int) -> BaseEstimator:
    """Set every ``random_state`` among the parameters of an estimator, in place.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from braindecode_pars.evaluation.cache import with_seed
    >>> with_seed(LogisticRegression(), 3)
    LogisticRegression(random_state=3)
    """
    names = filter(_is_unfitted, parameters_called("random_state", estimator))
    estimator.set_params(**dict.fromkeys(names, int(seed)))  # FrozenEstimator returns None
    return estimator
