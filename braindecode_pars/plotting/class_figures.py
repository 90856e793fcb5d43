"""Figures of classes: the confusion matrix, and the calibration of probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import sklearn.metrics
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from braindecode_pars.plotting.style import (
    COLORS,
    HATCHES,
    axes_for,
    remove_frame,
    series_style,
    text_color,
)
from braindecode_pars.predictions import UNSCORED, are_stages, stage_of, top_to_bottom


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


def calibration_curve(
    true: ArrayLike,
    probabilities: ArrayLike,
    classes: Sequence[Any],
    class_names: Mapping[Any, str] | Sequence[str] | None = None,
    *,
    each_class: bool = False,
    n_bins: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw how often predictions are right against their probability.

    The windows are divided into bins of equal width by the probability of the predicted class. A
    point is the mean probability of a bin and the share of its windows that are right; its area is
    the number of windows. Below the diagonal, the probabilities are too high. The
    expected calibration error is the mean distance to the diagonal over all windows (Guo et al.
    2017, equation 3).

    Parameters
    ----------
    true : ndarray, shape (n_windows,)
        True labels. Windows whose label is None, NaN or -1 do not count.
    probabilities : ndarray, shape (n_windows, n_classes)
        Probabilities, as from ``predict_proba``. Windows with NaN do not count.
    classes : sequence
        Label of each column, such as ``classes_`` of a classifier.
    class_names : mapping of label to str | sequence of str | None
        Names of the labels, such as ``class_names_`` of a classifier, or the names of 0, 1, ....
    each_class : bool
        Whether to draw a curve for each class instead: the probability of that class against the
        share of the windows that are of that class.
    n_bins : int
        Number of bins between 0 and 1.
    ax : Axes | None
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        Axes with the curves and the diagonal. The legend shows the expected calibration errors.

    Raises
    ------
    ValueError
        If shapes do not match, if values are no probabilities, if a true label is not in
        ``classes``, if no window counts, or if ``n_bins`` is not positive.

    References
    ----------
    Guo et al. 2017, On calibration of modern neural networks, ICML.

    Examples
    --------
    A model whose probabilities are too high:

    .. plot::
        :include-source:
        :alt: Share of right windows against probability: a line of dots below the diagonal.

        >>> import numpy as np
        >>> from braindecode_pars import plotting
        >>> rng = np.random.default_rng(0)
        >>> calibrated = rng.dirichlet([0.7] * 3, size=2000)
        >>> true = [rng.choice(3, p=p) for p in calibrated]
        >>> too_sure = calibrated**2 / (calibrated**2).sum(axis=1, keepdims=True)
        >>> ax = plotting.calibration_curve(true, too_sure, classes=[0, 1, 2])

    >>> ax.get_legend().get_texts()[0].get_text()
    'most probable class, error 0.13'
    """
    codes, values = _read(true, probabilities, list(classes))
    if n_bins < 1:
        raise ValueError(f"n_bins must be a positive number, got {n_bins!r}.")
    if each_class:
        names = names_of(list(classes), class_names)
        curves = {name: (values[:, k], codes == k) for k, name in enumerate(names)}
    else:
        curves = {"most probable class": (values.max(axis=1), values.argmax(axis=1) == codes)}

    # The curves of several classes cross the whole figure, so the legend is beside them.
    width = 4.6 + (1.5 + 0.07 * max(map(len, curves)) if each_class else 0)
    [ax] = axes_for(ax, 1, 1, (width, 4.4))
    ax.plot([0, 1], [0, 1], color="0.6", lw=1, zorder=0)
    for number, (name, (probability, is_right)) in enumerate(curves.items()):
        mean, share, count = _bins(probability, is_right, n_bins)
        error = np.sum(count * abs(mean - share)) / count.sum()
        style = series_style(number)
        marker = style.pop("marker")
        ax.plot(mean, share, lw=1.2, **style)
        size = 12 + 180 * count / count.sum()
        label = f"{name}, error {error:.2f}"
        ax.scatter(mean, share, s=size, marker=marker, color=style["color"], label=label)
    ax.set(
        xlabel="probability",
        ylabel="share of windows of the class" if each_class else "share of right windows",
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.02),
        aspect="equal",
        anchor="W",
    )
    ax.set_title(f"{len(codes)} windows", loc="left", size=10)
    beside = dict(loc="upper left", bbox_to_anchor=(1, 1)) if each_class else {}
    legend = ax.legend(frameon=False, fontsize=9, **beside)
    for handle in legend.legend_handles:
        handle.set_sizes([30])
    remove_frame(ax)
    return ax


def _read(
    true: ArrayLike, probabilities: ArrayLike, classes: list
) -> tuple[np.ndarray, np.ndarray]:
    """Return the column of the true class and the probabilities of each window that counts."""
    labels, values = np.asarray(true).tolist(), np.asarray(probabilities, dtype=float)
    if values.shape != (len(labels), len(classes)):
        raise ValueError(
            f"probabilities has shape {values.shape}; with {len(labels)} true labels and "
            f"{len(classes)} classes it must be ({len(labels)}, {len(classes)})."
        )
    check_probabilities(values)
    column = {label: k for k, label in enumerate(np.asarray(classes).tolist())}
    unknown = sorted({str(x) for x in labels if not is_unknown(x) and x not in column})
    if unknown:
        raise ValueError(
            f"true contains {', '.join(unknown)}; the classes are {', '.join(map(str, column))}."
        )
    codes = np.array([-1 if is_unknown(x) and x not in column else column[x] for x in labels])
    counts = (codes >= 0) & np.isfinite(values).all(axis=1)
    if not counts.any():
        raise ValueError("No window has a true label and probabilities.")
    return codes[counts], values[counts]


def _bins(
    probability: np.ndarray, is_right: np.ndarray, n_bins: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean probability, share of right windows and their number, of bins with windows."""
    of_window = np.minimum((probability * n_bins).astype(int), n_bins - 1)
    count = np.bincount(of_window, minlength=n_bins)
    used = count > 0
    mean = np.bincount(of_window, probability, n_bins)[used] / count[used]
    share = np.bincount(of_window, is_right, n_bins)[used] / count[used]
    return mean, share, count[used]


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
