"""Parameters and labels of an estimator as JSON, without pickle."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator

from braindecode_pars._warnings import warn_user
from braindecode_pars.preprocessing import Preprocessing
from braindecode_pars.pretext.base import PRETEXT_TASKS

__all__ = [
    "MALFORMED",
    "labels_from_json",
    "labels_to_json",
    "names_from_json",
    "parameters_from_json",
    "parameters_to_json",
    "rows_from_json",
]

#: Parameters that are never saved and never read: a file must not decide from where a refit reads
#: or downloads an encoder, and where it writes one.
_FOLDERS = ("encoder", "checkpoint_dir")

#: Parameters that were added later, with the values that earlier versions had: a refit of a model
#: that they saved must not depend on the defaults of today.
_EARLIER: dict[str, Any] = dict(
    tokenizer="linear",
    electrode_position=False,
    amplitude=False,
    head="attention",
    recenter=None,
    continue_pretraining=False,
    finetune_warmup=None,
    head_epochs=0,
    encoder_lr_factor=1.0,
    gradient_clip=None,
    label_smoothing=0.0,
    drop_prob=0.0,
)

#: Errors that a JSON file with missing entries or entries of the wrong type can cause.
MALFORMED = (KeyError, TypeError, ValueError, AttributeError, RuntimeError)


def parameters_to_json(estimator: BaseEstimator) -> dict[str, dict[str, Any]]:
    """Return the constructor arguments of an estimator in three dicts.

    ``kept`` contains the arguments that JSON can store. ``pairs`` contains dicts whose keys are
    not strings, as lists of pairs. ``left_out`` contains the text of all other arguments. These
    are objects (a task instance, an augmentation, a callback) that only a pickle could store, and
    folders.
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
        elif name == "preprocessing" and value is not None:
            value = Preprocessing.of(value).known()
        # Choose the dict it belongs to.
        has_other_keys = isinstance(value, dict) and not _is_json(value)
        if name == "checkpoint_dir":
            continue  # does not change what a refit learns
        if name == "encoder" and value is not None:
            left_out[name] = repr(value)
        elif has_other_keys and _is_json([*value, *value.values()]):
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
    kept, left_out = dict(described["kept"]), dict(described["left_out"])
    left_out |= {name: repr(kept.pop(name)) for name in _FOLDERS if kept.get(name) is not None}
    if left_out:
        names = ", ".join(f"{name}={text}" for name, text in left_out.items())
        warn_user(
            "Objects and encoders are not saved, so these parameters have their default values "
            f"again: {names}. They only matter if you fit this estimator again."
        )
    pairs = {name: dict(items) for name, items in described["pairs"].items()}
    known = cls().get_params()
    earlier = {name: value for name, value in _EARLIER.items() if name in known}
    return cls(**{**earlier, **kept, **pairs})


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
    values = [value.item() if hasattr(value, "item") else value for value in labels.tolist()]
    if not all(type(value) in (bool, int, float, str) for value in values):
        raise ValueError(
            f"Labels of type {type(values[0]).__name__} cannot be saved; fit on strings, integers "
            "or booleans, or pickle the estimator."
        )
    return {"values": values, "dtype": labels.dtype.str}


def labels_from_json(described: dict[str, Any]) -> np.ndarray:
    """Return labels from the output of :func:`labels_to_json`."""
    return np.asarray(described["values"], dtype=np.dtype(described["dtype"]))


def names_from_json(names: Any, classes: np.ndarray) -> dict[Any, str] | None:
    """Return the name of each class; None without names, as in files of earlier versions.

    Raises
    ------
    TypeError
        When ``names`` is neither None nor a list with the name of each class.
    """
    if names is None:
        return None
    is_list = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not is_list or len(names) != len(classes):
        raise TypeError(f"its class names are {names!r}, not one name for each class")
    return dict(zip(classes.tolist(), names, strict=True))
