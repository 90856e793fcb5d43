"""Names, order and colours of classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from braindecode_pars.plotting._style import COLORS, HATCHES
from braindecode_pars.sleep_stages import UNSCORED, are_stages, stage_of, top_to_bottom

__all__ = [
    "area_styles",
    "by_number",
    "check_order",
    "check_probabilities",
    "in_figure_order",
    "is_unknown",
    "names_of",
]

#: Warm colours for wake and REM, and blues that darken from N1 to stage 4.
_STAGE_COLORS = {
    "W": "#E69F00",
    "R": "#CC79A7",
    "N1": "#C6E3F5",
    "light": "#A3D3EE",
    "N2": "#6DB6E0",
    "NREM": "#6DB6E0",
    "N3": "#1F78B4",
    "N4": "#08456F",
    "sleep": "#1F78B4",
    UNSCORED: "#BBBBBB",
}


def is_unknown(label: Any) -> bool:
    """Whether a label is missing: None, NaN, NA or the number -1."""
    return pd.isna(label) or label == -1


def by_number(label: Any) -> tuple:
    """Key for sorting labels: numbers by value, then texts."""
    return (1, 0, label) if isinstance(label, str) else (0, label, "")


def names_of(
    labels: Sequence[Any], class_names: Mapping[Any, str] | Sequence[str] | None
) -> list[str]:
    """Return the names of labels.

    Parameters
    ----------
    labels : sequence
        Labels, each once.
    class_names : mapping of label to str | sequence of str | None
        Names by label, such as ``class_names_`` of a classifier, or the names of 0, 1, ....

    Raises
    ------
    ValueError
        When a label has no name.
    """
    if class_names is None:
        return [str(label) for label in labels]
    by_label = class_names if isinstance(class_names, Mapping) else dict(enumerate(class_names))
    by_label = {**{name: name for name in by_label.values()}, **by_label}
    missing = [label for label in labels if label not in by_label]
    if missing:
        raise ValueError(
            f"class_names has no name of {', '.join(map(repr, missing))}; it names "
            f"{', '.join(map(repr, by_label))}."
        )
    return [str(by_label[label]) for label in labels]


def check_order(names: Sequence[str], order: Sequence[str]) -> list[str]:
    """Return an order of classes, and check that it has each class once.

    Raises
    ------
    ValueError
        When a class is missing, or is there twice.
    """
    order = list(order)
    missing = [name for name in names if name not in order]
    if missing or len(set(order)) < len(order):
        raise ValueError(
            f"order={order} must have each class once; the classes are "
            f"{', '.join(map(repr, names))}."
        )
    return order


def check_probabilities(values: np.ndarray) -> None:
    """Check values of shape (n_windows, n_classes); windows with NaN may have any values.

    Raises
    ------
    ValueError
        When they are no probabilities, but logits, for example.
    """
    known = values[np.isfinite(values).all(axis=1)]
    if (known < -1e-6).any() or (abs(known.sum(axis=1) - 1) > 1e-3).any():
        raise ValueError(
            "The values are no probabilities: those of a window must be positive with the sum 1; "
            "pass the result of predict_proba, not of decision_function."
        )


def in_figure_order(names: Sequence[str], order: Sequence[str] | None) -> list[str]:
    """Return classes from top to bottom: sleep stages from wake to N3, others as they are given."""
    if order is not None:
        return check_order(names, order)
    return top_to_bottom(names) if are_stages(names) else list(names)


def area_styles(names: Sequence[str]) -> list[dict[str, str]]:
    """Return colour and hatching of the area of each class."""
    if are_stages(names):
        return [dict(facecolor=_STAGE_COLORS[stage_of(name)]) for name in names]
    n = len(COLORS)
    return [
        dict(facecolor=COLORS[i % n], hatch=HATCHES[i // n % len(HATCHES)])
        for i in range(len(names))
    ]
