"""Parameters and labels of an estimator as JSON, without pickle."""

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

#: Errors that a JSON file with missing entries or entries of the wrong type can cause.
MALFORMED = (KeyError, TypeError, ValueError, AttributeError, RuntimeError)


def parameters_to_json(estimator: BaseEstimator) -> dict[str, dict[str, Any]]:
    """Return the constructor arguments of an estimator in three dicts.

    ``kept`` contains the arguments that JSON can store. ``pairs`` contains dicts whose keys are
    not strings, as lists of pairs. ``left_out`` contains the text of all other arguments. These
    are objects (a task instance, an augmentation, a callback) that only a pickle could store.
    """
    kept, pairs, left_out = {}, {}, {}
    for name, value in estimator.get_params(deep=False).items():
        # Convert what has an equivalent in JSON.
        if isinstance(value, type) and PRETEXT_TASKS.get(getattr(value, "name", "")) is value:
            value = value.name
        elif isinstance(value, (os.PathLike, torch.device)):
            value = str(value)
        elif isinstance(value, np.generic):
            value = value.item()
        # Choose the dict it belongs to.
        if isinstance(value, dict) and not _is_json(value) and _is_json([*value, *value.values()]):
            pairs[name] = list(map(list, value.items()))  # keys in JSON are always strings
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
    """Return an unfitted estimator with the saved parameters; warn about those not saved."""
    if described["left_out"]:
        names = ", ".join(f"{name}={text}" for name, text in described["left_out"].items())
        warnings.warn(
            f"Objects are not saved, so these parameters have their default values again: {names}. "
            "They only matter if you fit this estimator again.",
            stacklevel=3,
        )
    pairs = {name: dict(items) for name, items in described["pairs"].items()}
    return cls(**described["kept"], **pairs)


def rows_from_json(rows: Any) -> list[dict[str, Any]]:
    """Return the rows of a history.

    Raises
    ------
    TypeError
        When ``rows`` is not a list of dicts.
    """
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise TypeError(f"its history is {rows!r}, not a list of rows")
    return rows


def labels_to_json(labels: np.ndarray) -> dict[str, Any]:
    """Return labels and their dtype.

    Raises
    ------
    ValueError
        When labels are neither strings nor numbers.
    """
    values = labels.tolist()
    if not all(type(value) in (bool, int, float, str) for value in values):
        raise ValueError(
            f"Labels of type {type(values[0]).__name__} cannot be saved; fit on strings, integers "
            "or booleans, or pickle the estimator."
        )
    return {"values": values, "dtype": labels.dtype.str}


def labels_from_json(described: dict[str, Any]) -> np.ndarray:
    """Return labels from the output of :func:`labels_to_json`."""
    return np.asarray(described["values"], dtype=np.dtype(described["dtype"]))


def read_description(folder: Path, name: str, class_name: str) -> dict[str, Any]:
    """Return the content of the JSON file of an estimator.

    Raises
    ------
    FileNotFoundError
        When the folder does not contain the file.
    ValueError
        When the file is damaged, or describes another estimator.
    """
    if not (folder / name).is_file():
        raise FileNotFoundError(
            f"{folder} does not contain a saved {class_name}: it has no {name}."
        )
    described = read_json(folder / name)
    if described.get("estimator") != class_name:
        raise ValueError(f"{folder / name} does not describe a {class_name}.")
    return described
