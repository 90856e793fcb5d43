"""An estimator's parameters and labels as JSON, without pickle."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator

from braindecode_pars.pretext.base import PRETEXT_TASKS
from braindecode_pars.storage._json import read_json

__all__ = [
    "MALFORMED",
    "labels_from_json",
    "labels_to_json",
    "parameters_from_json",
    "parameters_to_json",
    "read_description",
    "rows_from_json",
]

#: What a file with entries of wrong types leads to.
MALFORMED = (KeyError, TypeError, ValueError, AttributeError, RuntimeError)


def parameters_to_json(estimator: BaseEstimator) -> dict[str, dict[str, Any]]:
    """Constructor arguments: ``kept`` as they are, dicts with other keys than strings as
    ``pairs``, and ``left_out`` the text of those that cannot be kept.

    An object (a task instance, an augmentation, a callback) would need a pickle.
    """
    kept, pairs, left_out = {}, {}, {}
    for name, value in estimator.get_params(deep=False).items():
        if isinstance(value, type) and PRETEXT_TASKS.get(getattr(value, "name", "")) is value:
            value = value.name
        elif isinstance(value, (os.PathLike, torch.device)):
            value = str(value)
        elif isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, dict) and not _is_json(value) and _is_json([*value, *value.values()]):
            pairs[name] = list(map(list, value.items()))  # JSON has string keys only
        elif _is_json(value):
            kept[name] = value
        else:
            left_out[name] = repr(value)
    return {"kept": kept, "pairs": pairs, "left_out": left_out}


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(inner) for key, inner in value.items())
    if isinstance(value, list):
        return all(map(_is_json, value))
    return value is None or type(value) in (bool, int, float, str)


def parameters_from_json(cls: type[BaseEstimator], described: dict[str, Any]) -> BaseEstimator:
    """An unfitted estimator with the parameters that were kept; warns of those that were not."""
    if described["left_out"]:
        names = ", ".join(f"{name}={text}" for name, text in described["left_out"].items())
        warnings.warn(
            f"Objects are not saved, so these have their default values again: {names}. That "
            "matters only when this estimator is fitted anew.",
            stacklevel=3,
        )
    pairs = {name: dict(items) for name, items in described["pairs"].items()}
    return cls(**described["kept"], **pairs)


def rows_from_json(rows: Any) -> list[dict[str, Any]]:
    """The rows of a history.

    Raises
    ------
    TypeError
        When they are not.
    """
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise TypeError(f"its history is {rows!r}")
    return rows


def labels_to_json(labels: np.ndarray) -> dict[str, Any]:
    """Labels and their type.

    Raises
    ------
    ValueError
        For labels that are neither strings nor numbers.
    """
    values = labels.tolist()
    if not all(type(value) in (bool, int, float, str) for value in values):
        raise ValueError(
            f"Labels of type {type(values[0]).__name__} cannot be saved; fit on strings, integers "
            "or booleans, or pickle the estimator."
        )
    return {"values": values, "dtype": labels.dtype.str}


def labels_from_json(described: dict[str, Any]) -> np.ndarray:
    """The labels that :func:`labels_to_json` has described."""
    return np.asarray(described["values"], dtype=np.dtype(described["dtype"]))


def read_description(folder: Path, name: str, what: str) -> dict[str, Any]:
    """Read an estimator's JSON file.

    Raises
    ------
    FileNotFoundError
        When the folder has none.
    ValueError
        When it is damaged, or does not have what an estimator's file has.
    """
    if not (folder / name).is_file():
        raise FileNotFoundError(f"{folder} holds no saved {what}: it has no {name}.")
    described = read_json(folder / name)
    if described.get("estimator") != what:
        raise ValueError(f"{folder / name} does not describe a {what}.")
    return described
