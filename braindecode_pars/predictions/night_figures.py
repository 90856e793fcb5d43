"""Figures of predictions over time: hypnogram, hypnodensity, and a scrollable HTML page."""

from collections.abc import Sequence
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
    stages = pd.DataFrame({"true": style.label_list("true", true)}, dtype=object)
    if predicted is not None:
        stages["predicted"] = style.label_list("predicted", predicted)
    if stage_names is None:
        labels = pd.unique(stages.to_numpy().ravel())
        stage_names = [label for label in labels if not style.is_unknown(label)]
    names = style.names_by_label(stage_names)
    unique_names = list(dict.fromkeys(names.values()))
    order = style.in_figure_order(
        unique_names, top_to_bottom(unique_names) if order is None else order
    )
    row_of = {label: order.index(name) for label, name in names.items()}
    rows = [np.array(style.entries(stages[name], row_of), dtype=float) for name in stages]

    [ax] = style.axes_for(ax, 1, 1, (9, 2.6))
    draw_steps(ax, np.arange(len(stages) + 1) * window_seconds, order, *rows)
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
    if true is not None:
        predictions = predictions.assign(true=style.label_list("true", true))
    segments, probabilities = read_predictions(predictions, order)
    order = list(probabilities)
    series = [segments["row"].to_numpy()]
    if true is not None:
        # A number is a class name, not the position of a column.
        row_of: dict[Any, int] = {name: i for i, name in enumerate(order)}
        row_of |= {float(name): i for name, i in row_of.items() if name.lstrip("-").isdigit()}
        series.insert(0, np.array(style.entries(segments["true"], row_of), dtype=float))

    # Each class needs a line of text next to the upper axes, and several in the legend.
    height = 4.4 + 0.3 * max(0, len(order) - 6)
    panels = style.axes_for(axes, 2, 1, (9, height), sharex=True, height_ratios=[height - 2.6, 2.6])
    edges = np.append(segments["onset"], segments["stop"].iloc[-1])
    draw_steps(panels[0], edges, order, *series)
    panels[0].set_xlabel("")
    # Stacked areas of probabilities, with the first class on top
    ax = panels[1]
    unit, seconds = style.time_unit(edges[-1] - edges[0])
    edges = edges / seconds
    upper = probabilities.iloc[:, ::-1].cumsum(axis=1, skipna=False)
    lower = upper - probabilities
    for name, look in zip(order, style.area_styles(order), strict=True):
        area: dict[str, Any] = dict(baseline=lower[name], fill=True, lw=0, label=name, **look)
        ax.stairs(upper[name], edges, **area)
    ax.set(xlabel=unit, ylabel="probability", ylim=(0, 1), xlim=(edges[0], edges[-1]))
    style.remove_frame(ax)
    style.named_legend(ax, style.named_artists(ax), loc="upper left", bbox_to_anchor=(1, 1))
    return panels


def read_predictions(
    predictions: pd.DataFrame, order: Sequence[str] | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the class and the probabilities of consecutive segments, for plotting.

    A segment is a window, or a gap between windows.

    Parameters
    ----------
    predictions : DataFrame
        Predictions of a recording.
    order : sequence of str | None
        As in :func:`hypnodensity`.

    Returns
    -------
    segments : DataFrame
        Columns of ``predictions`` (NaN in gaps), ``stop`` in seconds, and ``row``: the row of the
        class in a hypnogram, from the top (NaN in gaps and in windows without a prediction).
    probabilities : DataFrame
        Probabilities of each segment, with one column per class from top to bottom. Gaps are NaN.
    """
    windows = check_predictions(predictions)
    columns = [str(name) for name in windows if str(name).startswith(tables.PROBABILITY)]
    if not columns:
        raise ValueError(
            "predictions must have one column probability_LABEL per class. Pass the table that "
            "predict_raw of a classifier returns."
        )
    windows = tables.with_numbers(windows, columns)
    checks.check_probabilities(windows[columns].to_numpy(), allow_nan=True)
    stops, next_onsets = windows["onset"] + windows["duration"], windows["onset"].shift(-1)
    windows = windows.assign(stop=stops)
    gaps = pd.DataFrame({"onset": stops, "stop": next_onsets})[next_onsets > stops + 1e-6]
    segments = pd.concat([windows, gaps]).sort_values("onset", ignore_index=True)
    probabilities = segments[columns].rename(columns=lambda name: name[len(tables.PROBABILITY) :])
    order = style.in_figure_order([*probabilities], order)
    probabilities = probabilities.reindex(columns=order, fill_value=0.0)
    rows = pd.Index(order).get_indexer(segments["label"])
    most_probable = probabilities.fillna(0.0).to_numpy().argmax(axis=1)
    rows = pd.Series(np.where(rows < 0, most_probable, rows), dtype=float)
    return segments.assign(row=rows.where(probabilities.notna().all(axis=1))), probabilities


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

# Texts and layout are in the template night_page.html.
#: Width of a window, in pixels.
WINDOW_PIXELS = 6


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
    table_of_kind = {"raw": predictions}
    if tables.SMOOTHED_LABEL in predictions:
        table_of_kind["smoothed"] = smoothed(predictions)
    series = {}
    for kind, table in table_of_kind.items():
        segments, probabilities = read_predictions(table, order)
        names = [*probabilities]
        # Segments without a prediction are in the row below the classes.
        rows = segments["row"].fillna(len(names)).astype(int)
        lengths = segments["duration"] / 60  # NaN for gaps between windows
        series[kind] = dict(
            rows=rows.tolist(),
            probabilities=probabilities.to_numpy().tolist(),
            upper=probabilities.cumsum(axis=1).round(4).to_numpy().tolist(),
            minutes=lengths.groupby(rows).sum().reindex(range(len(names) + 1), fill_value=0.0),
        )
    window_seconds = segments["duration"].median()
    edges = np.append(segments["onset"], segments["stop"].iloc[-1])
    x = (edges - edges[0]) / window_seconds * WINDOW_PIXELS
    content = dict(
        recording=predictions.attrs.get("recording", ""),
        findings=predictions.attrs.get("findings", {}),
        names=names,
        colors=[look["facecolor"] for look in style.area_styles(names)],
        series=series,
        edges=edges.tolist(),
        x=x.round(2).tolist(),
        is_window=segments["duration"].notna().tolist(),
        window_seconds=window_seconds,
        window_pixels=WINDOW_PIXELS,
        changes=to_annotations(table),
        time_text=time_text,
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
