"""What a result depends on, in a form that two runs can be compared by."""

from __future__ import annotations

import functools
import hashlib
import platform
import random
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import mne
import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, clone
from skorch.helper import SliceDataset
from torch import nn
from torch.utils.data import ConcatDataset, Subset

from braindecode_pars.evaluation.folds._code import (
    is_installed,
    parts_of_class,
    parts_of_function,
    version_of,
)
from braindecode_pars.evaluation.folds._corpus import Corpus
from braindecode_pars.evaluation.folds._digest import digest, digest_array
from braindecode_pars.evaluation.folds._seed import with_seed
from braindecode_pars.storage._checksum import checksum_of_file
from braindecode_pars.storage._hub import model_folder
from braindecode_pars.windows._describe import describe, plain_array
from braindecode_pars.windows._window_set import as_window_set

__all__ = ["describe_corpus", "describe_estimator"]

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
    windows = as_window_set(corpus.X)
    recordings = list(_recordings_in(corpus.X))
    return {
        "n_windows": len(windows),
        "labels": digest(corpus.y.tolist()),
        "unlabeled_label": repr(corpus.unlabeled_label),
        "subjects": digest(corpus.groups.tolist()),
        "sfreq": windows.sfreq,
        "channels": [ch["ch_name"] for ch in windows.chs_info or ()],
        "sensors": digest([_sensors_of(recording) for recording in recordings]),
        "descriptions": digest([_description_of(recording) for recording in recordings]),
        "samples": _samples_of(corpus),
    }


def _samples_of(corpus: Corpus) -> dict[str, str]:
    """Return a digest of all windows of each subject, in the order of the dataset."""
    digests: dict[str, Any] = {}
    for i, subject in enumerate(corpus.groups.tolist()):
        # The samples as estimators get them, not through a WindowSet, which refuses NaN.
        window = np.ascontiguousarray(plain_array(corpus.X[i]))
        of_subject = digests.setdefault(str(subject), hashlib.blake2b(digest_size=8))
        of_subject.update(f"{window.dtype.str}{window.shape}".encode())
        of_subject.update(window)
    return {subject: found.hexdigest() for subject, found in digests.items()}


def _recordings_in(source: Any) -> Iterator[Any]:
    """Yield the recordings that a dataset consists of."""
    if isinstance(source, (SliceDataset, Subset)):
        yield from _recordings_in(source.dataset)
    elif isinstance(source, ConcatDataset):
        for part in source.datasets:
            yield from _recordings_in(part)
    elif isinstance(source, list) and source and isinstance(source[0], mne.BaseEpochs):
        yield from source
    else:
        yield source


def _description_of(recording: Any) -> Any:
    description = getattr(recording, "description", None)
    return None if description is None else _describe(dict(description), _Walk())


def _sensors_of(recording: Any) -> Any:
    """Return names, types and positions of the channels of a recording, and the bad channels."""
    # braindecode's datasets contain a Raw or an Epochs; an Epochs has an info itself.
    signals = getattr(recording, "raw", getattr(recording, "windows", recording))
    info = getattr(signals, "info", None)
    if isinstance(info, mne.Info):
        return _plain_channels(info["chs"]), list(info["bads"])
    # Not from here in every case: recordings that differ only in positions share a montage.
    channels = describe(recording).channels
    if channels is None:
        return None
    return [(_plain_channels(m.chs_info or ()), sorted(m.bads)) for m in channels.montages]


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
