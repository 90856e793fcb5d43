"""What a result depends on, in a form that two runs can be compared by."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, clone
from torch import nn

from braindecode_pars.evaluation.folds._corpus import Corpus
from braindecode_pars.windows._window_set import as_window_set

__all__ = ["describe_corpus", "describe_estimator", "digest", "digest_array"]

#: Parameters that do not change what is learned, or that a protocol sets itself.
IMMATERIAL = ("random_state", "verbose", "n_jobs", "device")
_DEEPEST = 8


def digest(*parts: Any) -> str:
    """Return twelve hexadecimal digits that change with the text of any part."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def describe_estimator(estimator: BaseEstimator) -> dict[str, Any]:
    """Describe class and parameters as JSON takes them, and the weights of a given encoder."""
    return _describe(clone(estimator))


def describe_corpus(corpus: Corpus) -> dict[str, Any]:
    """Size, labels, subjects, channels, sampling rate, and statistics of fifty windows."""
    windows = as_window_set(corpus.X)
    looked_at = np.unique(np.linspace(0, len(windows) - 1, 50).astype(int))
    return {
        "n_windows": len(windows),
        "labels": digest(corpus.y.tolist()),
        "unlabeled_label": repr(corpus.unlabeled_label),
        "subjects": digest(corpus.groups.tolist()),
        "sfreq": windows.sfreq,
        "channels": [ch["ch_name"] for ch in windows.chs_info or ()],
        # Rounded, since another machine may filter to other last digits.
        "samples": [
            f"{window.shape} {window.std():.3g} {np.diff(window).std():.3g}"
            for window in (windows[i][0] for i in looked_at)
        ],
    }


def _describe(value: Any, depth: int = 0) -> Any:
    """Describe a value as JSON takes it; what is nested too deeply by its class only."""
    described = _describe_leaf(value)
    if described is not NotImplemented:
        return described
    if depth > _DEEPEST:
        return _name_of(type(value))
    return _describe_parts(value, depth + 1)


def _describe_entry(name: str, value: Any, depth: int) -> Any:
    """Describe a parameter; an encoder's folder is known by its content, not by its place."""
    if name == "encoder" and isinstance(value, (str, Path)) and Path(value).is_dir():
        return {"folder": Path(value).name, "content": _folder_digest(Path(value))}
    return _describe(value, depth)


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


@_describe_leaf.register(type)
@_describe_leaf.register(FunctionType)
@_describe_leaf.register(MethodType)
@_describe_leaf.register(BuiltinFunctionType)
def _(value: Any) -> str:
    return _name_of(value)


@functools.singledispatch
def _describe_parts(value: Any, depth: int) -> Any:
    """Describe an object by its class and parameters; its ``repr`` may contain an address."""
    has_params = hasattr(value, "get_params")
    settings = value.get_params(deep=False) if has_params else _attributes(value)
    described = {
        name: _describe_entry(name, inner, depth)
        for name, inner in sorted(settings.items())
        if name not in IMMATERIAL
    }
    if isinstance(value, nn.Module) and not has_params:
        modules = [
            (name, _name_of(type(part)), _describe(_attributes(part), depth))
            for name, part in value.named_modules()
            if name
        ]
        described |= {"parts": digest(modules)} if modules else {}
    weights = _weights_of(value)
    if weights:
        described["weights"] = digest({k: digest_array(v) for k, v in weights.items()})
    return {"class": _name_of(type(value)), **described}


@_describe_parts.register(functools.partial)
def _(value: functools.partial, depth: int) -> dict[str, Any]:
    inner = {"args": list(value.args), "keywords": value.keywords}
    return {"class": _name_of(value.func), **_describe(inner, depth)}


@_describe_parts.register(Mapping)
def _(value: Mapping, depth: int) -> dict[str, Any]:
    return {str(name): _describe_entry(str(name), inner, depth) for name, inner in value.items()}


@_describe_parts.register(set)
@_describe_parts.register(frozenset)
def _(value: set | frozenset, depth: int) -> list:
    return sorted((_describe(inner, depth) for inner in value), key=repr)


@_describe_parts.register(list)
@_describe_parts.register(tuple)
def _(value: list | tuple, depth: int) -> list:
    return [_describe(inner, depth) for inner in value]


def _attributes(value: Any) -> dict[str, Any]:
    """Attributes of an object; of a torch module, without those that every module has."""
    found = getattr(value, "__dict__", {})
    of_any = vars(nn.Module()) if isinstance(value, nn.Module) else ()
    return {k: v for k, v in found.items() if k not in of_any}


def _weights_of(value: Any) -> Mapping[str, torch.Tensor]:
    """Weights of a model, or of the encoder or net in a fitted estimator."""
    for module in (value, getattr(value, "encoder_", None), getattr(value, "module_", None)):
        if isinstance(module, nn.Module):
            return {k: v for k, v in module.state_dict().items() if isinstance(v, torch.Tensor)}
    return {}


def digest_array(array: np.ndarray | torch.Tensor) -> str:
    """Return type, shape, and twelve hexadecimal digits that change with the content."""
    if isinstance(array, torch.Tensor):
        array = array.detach().cpu().float().numpy()
    content = repr(array.tolist()).encode() if array.dtype.hasobject else array.tobytes()
    return f"{array.dtype}{array.shape} {hashlib.sha256(content).hexdigest()[:12]}"


def _folder_digest(folder: Path) -> str:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return digest([(str(f.relative_to(folder)), _file_digest(f)) for f in files])


def _file_digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _name_of(thing: Any) -> str:
    name = f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', repr(type(thing)))}"
    code = getattr(thing, "__code__", None)
    if "<" in name and code is not None:  # a lambda or an inner function, one of many of its name
        name += f" {_code_digest(code)}"
    return name


def _code_digest(code: CodeType) -> str:
    # The constants of a function may hold code objects, whose repr names a place in memory.
    constants = [c if not isinstance(c, CodeType) else _code_digest(c) for c in code.co_consts]
    return digest(code.co_code, constants, code.co_names)
