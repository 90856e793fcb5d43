"""Calibration curve: probabilities against the share of predictions that are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from braindecode_pars.plotting._classes import check_probabilities, is_unknown, names_of
from braindecode_pars.plotting._style import axes_for, remove_frame, series_style

__all__ = ["calibration_curve"]


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
