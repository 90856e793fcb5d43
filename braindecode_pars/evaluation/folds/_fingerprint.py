"""What a result depends on, written so that two runs can be compared."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Mapping
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, clone
from torch import nn

from braindecode_pars.evaluation.folds._corpus import Corpus
from braindecode_pars.windows._window_set import as_window_set

__all__ = ["describe_corpus", "describe_estimator", "digest", "digest_array"]

#: They do not change what is learned, or a protocol sets them itself.
IMMATERIAL = ("random_state", "verbose", "n_jobs", "device")
_DEEPEST = 8


def digest(*parts: Any) -> str:
    """Twelve hexadecimal digits that change with any of the parts' text."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def describe_estimator(estimator: BaseEstimator) -> dict[str, Any]:
    """Class and parameters as JSON takes them, with the weights of a given encoder."""
    return _describe(clone(estimator), "", 0)


def describe_corpus(corpus: Corpus) -> dict[str, Any]:
    """Size, labels, subjects, channels, sampling rate, and a look at fifty windows."""
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


def _describe(value: Any, name: str, depth: int) -> Any:
    if name == "encoder" and isinstance(value, (str, Path)) and Path(value).is_dir():
        return {"folder": Path(value).name, "content": _folder_digest(Path(value))}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else repr(value)
    if isinstance(value, np.generic):
        return _describe(value.item(), name, depth)
    if isinstance(value, (Path, torch.device, torch.dtype, np.dtype)):
        return str(value)
    if isinstance(value, (np.ndarray, torch.Tensor)):
        return digest_array(value)
    if isinstance(value, functools.partial):
        inner = {"args": list(value.args), "keywords": value.keywords}
        return {"class": _name_of(value.func), **_describe(inner, "", depth + 1)}
    if inspect.isclass(value) or inspect.isroutine(value):
        return _name_of(value)
    if depth > _DEEPEST:
        return _name_of(type(value))
    if isinstance(value, Mapping):
        return {str(k): _describe(v, str(k), depth + 1) for k, v in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((_describe(v, "", depth + 1) for v in value), key=repr)
    if isinstance(value, (list, tuple)):
        return [_describe(v, "", depth + 1) for v in value]
    return _describe_object(value, depth)


def _describe_object(value: Any, depth: int) -> dict[str, Any]:
    """Not its ``repr``, which may name a place in memory."""
    has_params = hasattr(value, "get_params")
    settings = value.get_params(deep=False) if has_params else _attributes(value)
    described = {
        k: _describe(v, k, depth + 1) for k, v in sorted(settings.items()) if k not in IMMATERIAL
    }
    if isinstance(value, nn.Module) and not has_params:
        parts = [(k, type(v), _attributes(v)) for k, v in value.named_modules() if k]
        told = [(k, _name_of(kind), _describe(found, "", depth + 1)) for k, kind, found in parts]
        described |= {"parts": digest(told)} if told else {}
    weights = _weights_of(value)
    if weights:
        described["weights"] = digest({k: digest_array(v) for k, v in weights.items()})
    return {"class": _name_of(type(value)), **described}


def _attributes(value: Any) -> dict[str, Any]:
    """Those of an object; of a torch module, without what every module has."""
    found = getattr(value, "__dict__", {})
    of_any = vars(nn.Module()) if isinstance(value, nn.Module) else ()
    return {k: v for k, v in found.items() if k not in of_any}


def _weights_of(value: Any) -> Mapping[str, torch.Tensor]:
    """Those of a model, or of the encoder or net in a fitted estimator."""
    for module in (value, getattr(value, "encoder_", None), getattr(value, "module_", None)):
        if isinstance(module, nn.Module):
            return {k: v for k, v in module.state_dict().items() if isinstance(v, torch.Tensor)}
    return {}


def digest_array(array: np.ndarray | torch.Tensor) -> str:
    """Type, shape, and twelve digits that change with the content."""
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
