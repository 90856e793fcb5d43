"""Figures of a night: hypnogram, hypnodensity, and a hypnogram with example windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from braindecode_pars._common.tables import PROBABILITY
from braindecode_pars.plotting.class_figures import (
    area_styles,
    by_number,
    check_order,
    check_probabilities,
    in_figure_order,
    is_unknown,
    names_of,
)
from braindecode_pars.plotting.style import (
    COLORS,
    axes_for,
    legend_columns,
    remove_frame,
    time_unit,
)
from braindecode_pars.predictions import stages_of, top_to_bottom


def hypnogram(
    true: ArrayLike,
    predicted: ArrayLike | None = None,
    stage_names: Sequence[str] | Mapping[Any, str] | None = None,
    window_seconds: float = 30.0,
    ax: Axes | None = None,
    *,
    order: Sequence[str] | None = None,
) -> Axes:
    """Draw the sleep stages of one night, with predicted stages and differences if given.

    Parameters
    ----------
    true : ndarray, shape (n_windows,)
        True stages in chronological order, as indices into ``stage_names`` or as names. The values
        -1, NaN and None stand for an unknown stage, which stays blank. Numbers of Rechtschaffen and
        Kales, where 5 is REM, need no names.
    predicted : ndarray, shape (n_windows,) | None
        Predicted stages, in the same form.
    stage_names : sequence of str | mapping of label to str | None
        Names of the stages, such as ``class_names_`` of a classifier; required when stages are
        indices.
    window_seconds : float
        Length of a window in seconds.
    ax : Axes | None
        Axes to draw on; None makes a new figure.
    order : sequence of str | None
        Names of all stages from top to bottom. None means wake, REM, then N1 to N3, for names of
        any usual spelling (:func:`~braindecode_pars.predictions.stage_of`).

    Returns
    -------
    Axes
        Axes with the hypnogram. With a prediction, the title shows the percentage of windows in
        which both agree. Windows with an unknown stage in either do not count.

    Raises
    ------
    ValueError
        If a stage is not in ``stage_names``, or the lengths differ. Without ``order``, if a name is
        not that of a sleep stage.

    Examples
    --------
    Simulated stages of one night, and a prediction with N2 in a tenth of the windows:

    .. plot::
        :include-source:
        :alt: True and predicted hypnogram of six hours as steps, and marks below where they
            differ.

        >>> import numpy as np
        >>> from braindecode_pars import datasets, plotting
        >>> rng = np.random.default_rng(1)
        >>> true = datasets.simulated.hypnogram(720, rng)  # six hours
        >>> predicted = np.where(rng.random(720) < 0.1, 2, true)
        >>> ax = plotting.hypnogram(true, predicted, datasets.simulated.STAGES)

    Stages may also be names:

    >>> ax = plotting.hypnogram(["W", "N1", "N2", "N2"], ["W", "N1", "N1", "N2"])
    >>> ax.get_title("left")
    'agreement 75 % of 4 windows'
    """
    # Check the stages
    given = {"true": np.asarray(true)}
    if predicted is not None:
        given["predicted"] = np.asarray(predicted)
    for name, stages in given.items():
        if stages.ndim != 1 or len(stages) == 0:
            raise ValueError(
                f"{name} has shape {stages.shape}; pass the stages of one night, (n_windows,)."
            )
    if len({len(stages) for stages in given.values()}) > 1:
        raise ValueError(
            f"There are {len(given['true'])} true and {len(given['predicted'])} predicted stages; "
            "pass one of each for every window."
        )
    if stage_names is None:
        stage_names = _names_among(given)
    names = list(dict.fromkeys(_by_label(stage_names).values()))
    order = top_to_bottom(names) if order is None else check_order(names, order)
    rows = {name: _rows(name, stages, stage_names, order) for name, stages in given.items()}

    [ax] = axes_for(ax, 1, 1, (9, 2.6))
    edges = np.arange(len(given["true"]) + 1) * window_seconds
    draw_steps(ax, edges, order, rows["true"], rows.get("predicted"))
    return ax


def _names_among(given: dict[str, np.ndarray]) -> list[str] | dict[Any, str]:
    """Return the names that occur, or those of the numbers of Rechtschaffen and Kales."""
    # By value: an array with None has dtype object, whatever the others are.
    found = [(stage, name) for name, stages in given.items() for stage in stages.tolist()]
    found = {stage: name for stage, name in found if not is_unknown(stage)}
    numeric = [name for stage, name in found.items() if not isinstance(stage, str)]
    if not numeric:
        return sorted(found)
    known = stages_of(list(found))
    if None in known:
        raise ValueError(
            f"{numeric[0]} contains numbers; pass stage_names, the names of the stages. Only "
            "numbers of Rechtschaffen and Kales, where 5 is REM, need no names."
        )
    return {stage: name.replace("N", "S") for stage, name in zip(found, known, strict=True) if name}


def _by_label(stage_names: Sequence[str] | Mapping[Any, str]) -> dict[Any, str]:
    return dict(stage_names if isinstance(stage_names, Mapping) else enumerate(stage_names))


def _rows(
    name: str,
    stages: np.ndarray,
    stage_names: Sequence[str] | Mapping[Any, str],
    order: Sequence[str],
) -> np.ndarray:
    """Row of each stage, counted from the top; NaN for an unknown stage."""
    by_label = _by_label(stage_names)
    by_index = stages.dtype.kind in "biuf"
    accepted = by_label if by_index else {n: n for n in by_label.values()} | by_label
    values = stages.tolist()
    invalid = {stage for stage in values if not is_unknown(stage)} - set(accepted)
    if invalid:
        texts = list(dict.fromkeys(by_label.values()))
        kind = f"indices from 0 to {len(texts) - 1} of " if by_index else ""
        raise ValueError(
            f"{name} contains {', '.join(map(repr, sorted(invalid, key=str)))}; accepted are {kind}"
            f"{', '.join(texts)}, and -1 for an unknown stage."
        )
    rows = [np.nan if is_unknown(stage) else order.index(accepted[stage]) for stage in values]
    return np.array(rows, dtype=float)


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
        those of sleep stages (:func:`~braindecode_pars.predictions.stage_of`), and otherwise the
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


def night(
    windows: np.ndarray,
    stages: np.ndarray,
    stage_names: Sequence[str],
    sfreq: float,
    channel: int = 0,
    axes: Sequence[Axes] | None = None,
    *,
    order: Sequence[str] | None = None,
) -> np.ndarray:
    """Draw a hypnogram and, below it, one window of each stage.

    Parameters
    ----------
    windows : ndarray, shape (n_windows, n_chans, n_times)
        Windows in volts, in chronological order.
    stages : ndarray of int, shape (n_windows,)
        Stages as indices into ``stage_names``.
    stage_names : sequence of str
        Names of the stages.
    sfreq : float
        Sampling rate in Hz.
    channel : int
        Index of the channel to draw.
    axes : sequence of 1 + len(stage_names) Axes | None
        Axes to draw on; None makes a new figure.
    order : sequence of str | None
        As in :func:`hypnogram <braindecode_pars.plotting.hypnogram>`.

    Returns
    -------
    ndarray of Axes, shape (1 + len(stage_names),)
        Panels: the hypnogram, then the stages from top to bottom. The panel of a stage that does
        not occur is empty.

    Raises
    ------
    ValueError
        If the numbers of stages and windows differ, or a stage is unknown. Without ``order``, if a
        name is not that of a sleep stage.

    Examples
    --------
    One hour of simulated EEG:

    .. plot::
        :include-source:
        :alt: A hypnogram of one hour, and below it thirty seconds of EEG for each of five stages.

        >>> import numpy as np
        >>> from braindecode_pars import as_sklearn, datasets, plotting
        >>> nights = datasets.simulated.sleep(n_subjects=1, hours=1, n_chans=1)
        >>> X, stages, _ = as_sklearn(nights)
        >>> windows = np.stack([window for window, *_ in nights])
        >>> names = datasets.simulated.STAGES
        >>> axes = plotting.night(windows, stages, names, sfreq=100)

    >>> axes.shape
    (6,)
    """
    stages = np.asarray(stages)
    if len(windows) != len(stages):
        raise ValueError(
            f"There are {len(windows)} windows and {len(stages)} stages; pass one stage for each "
            "window."
        )
    # Hypnogram
    n = len(stage_names)
    axes = axes_for(axes, 1 + n, 1, (9, 1.8 + 1.15 * n), height_ratios=[1.5] + [1] * n)
    n_times = windows.shape[-1]
    order = top_to_bottom(stage_names) if order is None else check_order(stage_names, order)
    seconds = n_times / sfreq
    hypnogram(stages, stage_names=stage_names, window_seconds=seconds, ax=axes[0], order=order)
    # The middle one of the windows of each stage
    seconds = np.arange(n_times) / sfreq
    for ax, name in zip(axes[1:], order, strict=True):
        of_stage = np.flatnonzero(stages == list(stage_names).index(name))
        if len(of_stage):
            middle = of_stage[len(of_stage) // 2]
            # volts -> microvolts
            ax.plot(seconds, 1e6 * windows[middle, channel], lw=0.5, color=COLORS[0])
        ax.set(ylim=(-90, 90), xlim=(0, seconds[-1]), ylabel=f"{name}\nµV")
        if ax is not axes[-1]:
            ax.set_xticklabels([])
        remove_frame(ax)
    axes[-1].set_xlabel("seconds")
    return axes


def draw_steps(
    ax: Axes,
    edges: np.ndarray,
    order: Sequence[str],
    true: np.ndarray,
    predicted: np.ndarray | None = None,
) -> None:
    """Draw the rows of a hypnogram, and a row of differences below the stages.

    Parameters
    ----------
    ax : Axes
        Axes to draw on.
    edges : ndarray, shape (n_windows + 1,)
        Start of each window and end of the last, in seconds.
    order : sequence of str
        Names from top to bottom.
    true, predicted : ndarray, shape (n_windows,)
        Row of each window, counted from the top; NaN for an unknown stage.
    """
    unit, seconds = time_unit(edges[-1] - edges[0])
    edges = edges / seconds
    bottom = len(order) - 1
    ticks, labels = list(range(len(order))), list(order)
    if predicted is None:
        ax.stairs(-true, edges, baseline=None, color="0.2")
    else:
        ax.stairs(-true, edges, baseline=None, color="0.72", lw=3.2, label="true")
        style = dict(color=COLORS[0], lw=1.1, label="predicted")
        ax.stairs(-predicted, edges, baseline=None, **style)
        bottom += 1
        ticks, labels = [*ticks, bottom], [*labels, "differ"]
        _mark_differences(ax, true, predicted, edges, -bottom)
        ax.legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
    # Axes
    ax.set_yticks([-tick for tick in ticks], labels)
    ax.set(xlabel=unit, xlim=(edges[0], edges[-1]), ylim=(-bottom - 0.45, 0.45))
    remove_frame(ax)


def _mark_differences(
    ax: Axes, true: np.ndarray, predicted: np.ndarray, edges: np.ndarray, height: float
) -> None:
    """Draw a block below the stages for each window with different true and predicted stages."""
    both = np.isfinite(true) & np.isfinite(predicted)
    differ = np.flatnonzero(both & (true != predicted))
    spans = [(edges[i], edges[i + 1] - edges[i]) for i in differ]
    # The edge line keeps a window visible when it is narrower than a pixel.
    ax.broken_barh(spans, (height - 0.3, 0.6), color=COLORS[6], lw=0.6)
    agreement = 100 * (1 - len(differ) / both.sum()) if both.any() else np.nan
    ax.set_title(f"agreement {agreement:.0f} % of {both.sum()} windows", loc="left")
