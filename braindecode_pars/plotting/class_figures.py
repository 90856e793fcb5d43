"""The confusion of classes; the names, order and colours of classes in all figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import sklearn.metrics
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from braindecode_pars.plotting.style import (
    COLORS,
    HATCHES,
    axes_for,
    draw_cells,
)
from braindecode_pars.predictions import UNSCORED, are_stages, stage_of, top_to_bottom

#: Names by label, such as ``class_names_`` of a classifier, or the names of 0, 1, ....
ClassNames = Mapping[Any, str] | Sequence[str]
Entry = TypeVar("Entry")


def confusion_matrix(
    true: ArrayLike,
    predicted: ArrayLike,
    class_names: ClassNames | None = None,
    *,
    order: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how often each true class was predicted as which class.

    A cell shows the percentage of the windows of its true class, and their number. Colours are the
    percentages, so that rare classes are as visible as frequent ones.

    Parameters
    ----------
    true, predicted : ndarray, shape (n_windows,)
        True and predicted labels. Windows in which one is None, NaN or -1 do not count. For labels
        of -1 and 1, -1 is a class if it has a name, or if it is predicted and there are no names.
    class_names : mapping of label to str | sequence of str | None
        Names of the labels, such as ``class_names_`` of a classifier, or the names of 0, 1, ....
        All of them are drawn. None uses the labels that occur.
    order : sequence of str | None
        Names of all classes from top to bottom. None means wake, REM, N1 to N3 if all names are
        those of sleep stages (:func:`~braindecode_pars.predictions.stage_of`), and otherwise the
        order of ``class_names``, or of sorted labels.
    ax : Axes | None
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        Axes with true classes from top to bottom and predicted ones from left to right. The row of
        a class without windows is blank.

    Raises
    ------
    ValueError
        If the lengths differ, if there is no window with both labels, if a label has no name, or if
        ``order`` does not have each class once.

    Examples
    --------
    Simulated stages, and a prediction with N2 in a quarter of the windows:

    .. plot::
        :include-source:
        :alt: Five by five table of true and predicted sleep stages, with percentages and numbers
            of windows as blue squares.

        >>> import numpy as np
        >>> from braindecode_pars import datasets, plotting
        >>> rng = np.random.default_rng(1)
        >>> true = datasets.simulated.stages_of_a_night(720, rng)
        >>> predicted = np.where(rng.random(720) < 0.25, 2, true)
        >>> ax = plotting.confusion_matrix(true, predicted, datasets.simulated.STAGES)

    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['W', 'R', 'N1', 'N2', 'N3']
    """
    labels = [label_list("true", true), label_list("predicted", predicted)]
    if len(labels[0]) != len(labels[1]):
        raise ValueError(
            f"There are {len(labels[0])} true and {len(labels[1])} predicted labels; pass one of "
            "each for every window."
        )
    if class_names is None:
        found = {x for x in labels[0] + labels[1] if not pd.isna(x)}
        found -= {-1} - set(labels[1])
        class_names = {label: str(label) for label in sorted(found, key=by_number)}
    names = names_by_label(class_names)
    order = in_figure_order(list(dict.fromkeys(names.values())), order)
    classes = [entries(given, names) for given in labels]
    pairs = [pair for pair in zip(*classes, strict=True) if None not in pair]
    if not pairs:
        raise ValueError("No window has a true and a predicted label.")
    counts = sklearn.metrics.confusion_matrix(*zip(*pairs, strict=True), labels=order)
    totals = counts.sum(axis=1, keepdims=True)
    percent = 100 * counts / np.where(totals > 0, totals, np.nan)
    texts = np.vectorize("{:.0f} %\n{}".format)(percent, counts)
    letters = max(map(len, order))
    is_turned = letters > 8
    side, height = max(2.2, 0.75 * len(order)), 0.09 * letters  # inches
    size = (side + height + 1.7, side + (0.5 * height if is_turned else 0) + 0.9)
    [ax] = axes_for(ax, 1, 1, size)
    draw_cells(ax, percent, texts, order, order, label="% of the true class", vmax=100)
    if is_turned:
        ax.set_xticks(ax.get_xticks(), order, rotation=30, ha="right", rotation_mode="anchor")
    ax.set(xlabel="predicted", ylabel="true")
    ax.set_title(f"accuracy {np.trace(counts) / len(pairs):.2f} of {len(pairs)} windows", size=10)
    return ax


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


def label_list(name: str, labels: ArrayLike) -> list:
    """Return labels, shape (n_windows,), as a list; any other shape raises ValueError."""
    found = np.asarray(labels)
    if found.ndim != 1:
        raise ValueError(f"{name} has shape {found.shape}; pass one label for each window.")
    return found.tolist()


def is_unknown(label: Any) -> bool:
    """Whether a label is missing: None, NaN, NA or the number -1."""
    return pd.isna(label) or label == -1


def by_number(label: Any) -> tuple[bool, Any]:
    """Key for sorting labels: numbers by value, then texts."""
    return isinstance(label, str), label


def names_by_label(class_names: ClassNames) -> dict[Any, str]:
    """Return the name of each label, and of each name."""
    given = class_names if isinstance(class_names, Mapping) else dict(enumerate(class_names))
    names = {label: str(name) for label, name in given.items()}
    return {**{name: name for name in names.values()}, **names}


def entries(labels: ArrayLike, table: Mapping[Any, Entry]) -> list[Entry | None]:
    """Return the entry of each label in a table; None for a missing label.

    Raises
    ------
    ValueError
        When a label that is not missing has no entry.
    """
    found = label_list("labels", labels)
    absent = {label for label in found if label not in table and not is_unknown(label)}
    if absent:
        raise ValueError(
            f"No class is called {', '.join(map(repr, sorted(absent, key=by_number)))}; known are "
            f"{', '.join(map(repr, table))}."
        )
    return [table.get(label) for label in found]


def in_figure_order(names: Sequence[str], order: Sequence[str] | None) -> list[str]:
    """Return classes from top to bottom: sleep stages from wake to N3, others as they are given.

    Raises
    ------
    ValueError
        When a given order lacks a class, or has one twice.
    """
    if order is None:
        return top_to_bottom(names) if are_stages(names) else list(names)
    if not set(names) <= set(order) or len(set(order)) < len(order):
        raise ValueError(
            f"order={list(order)} must have each class once; the classes are "
            f"{', '.join(map(repr, names))}."
        )
    return list(order)


def area_styles(names: Sequence[str]) -> list[dict[str, str]]:
    """Return colour and hatching of the area of each class."""
    if are_stages(names):
        return [dict(facecolor=_STAGE_COLORS[stage]) for stage in map(stage_of, names) if stage]
    n = len(COLORS)
    return [
        dict(facecolor=COLORS[i % n], hatch=HATCHES[i // n % len(HATCHES)])
        for i in range(len(names))
    ]
