"""Names of labels, as the records of braindecode and MNE have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from braindecode_pars._warnings import warn_user

__all__ = ["class_names", "joined_labels_by_name", "labels_by_name", "names_still_hold"]


def labels_by_name(dataset: Any) -> dict[str, Any] | None:
    """Return the label of each name in braindecode's record of how windows were cut.

    The record is the attribute ``window_kwargs``, a list of pairs of a function and its arguments.
    Of several mappings, the last one counts. None without one.
    """
    for _, arguments in reversed(getattr(dataset, "window_kwargs", None) or []):
        mapping = arguments.get("mapping")
        if isinstance(mapping, Mapping) and mapping:
            return {str(name): label for name, label in mapping.items()}
    return None


def joined_labels_by_name(parts: Iterable[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    """Return the names of several recordings together; recordings may lack some of the classes.

    Warns
    -----
    UserWarning
        When a name stands for different labels. There are then no names.
    """
    joined: dict[str, Any] = {}
    for part in parts:
        for name, label in (part or {}).items():
            if joined.setdefault(name, label) != label:
                warn_user(
                    f"{name!r} is label {joined[name]!r} in some recordings and {label!r} in "
                    "others, so classes are shown as labels, without names; cut all recordings "
                    "with the same mapping."
                )
                return None
    return joined or None


def names_still_hold(labels_of_names: Mapping[str, Any], own: Any, given: np.ndarray) -> bool:
    """Whether the names of a dataset hold for other labels that are given for its windows.

    They do if every window whose given label has a name also has this label in the dataset. Windows
    may be marked as unlabelled. Labels that mean something else have no names.
    """
    if own is None or np.shape(own) != np.shape(given):
        return False
    named = list(labels_of_names.values())
    try:
        pairs = set(zip(np.asarray(own).tolist(), given.tolist(), strict=True))
    except TypeError:  # labels that are not hashable; a classifier refuses them
        return False
    return all(before == now for before, now in pairs if now in named)


def class_names(
    classes: np.ndarray, labels_of_names: Mapping[str, Any] | None
) -> dict[Any, str] | None:
    """Return the name of each class; None if none of them has one, or two would have the same.

    Several names of one label are joined, such as "Sleep stage 3 / Sleep stage 4".

    Parameters
    ----------
    classes : ndarray, shape (n_classes,)
        Labels.
    labels_of_names : mapping of str to label | None
        Label of each name.
    """
    names: dict[Any, list[str]] = {label: [] for label in classes.tolist()}
    for name, label in (labels_of_names or {}).items():
        if label in names and name != str(label):
            names[label].append(name)
    if not any(names.values()):
        return None
    texts = {label: " / ".join(found) or str(label) for label, found in names.items()}
    # The name of one class may be the label of another, which has no name.
    return texts if len(set(texts.values())) == len(texts) else None
