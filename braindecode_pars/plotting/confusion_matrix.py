"""Confusion matrix: which classes are predicted for which true ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sklearn.metrics
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from braindecode_pars.plotting._classes import by_number, in_figure_order, is_unknown, names_of
from braindecode_pars.plotting._style import axes_for, text_color

__all__ = ["confusion_matrix"]


def confusion_matrix(
    true: ArrayLike,
    predicted: ArrayLike,
    class_names: Mapping[Any, str] | Sequence[str] | None = None,
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
        those of sleep stages (:func:`~braindecode_pars.sleep_stages.stage_of`), and otherwise the
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
        >>> true = datasets.simulated.hypnogram(720, rng)
        >>> predicted = np.where(rng.random(720) < 0.25, 2, true)
        >>> ax = plotting.confusion_matrix(true, predicted, datasets.simulated.STAGES)

    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['W', 'R', 'N1', 'N2', 'N3']
    """
    pairs = _pairs(true, predicted, class_names)
    found = sorted({label for pair in pairs for label in pair}, key=by_number)
    of_label = dict(zip(found, names_of(found, class_names), strict=True))
    names = list(dict.fromkeys(of_label.values() if class_names is None else _all(class_names)))
    order = in_figure_order(names, order)
    counts = sklearn.metrics.confusion_matrix(
        *zip(*[(of_label[a], of_label[b]) for a, b in pairs], strict=True), labels=order
    )
    totals = counts.sum(axis=1, keepdims=True)
    percent = np.where(totals > 0, 100 * counts / np.maximum(totals, 1), np.nan)

    letters = max(map(len, order))
    is_turned = letters > 8
    side, text = max(2.2, 0.75 * len(order)), 0.09 * letters  # inches
    size = (side + text + 1.7, side + (0.5 * text if is_turned else 0) + 0.9)
    [ax] = axes_for(ax, 1, 1, size)
    image = ax.imshow(np.ma.masked_invalid(percent), cmap="Blues", vmin=0, vmax=100)
    for (i, j), value in np.ndenumerate(percent):
        if np.isfinite(value):
            text = f"{value:.0f} %\n{counts[i, j]}"
            color = text_color(image.to_rgba(value))
            ax.text(j, i, text, ha="center", va="center", color=color, fontsize=9)
    turned = dict(rotation=30, ha="right", rotation_mode="anchor") if is_turned else {}
    ax.set_xticks(range(len(order)), order, **turned)
    ax.set_yticks(range(len(order)), order)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set(xlabel="predicted", ylabel="true")
    ax.set_title(f"accuracy {np.trace(counts) / len(pairs):.2f} of {len(pairs)} windows", size=10)
    ax.figure.colorbar(image, ax=ax, label="% of the true class", shrink=0.85)
    return ax


def _pairs(
    true: ArrayLike, predicted: ArrayLike, class_names: Mapping[Any, str] | Sequence[str] | None
) -> list[tuple[Any, Any]]:
    """Return true and predicted label of each window that has both."""
    labels = [np.asarray(given).tolist() for given in (true, predicted)]
    if len(labels[0]) != len(labels[1]):
        raise ValueError(
            f"There are {len(labels[0])} true and {len(labels[1])} predicted labels; pass one of "
            "each for every window."
        )
    classes = [-1] if -1 in (labels[1] if class_names is None else class_names) else []
    pairs = [
        pair
        for pair in zip(*labels, strict=True)
        if not any(is_unknown(label) and label not in classes for label in pair)
    ]
    if not pairs:
        raise ValueError("No window has a true and a predicted label.")
    return pairs


def _all(class_names: Mapping[Any, str] | Sequence[str]) -> list[str]:
    names = class_names.values() if isinstance(class_names, Mapping) else class_names
    return [str(name) for name in names]
