"""Hypnodensity: probabilities of classes over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from braindecode_pars._columns import PROBABILITY
from braindecode_pars.plotting._classes import (
    area_styles,
    by_number,
    check_probabilities,
    in_figure_order,
    is_unknown,
    names_of,
)
from braindecode_pars.plotting._steps import draw_steps
from braindecode_pars.plotting._style import axes_for, legend_columns, remove_frame, time_unit

__all__ = ["hypnodensity"]


def hypnodensity(
    probabilities: pd.DataFrame | ArrayLike,
    class_names: Mapping[Any, str] | Sequence[str] | None = None,
    *,
    true: ArrayLike | None = None,
    window_seconds: float = 30.0,
    order: Sequence[str] | None = None,
    axes: Sequence[Axes] | None = None,
) -> np.ndarray:
    """Draw the probabilities of classes over time as stacked areas, and the classes above.

    The name is that of Stephansen et al. 2018 for sleep stages. Any other classes are drawn in the
    same way.

    Parameters
    ----------
    probabilities : DataFrame | ndarray, shape (n_windows, n_classes)
        Predictions of a recording, with the columns ``onset`` and ``duration`` in seconds,
        ``label``, and ``probability_LABEL`` for each class; or probabilities of windows in
        chronological order, as from ``predict_proba``. Windows with NaN, and parts of the recording
        without a row, stay blank.
    class_names : sequence of str | mapping of label to str | None
        Names of the columns of an array, in their order, or name of each label, such as
        ``class_names_`` of a classifier; the columns are then those of the sorted labels. A
        DataFrame contains the names, and needs this only for labels in ``true``.
    true : ndarray, shape (n_windows,) | None
        True classes, as names, or as the labels that ``class_names`` names. None, NaN and -1 stand
        for an unknown class.
    window_seconds : float
        Length of a window of an array in seconds.
    order : sequence of str | None
        Names of all classes from top to bottom. None means wake, REM, N1 to N3 if all names are
        those of sleep stages (:func:`~braindecode_pars.sleep_stages.stage_of`), and otherwise the
        given order.
    axes : sequence of two Axes | None
        Axes to draw on; None makes a new figure.

    Returns
    -------
    ndarray of Axes, shape (2,)
        Most probable class of each window above, probabilities below.

    Raises
    ------
    TypeError
        If an array is given without ``class_names``.
    ValueError
        If a DataFrame lacks a column, if values are no probabilities, if names do not match the
        columns, if a true class is not drawn, or if ``order`` does not have each class once.

    References
    ----------
    Stephansen et al. 2018, Neural network analysis of sleep stages enables efficient diagnosis of
    narcolepsy, Nature Communications 9:5229.

    Examples
    --------
    Simulated stages of one night, and random probabilities that are high for the true stage:

    .. plot::
        :include-source:
        :alt: A hypnogram of six hours, and below it the probabilities of five stages as stacked
            areas.

        >>> import numpy as np
        >>> from braindecode_pars import datasets, plotting
        >>> rng = np.random.default_rng(1)
        >>> true = datasets.simulated.hypnogram(720, rng)  # six hours
        >>> strength = rng.gamma(0.5, size=(720, 5)) + 1.5 * np.eye(5)[true]
        >>> probabilities = strength / strength.sum(axis=1, keepdims=True)
        >>> axes = plotting.hypnodensity(probabilities, datasets.simulated.STAGES)

    >>> [text.get_text() for text in axes[1].get_legend().get_texts()]
    ['W', 'R', 'N1', 'N2', 'N3']
    """
    names, values, edges, rows = _read(probabilities, class_names, window_seconds)
    order = in_figure_order(names, order)
    known = None if true is None else _true_names(true, order, class_names, rows.max() + 1)
    # Pieces of time: the windows, and NaN where there is none
    values = pd.DataFrame(values, columns=names).reindex(columns=order, fill_value=0.0).to_numpy()
    pieces = np.where(rows[:, None] < 0, np.nan, values[rows])
    most_probable = np.where(
        np.isfinite(pieces).all(axis=1), np.nan_to_num(pieces).argmax(axis=1), np.nan
    )

    # Each class needs a line of text beside the upper axes, and some in the legend below.
    height = 4.4 + 0.3 * max(0, len(order) - 6)
    axes = axes_for(axes, 2, 1, (9, height), sharex=True, height_ratios=[height - 2.6, 2.6])
    shown = [most_probable]
    if known is not None:
        expected = [None if row < 0 else known[row] for row in rows.tolist()]
        shown.insert(0, [np.nan if name is None else order.index(name) for name in expected])
    draw_steps(axes[0], edges, order, *map(np.array, shown))
    axes[0].set_xlabel("")
    _draw_areas(axes[1], edges, order, pieces)
    return axes


def _draw_areas(ax: Axes, edges: np.ndarray, order: Sequence[str], pieces: np.ndarray) -> None:
    """Draw stacked areas of probabilities, (n_pieces, n_classes), with the first class on top."""
    unit, seconds = time_unit(edges[-1] - edges[0])
    edges = edges / seconds
    upper = np.cumsum(pieces[:, ::-1], axis=1)[:, ::-1]
    lower = np.column_stack([upper[:, 1:], np.where(np.isnan(upper[:, 0]), np.nan, 0)])
    for i, (name, style) in enumerate(zip(order, area_styles(order), strict=True)):
        area = dict(baseline=lower[:, i], fill=True, lw=0, label=name)
        ax.stairs(upper[:, i], edges, **area, **style)
    ax.set(xlabel=unit, ylabel="probability", ylim=(0, 1), xlim=(edges[0], edges[-1]))
    columns = legend_columns(order, ax.figure.get_figwidth())
    below = dict(loc="upper center", bbox_to_anchor=(0.5, -0.22))
    ax.legend(frameon=False, ncols=columns, **below)
    remove_frame(ax)


def _read(
    given: pd.DataFrame | ArrayLike,
    class_names: Mapping[Any, str] | Sequence[str] | None,
    window_seconds: float,
) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray]:
    """Return names, probabilities, edges of pieces in seconds, and the row of each piece."""
    if isinstance(given, pd.DataFrame):
        columns = [str(name) for name in given if str(name).startswith(PROBABILITY)]
        missing = [name for name in ("onset", "duration") if name not in given]
        if missing or not columns:
            raise ValueError(
                "The predictions need the columns onset, duration and probability_LABEL for each "
                f"class; they have {', '.join(map(str, given.columns)) or 'none'}."
            )
        names = [name.removeprefix(PROBABILITY) for name in columns]
        others = set() if class_names is None else set(_names(class_names, len(names))) - set(names)
        if others:
            raise ValueError(
                f"class_names has {', '.join(sorted(others))}, but the classes of the predictions "
                f"are {', '.join(names)}; to rename classes, rename the columns."
            )
        values = given[columns].to_numpy(float)
        edges, rows = _pieces(given["onset"].to_numpy(float), given["duration"].to_numpy(float))
    else:
        values = np.asarray(given, dtype=float)
        if class_names is None:
            raise TypeError(
                "Probabilities in an array need class_names, the names of their columns, such as "
                "class_names_ of the classifier."
            )
        if values.ndim != 2:
            raise ValueError(
                f"probabilities has shape {values.shape}; pass those of one recording, of shape "
                "(n_windows, n_classes)."
            )
        names = _names(class_names, values.shape[1])
        edges, rows = np.arange(len(values) + 1) * window_seconds, np.arange(len(values))
    if not len(values):
        raise ValueError("There are no windows, so there is nothing to draw.")
    check_probabilities(values)
    return names, values, edges, rows


def _names(class_names: Mapping[Any, str] | Sequence[str], n_classes: int) -> list[str]:
    if isinstance(class_names, Mapping):
        class_names = [class_names[label] for label in sorted(class_names, key=by_number)]
    names = [str(name) for name in class_names]
    if len(names) != n_classes or len(set(names)) < n_classes:
        raise ValueError(
            f"class_names has {len(names)} names ({', '.join(names)}), and there are {n_classes} "
            "columns of probabilities; pass a different name for each column, in their order."
        )
    return names


def _pieces(onsets: np.ndarray, durations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges of consecutive pieces of time, and the row of each; -1 where there is none.

    Raises
    ------
    ValueError
        When windows are not in chronological order, or overlap.
    """
    stops = onsets + durations
    if (onsets[1:] < stops[:-1] - 1e-6).any():
        raise ValueError(
            "The windows overlap, or are not in chronological order; draw one recording at a time, "
            "sorted by onset."
        )
    edges, rows = list(onsets[:1]), []
    for row, (onset, stop) in enumerate(zip(onsets, stops, strict=True)):
        if onset > edges[-1] + 1e-6:
            edges.append(onset)
            rows.append(-1)
        edges.append(stop)
        rows.append(row)
    return np.array(edges), np.array(rows, dtype=int)


def _true_names(
    true: ArrayLike,
    order: Sequence[str],
    class_names: Mapping[Any, str] | Sequence[str] | None,
    n_windows: int,
) -> list[str | None]:
    labels = np.asarray(true).tolist()
    if len(labels) != n_windows:
        raise ValueError(
            f"There are {len(labels)} true classes for {n_windows} windows; pass one for each."
        )
    found = list(dict.fromkeys(label for label in labels if not is_unknown(label)))
    if class_names is None:  # A number is the name of a class, never the position of a column.
        numbers = {float(name): name for name in order if name.lstrip("-").isdigit()}
        class_names = {name: name for name in order} | numbers
    named = names_of(found, class_names)
    of_label = dict(zip(found, named, strict=True))
    return [None if is_unknown(label) else of_label[label] for label in labels]
