"""Figures of predictions over time: hypnogram, hypnodensity, and a scrollable HTML page.

``bland_altman`` plots the agreement with an expert over several nights.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from braindecode_pars._common import checks, tables
from braindecode_pars._common.sleep_stages import top_to_bottom
from braindecode_pars.plotting import style
from braindecode_pars.predictions.night import check_predictions, smoothed, to_annotations


def hypnogram(
    true: ArrayLike,
    predicted: ArrayLike | None = None,
    stage_names: style.ClassNames | None = None,
    window_seconds: float = 30.0,
    ax: Axes | None = None,
    *,
    order: Sequence[str] | None = None,
) -> Axes:
    """Plot a hypnogram of the sleep stages of one recording, optionally with predicted stages.

    Parameters
    ----------
    true : ndarray, shape (n_windows,)
        True stages in chronological order, as indices into ``stage_names`` or as names. The values
        -1, NaN and None mean an unknown stage, which is left blank.
    predicted : ndarray, shape (n_windows,) | None
        Predicted stages, in the same format. If None, only the true stages are drawn.
    stage_names : sequence of str | mapping of label to str | None
        Names of the stages, such as ``class_names_`` of a classifier. Required if stages are
        indices.
    window_seconds : float
        Length of a window in seconds.
    ax : Axes | None
        Axes to draw on. If None, a new figure is created.
    order : sequence of str | None
        Names of all stages from top to bottom. If None, the order is wake, REM, N1, N2, N3; names
        may have any usual spelling (:func:`~braindecode_pars.predictions.stage_of`).

    Returns
    -------
    Axes
        Axes with the hypnogram. With predicted stages, the title shows the percentage of windows
        with equal stages. Windows in which a stage is unknown do not count.

    Raises
    ------
    ValueError
        If a stage is not in ``stage_names``. If ``true`` and ``predicted`` have different lengths.
        If ``order`` is None, and a name is not a sleep stage.

    Examples
    --------
    Simulated stages of one recording, and predictions with N2 in a tenth of the windows:

    .. plot::
        :include-source:
        :alt: True and predicted hypnogram of six hours as steps, and marks below in windows with
            different stages.

        >>> import numpy as np
        >>> from braindecode_pars import datasets, plotting
        >>> rng = np.random.default_rng(1)
        >>> true = datasets.simulated.stages_of_a_night(720, rng)  # six hours
        >>> predicted = np.where(rng.random(720) < 0.1, 2, true)
        >>> ax = plotting.hypnogram(true, predicted, datasets.simulated.STAGES)

    Stages can also be names:

    >>> ax = plotting.hypnogram(["W", "N1", "N2", "N2"], ["W", "N1", "N1", "N2"])
    >>> ax.get_title("left")
    'agreement 75 % of 4 windows'
    """
    checks.check_positive(window_seconds=window_seconds)
    series = {"true": style.label_list("true", true)}
    if predicted is not None:
        series["predicted"] = style.label_list("predicted", predicted)
    for name, stages in series.items():
        if len(stages) != len(series["true"]) or not stages:
            raise ValueError(
                f"{name} has shape ({len(stages)},), expected ({len(series['true']) or 'n_windows'}"
                ",). Pass one stage per window of one recording."
            )
    if stage_names is None:
        labels = {label for stages in series.values() for label in stages}
        known_labels = [label for label in labels if not style.is_unknown(label)]
        if not all(isinstance(label, str) for label in known_labels):
            raise ValueError(
                "Stages are numbers, but stage_names is None. Pass the names of the stages as "
                "stage_names."
            )
        stage_names = sorted(known_labels)
    names = style.names_by_label(stage_names)
    unique_names = list(dict.fromkeys(names.values()))
    order = style.in_figure_order(
        unique_names, top_to_bottom(unique_names) if order is None else order
    )
    row_of = {label: order.index(name) for label, name in names.items()}
    rows = {name: np.array(style.entries(stages, row_of), float) for name, stages in series.items()}

    [ax] = style.axes_for(ax, 1, 1, (9, 2.6))
    edges = np.arange(len(series["true"]) + 1) * window_seconds
    draw_steps(ax, edges, order, rows["true"], rows.get("predicted"))
    return ax


def hypnodensity(
    predictions: pd.DataFrame,
    *,
    true: ArrayLike | None = None,
    order: Sequence[str] | None = None,
    axes: Sequence[Axes] | None = None,
) -> np.ndarray:
    """Plot a hypnodensity: class probabilities over time as stacked areas, below the classes.

    The name was introduced by Stephansen et al. 2018 for sleep stages. Any classes can be plotted.

    Parameters
    ----------
    predictions : DataFrame
        Predictions of a recording, as from ``predict_raw``: the columns ``onset`` and ``duration``
        in seconds, ``label``, and ``probability_LABEL`` for each class. Windows with NaN, and
        segments of the recording without a row, are left blank. To plot smoothed predictions, pass
        the result of :func:`~braindecode_pars.predictions.smoothed`.
    true : ndarray, shape (n_windows,) | None
        Names of the true classes. None, NaN and -1 mean an unknown class. If None, only the
        predicted classes are drawn.
    order : sequence of str | None
        Names of all classes from top to bottom. If None, sleep stages
        (:func:`~braindecode_pars.predictions.stage_of`) are in the order wake, REM, N1, N2, N3, and
        other classes in the order of the columns.
    axes : sequence of two Axes | None
        Axes to draw on. If None, a new figure is created.

    Returns
    -------
    ndarray of Axes, shape (2,)
        Upper axes with the label of each window, and lower axes with the probabilities. If
        ``label`` is not a class, the most probable class is drawn.

    Raises
    ------
    ValueError
        If a column is missing, or values are not probabilities. If a true class is not among the
        classes. If ``order`` does not contain each class exactly once.

    References
    ----------
    Stephansen et al. 2018, Neural network analysis of sleep stages enables efficient diagnosis of
    narcolepsy, Nature Communications 9:5229.

    Examples
    --------
    Simulated stages of one recording, and random probabilities that are high for the true stage:

    .. plot::
        :include-source:
        :alt: A hypnogram of six hours, and below it the probabilities of five stages as stacked
            areas.

        >>> import numpy as np
        >>> import pandas as pd
        >>> from braindecode_pars import datasets, plotting
        >>> rng = np.random.default_rng(1)
        >>> true = datasets.simulated.stages_of_a_night(720, rng)  # six hours
        >>> strength = rng.gamma(0.5, size=(720, 5)) + 1.5 * np.eye(5)[true]
        >>> probabilities = strength / strength.sum(axis=1, keepdims=True)
        >>> columns = [f"probability_{name}" for name in datasets.simulated.STAGES]
        >>> frame = pd.DataFrame(probabilities, columns=columns)
        >>> frame = frame.assign(onset=30 * np.arange(720), duration=30, label=None)
        >>> axes = plotting.hypnodensity(frame)

    >>> [text.get_text() for text in axes[1].get_legend().get_texts()]
    ['W', 'R', 'N1', 'N2', 'N3']
    """
    order, edges, rows, probabilities, classes = read_predictions(predictions, order)
    series = [classes]
    if true is not None:
        # Rows from the top. A number is a class name, not the position of a column.
        row_of: dict[Any, int] = {name: i for i, name in enumerate(order)}
        row_of |= {float(name): i for name, i in row_of.items() if name.lstrip("-").isdigit()}
        expected = np.array(style.entries(true, row_of), dtype=float)
        if len(expected) != len(predictions):
            raise ValueError(
                f"true has {len(expected)} entries, but predictions has {len(predictions)} "
                "windows. Pass one true class per window."
            )
        series.insert(0, np.where(rows < 0, np.nan, expected[rows]))

    # Each class needs a line of text next to the upper axes, and several in the legend.
    height = 4.4 + 0.3 * max(0, len(order) - 6)
    panels = style.axes_for(axes, 2, 1, (9, height), sharex=True, height_ratios=[height - 2.6, 2.6])
    draw_steps(panels[0], edges, order, *series)
    panels[0].set_xlabel("")
    # Stacked areas of probabilities, with the first class on top
    ax = panels[1]
    unit, seconds = style.time_unit(edges[-1] - edges[0])
    edges = edges / seconds
    upper = np.cumsum(probabilities[:, ::-1], axis=1)[:, ::-1]
    lower = np.column_stack([upper[:, 1:], np.where(np.isnan(upper[:, 0]), np.nan, 0)])
    for i, (name, look) in enumerate(zip(order, style.area_styles(order), strict=True)):
        area: dict[str, Any] = dict(baseline=lower[:, i], fill=True, lw=0, label=name, **look)
        ax.stairs(upper[:, i], edges, **area)
    ax.set(xlabel=unit, ylabel="probability", ylim=(0, 1), xlim=(edges[0], edges[-1]))
    style.remove_frame(ax)
    style.named_legend(ax, style.named_artists(ax), loc="upper left", bbox_to_anchor=(1, 1))
    return panels


def bland_altman(statistics: pd.DataFrame, name: str, ax: Axes | None = None) -> Axes:
    """Plot differences between predictions and expert over nights (Bland and Altman 1986).

    Each night is a point: the mean of its predicted and its expert value (x), and their difference
    (y). Lines are the bias and the 95 % limits of agreement, with their 95 % confidence intervals
    as areas. If the points rise, fall or spread out, the limits depend on the value.

    Parameters
    ----------
    statistics : DataFrame
        Sleep statistics of several nights, from :func:`predictions.agreement
        <braindecode_pars.predictions.agreement>`.
    name : str
        Sleep statistic to plot, such as ``"TST"``.
    ax : Axes | None
        Axes to draw on. If None, a new figure is created.

    Returns
    -------
    Axes
        Axes with the figure. Bias and limits are omitted if they are not defined.

    Raises
    ------
    KeyError
        If ``name`` is not a row of ``statistics``, or ``statistics`` are those of a single night.

    Examples
    --------
    .. plot::
        :include-source:
        :alt: Differences between predicted and expert total sleep time of ten nights as points,
            with lines for the bias and the limits of agreement.

        >>> import mne
        >>> import numpy as np
        >>> import pandas as pd
        >>> from braindecode_pars import datasets, plotting, predictions
        >>> rng = np.random.default_rng(0)
        >>> frames, experts = {}, {}
        >>> for night in range(10):
        ...     true = np.array(datasets.simulated.STAGES)[
        ...         datasets.simulated.stages_of_a_night(720, rng)
        ...     ]
        ...     label = np.where(rng.random(720) < 0.1, "N2", true)
        ...     onset = 30.0 * np.arange(720)
        ...     frames[night] = pd.DataFrame(dict(onset=onset, duration=30.0, label=label))
        ...     experts[night] = mne.Annotations(onset, 30, true)
        >>> kappa, confusion, statistics = predictions.agreement(frames, experts)
        >>> ax = plotting.bland_altman(statistics, "TST")
    """
    row = statistics.loc[name]
    predicted, expert, limits = (
        row[part].astype(float) for part in ("predicted", "expert", "limits")
    )
    is_new = ax is None
    [ax] = style.axes_for(ax, 1, 1, (5, 3.6))
    ax.plot((predicted + expert) / 2, predicted - expert, "o", color=style.shade(0.2))
    for i, line in enumerate(("upper_limit", "bias", "lower_limit")):
        color, label = style.COLORS[i], line.replace("_", " ")
        # NaN is not drawn.
        ax.axhspan(
            limits[f"{line}_ci_low"], limits[f"{line}_ci_high"], color=color, alpha=0.2, lw=0
        )
        ax.axhline(limits[line], color=color, linestyle=style.LINES[i], label=label)
    style.draw_legend(ax, is_new=is_new)
    unit = "%" if name.startswith("%") or name in ("SE", "SME") else "min"
    ax.set(xlabel=f"{name}, mean of predicted and expert ({unit})")
    ax.set(ylabel=f"predicted - expert ({unit})")
    style.remove_frame(ax)
    return ax


def read_predictions(
    predictions: pd.DataFrame, order: Sequence[str] | None = None
) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return probabilities and classes of consecutive segments, for plotting.

    A segment is a window, or a gap between windows.

    Parameters
    ----------
    predictions : DataFrame
        Predictions of a recording.
    order : sequence of str | None
        As in :func:`hypnodensity`.

    Returns
    -------
    order : list of str
        Class names from top to bottom.
    edges : ndarray, shape (n_segments + 1,)
        Start of each segment, and end of the last segment, in seconds.
    rows : ndarray of int, shape (n_segments,)
        Row of each segment in the table; -1 for segments without a row.
    probabilities : ndarray, shape (n_segments, n_classes)
        Probabilities; NaN for segments without a prediction.
    classes : ndarray, shape (n_segments,)
        Index of the class in ``order``; NaN for segments without a prediction.
    """
    frame = check_predictions(predictions)
    columns = [str(name) for name in frame if str(name).startswith(tables.PROBABILITY)]
    if not columns:
        raise ValueError(
            "predictions must have one column probability_LABEL per class. Pass the table that "
            "predict_raw of a classifier returns."
        )
    values = tables.numbers_of("probabilities", frame[columns])
    checks.check_probabilities(values, allow_nan=True)
    edges, rows = [float(frame["onset"].iloc[0])], []
    for row, (onset, duration) in enumerate(zip(frame["onset"], frame["duration"], strict=True)):
        if onset > edges[-1] + 1e-6:
            edges.append(onset)
            rows.append(-1)
        edges.append(onset + duration)
        rows.append(row)
    names = [name.removeprefix(tables.PROBABILITY) for name in columns]
    order = style.in_figure_order(names, order)
    values = pd.DataFrame(values, columns=names).reindex(columns=order, fill_value=0.0).to_numpy()
    labels = frame["label"].map({name: i for i, name in enumerate(order)}).to_numpy(float)
    labels = np.where(np.isnan(labels), np.nan_to_num(values).argmax(axis=1), labels)
    probabilities = np.where(np.array(rows)[:, None] < 0, np.nan, values[rows])
    classes = np.where(np.isfinite(probabilities).all(axis=1), labels[rows], np.nan)
    return order, np.array(edges), np.array(rows), probabilities, classes


def draw_steps(
    ax: Axes,
    edges: np.ndarray,
    order: Sequence[str],
    true: np.ndarray,
    predicted: np.ndarray | None = None,
) -> None:
    """Draw a hypnogram as steps, with a row of differences below.

    Parameters
    ----------
    ax : Axes
        Axes to draw on.
    edges : ndarray, shape (n_windows + 1,)
        Start of each window, and end of the last window, in seconds.
    order : sequence of str
        Names from top to bottom.
    true, predicted : ndarray, shape (n_windows,)
        Index of the stage of each window in ``order``; NaN for unknown stages.
    """
    unit, seconds = style.time_unit(edges[-1] - edges[0])
    edges = edges / seconds
    names = list(order)
    if predicted is None:
        ax.stairs(-true, edges, baseline=None, color=style.shade(0.2))
    else:
        ax.stairs(-true, edges, baseline=None, color=style.shade(0.72), lw=3.2, label="true")
        ax.stairs(
            -predicted, edges, baseline=None, color=style.COLORS[0], lw=1.1, label="predicted"
        )
        # Windows with different true and predicted stages are blocks in a separate row. The edge
        # line keeps a window visible if it is narrower than a pixel.
        has_both = np.isfinite(true) & np.isfinite(predicted)
        different = np.flatnonzero(has_both & (true != predicted))
        spans = [(edges[i], edges[i + 1] - edges[i]) for i in different]
        ax.broken_barh(spans, (-len(names) - 0.3, 0.6), color=style.COLORS[6], lw=0.6)
        names.append("different")
        n_windows = has_both.sum()
        agreement = 100 * (1 - len(different) / n_windows) if has_both.any() else np.nan
        ax.set_title(f"agreement {agreement:.0f} % of {n_windows} windows", loc="left")
        ax.legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
    # Axes
    ax.set_yticks([-row for row in range(len(names))], names, parse_math=False)
    ax.set(xlabel=unit, xlim=(edges[0], edges[-1]), ylim=(-len(names) + 0.55, 0.45))
    style.remove_frame(ax)


# The page ----------------------------------------------------------------------------------------

# Texts and layout are in the template night_page.html. Coordinates are computed here.
#: Width of a window, in pixels.
_WINDOW = 6
#: Height of a class in the hypnogram, in pixels.
_ROW = 24
#: Height of a panel of probabilities, in pixels.
_PANEL = 120
#: Height of the gap above a panel of probabilities, in pixels.
_GAP = 34
#: Vertical position of the hypnogram, in pixels.
_TOP = 8
#: Minimum distance of labels on the time axis, in pixels.
_TICK = 60
#: Possible intervals of labels on the time axis, in seconds.
_TICKS = (5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)


def night_page(
    predictions: pd.DataFrame, path: str | Path, *, order: Sequence[str] | None = None
) -> Path:
    """Write a scrollable HTML page with the predicted classes and probabilities of a recording.

    Each window is six pixels wide, independent of the length of the recording. A pointer over a
    window shows the time, label and probabilities of the window. The page has no scripts and no
    external files.

    Parameters
    ----------
    predictions : DataFrame
        Predictions of a recording, as from ``predict_raw``. With ``smooth=True``, the page shows
        the raw and the smoothed predictions.
    path : path
        File to write, such as ``"recording1.html"``. Folders are created.
    order : sequence of str | None
        As in :func:`~braindecode_pars.plotting.hypnodensity`.

    Returns
    -------
    Path
        The HTML file. It is written completely or not at all.

    Raises
    ------
    OSError
        If the file cannot be written.
    TypeError, ValueError
        If ``predictions`` is not a table of predictions, or ``order`` does not contain each class
        exactly once.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from braindecode_pars import plotting
    >>> frame = pd.DataFrame(dict(onset=[0.0, 30.0], duration=30.0, label=["W", "N1"]))
    >>> frame = frame.assign(probability_W=[0.9, 0.2], probability_N1=[0.1, 0.8])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = plotting.night_page(frame, Path(folder, "night.html"))
    ...     print("0:00:30 N1, raw: W 20 %, N1 80 %" in page.read_text(encoding="utf-8"))
    True
    """
    kinds = {"raw": predictions}
    if tables.SMOOTHED_LABEL in predictions:
        kinds["smoothed"] = smoothed(predictions)
    read = {kind: read_predictions(table, order) for kind, table in kinds.items()}
    names, edges, rows, *_ = read["raw"]
    duration = float(np.median(kinds["raw"]["duration"]))
    scale = _WINDOW / duration  # pixels per second
    x = ((edges - edges[0]) * scale).round(2)
    # From top to bottom: hypnogram, and a panel of probabilities for raw and smoothed predictions
    tops = [_TOP + _ROW * len(names) + _GAP + i * (_PANEL + _GAP) for i in range(len(read))]
    # Minutes of each class, and of windows that were not predicted
    minutes = {}
    for kind, table in kinds.items():
        predicted = check_predictions(table)
        label = predicted["label"].where(predicted["label"].isin(list(names)), "")
        duration_of = predicted["duration"].groupby(label).sum() / 60
        minutes[kind] = [float(duration_of.get(name, 0.0)) for name in (*names, "")]
    step = next((t for t in _TICKS if t * scale >= _TICK), _TICKS[-1])
    ticks = np.arange(0, edges[-1] - edges[0] + 1, step).tolist()
    *_, last = kinds.values()
    spans = to_annotations(last)
    stops = spans.onset + spans.duration
    content = dict(
        recording=kinds["raw"].attrs.get("recording", ""),
        findings=kinds["raw"].attrs.get("findings", {}),
        classes=list(zip(names, [s["facecolor"] for s in style.area_styles(names)], strict=True)),
        minutes=minutes,
        spans=[
            (time_text(start), time_text(stop), label)
            for start, stop, label in zip(spans.onset, stops, spans.description, strict=True)
        ],
        window=duration,
        length=time_text(edges[-1] - edges[0]),
        width=float(x[-1]),
        sizes=dict(row=_ROW, panel=_PANEL, top=_TOP, bottom=tops[-1] + _PANEL),
        ticks=[(t * scale, time_text(edges[0] + t)) for t in ticks],
        steps={kind: _steps(classes, x) for kind, (*_, classes) in read.items()},
        panels={
            kind: (top, _areas(probabilities, x))
            for top, (kind, (*_, probabilities, _)) in zip(tops, read.items(), strict=True)
        },
        windows=list(_windows(read, rows, edges, x)),
    )
    return style.write_page(path, Path(__file__).with_name("night_page.html"), content)


def time_text(seconds: float) -> str:
    """Format a time from the start of the recording as hours, minutes and seconds.

    Examples
    --------
    >>> from braindecode_pars.predictions.night_figures import time_text
    >>> time_text(3690.0), time_text(7.5)
    ('1:01:30', '0:00:07.5')
    """
    integer, dot, decimals = str(timedelta(seconds=round(float(seconds), 3))).partition(".")
    return integer + dot + decimals.rstrip("0")


def _steps(classes: np.ndarray, x: np.ndarray) -> str:
    """Return the SVG path of a hypnogram, with gaps where the class is unknown."""
    commands, previous = [], np.nan
    for row, start, stop in zip(classes, x[:-1], x[1:], strict=True):
        y = _TOP + (row + 0.5) * _ROW
        if np.isfinite(row):
            commands.append(
                f"V{y:g}H{stop:.9g}" if np.isfinite(previous) else f"M{start:.9g},{y:g}H{stop:.9g}"
            )
        previous = row
    return "".join(commands)


def _areas(probabilities: np.ndarray, x: np.ndarray) -> list[str]:
    """Return the SVG path of the area of each class, with the first class on top."""
    upper = np.cumsum(probabilities, axis=1) * _PANEL
    lower = upper - probabilities * _PANEL
    return [
        "".join(
            f"M{start:.9g},{above:.1f}H{stop:.9g}V{below:.1f}H{start:.9g}Z"
            for start, stop, above, below in zip(x[:-1], x[1:], *of_class, strict=True)
            if below - above >= 0.05  # not NaN, and visible
        )
        for of_class in zip(lower.T, upper.T, strict=True)
    ]


def _windows(
    read: dict[str, tuple], rows: np.ndarray, edges: np.ndarray, x: np.ndarray
) -> Iterator[tuple[float, float, str]]:
    """Yield left edge, width and text of each window."""
    names = read["raw"][0]
    for i in np.flatnonzero(rows >= 0):
        lines = []
        for kind, (*_, probabilities, classes) in read.items():
            if np.isfinite(classes[i]):
                percentages = zip(names, 100 * probabilities[i], strict=True)
                text = ", ".join(f"{name} {percentage:.0f} %" for name, percentage in percentages)
                lines.append(f"{names[int(classes[i])]}, {kind}: {text}")
        text = "\n".join(lines or ["not predicted"])
        yield float(x[i]), float(x[i + 1] - x[i]), f"{time_text(edges[i])} {text}"
