"""Classes of labels: which labels are one class, and the targets of the classes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

from braindecode_pars._warnings import warn_user

__all__ = ["check_ordered", "classes_of_labels", "given_classes", "targets_of"]


def check_ordered(name: str, labels: Any) -> None:
    """Check that labels have an order, which is that of the targets.

    Raises
    ------
    TypeError
        When they are a set, whose order is another one in the next process, or no labels at all.
    """
    if isinstance(labels, (set, frozenset)) or not isinstance(labels, Iterable):
        raise TypeError(
            f"{name} must be a list in the order of the targets, or a dict, got {labels!r}."
        )


def classes_of_labels(
    found: Iterable[str], classes: Sequence[str] | Mapping[str, str] | None
) -> dict[str, str]:
    """Return the class of each label, in the order of the targets.

    Parameters
    ----------
    found : iterable of str
        Labels of all files.
    classes : list of str | mapping of str to str | None
        Labels that are used, in the order of the targets; or a class for each label that is used.
        None uses all labels, numbers in their order, others in alphabetical order.

    Returns
    -------
    dict of str to str
        Class by label.

    Raises
    ------
    TypeError
        When ``classes`` are neither a list nor a dict.
    ValueError
        When no file has one of the labels.

    Warns
    -----
    UserWarning
        When labels that become classes differ in upper and lower case only.

    Examples
    --------
    >>> from braindecode_pars.recordings._classes import classes_of_labels
    >>> classes_of_labels(["10", "9"], None)
    {'9': '9', '10': '10'}
    >>> classes_of_labels(["1", "2"], {"1": "rest", "2": "arithmetic"})
    {'1': 'rest', '2': 'arithmetic'}
    """
    labels = _in_order(set(found))
    if classes is None:
        _warn_of_cases(labels)
        return {label: label for label in labels}
    if isinstance(classes, str):
        raise ValueError(f"classes is the text {classes!r}; give a list of labels, [{classes!r}].")
    check_ordered("classes", classes)
    chosen = dict(classes) if isinstance(classes, Mapping) else {str(c): str(c) for c in classes}
    chosen = {str(label): str(name) for label, name in chosen.items()}
    absent = [label for label in chosen if label not in labels]
    if absent or not chosen:
        raise ValueError(
            f"classes has {', '.join(map(repr, absent)) or 'no label'}, but the labels of the "
            f"files are {', '.join(map(repr, labels))}."
        )
    return chosen


def _in_order(labels: set[str]) -> list[str]:
    are_numbers = all(re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", label) for label in labels)
    # "1" and "01" are one number, but two labels.
    return (
        sorted(labels, key=lambda label: (float(label), label)) if are_numbers else sorted(labels)
    )


def _warn_of_cases(labels: Sequence[str]) -> None:
    cases: dict[str, list[str]] = {}
    for label in labels:
        cases.setdefault(label.casefold(), []).append(label)
    for same in cases.values():
        if len(same) > 1:
            warn_user(
                f"The labels {' and '.join(map(repr, same))} are different classes. If they are "
                "one, pass classes={label: class}."
            )


def targets_of(classes: Mapping[str, str]) -> dict[str, int]:
    """Return the targets of classes, in the order in which labels have them.

    Examples
    --------
    >>> from braindecode_pars.recordings._classes import targets_of
    >>> targets_of({"3": "N3", "4": "N3", "5": "R"})
    {'N3': 0, 'R': 1}
    """
    return {name: target for target, name in enumerate(dict.fromkeys(classes.values()))}


def given_classes(
    labels: Mapping[str, str] | Mapping[str, int],
) -> tuple[dict[str, str], dict[str, int]]:
    """Return the class of each description of annotations, and the target of each class.

    Parameters
    ----------
    labels : mapping of str to (str | int)
        Class by description, or target by description; a class is then called as its description.

    Returns
    -------
    classes : dict of str to str
        Class by description.
    targets : dict of str to int
        Target by class, without given targets in the order of the classes.

    Raises
    ------
    ValueError
        When the values are neither all texts nor all integers.

    Examples
    --------
    >>> from braindecode_pars.recordings._classes import given_classes
    >>> given_classes({"Sleep stage 3": "N3", "Sleep stage 4": "N3", "Sleep stage W": "W"})[1]
    {'N3': 0, 'W': 1}
    """
    labels = {str(name): value for name, value in labels.items()}
    values = list(labels.values())
    if values and all(isinstance(value, str) for value in values):
        return labels, targets_of(labels)
    if values and all(isinstance(v, Integral) and not isinstance(v, bool) for v in values):
        return {name: name for name in labels}, labels
    raise ValueError(
        "labels must give each description a class, as in {'Sleep stage W': 'W'}, or each a "
        f"target, an integer; got {dict(labels)!r}."
    )
