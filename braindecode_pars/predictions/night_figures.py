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
from braindecode_pars.predictions.night import check_predictions, to_annotations


def hypnogram(
    true: ArrayLike,
    predicted: ArrayLike | None = None,
    stage_names: style.ClassNames | None = None,
    window_seconds: float = 30.0,
    ax: Axes | None = None,
    *,
    order: Sequence[str] | None = None,
) -> Axes:
    """Plot the sleep stages of one recording over time, optionally with the predicted stages.

    Parameters
    ----------
    true : ndarray, shape (n_windows,)
        True stages of all windows in chronological order, as names or as indices into
        ``stage_names``. The values -1, NaN and None mean that the stage is unknown; these windows
        are left blank.
    predicted : ndarray, shape (n_windows,) | None
        Predicted stages, in the same format as ``true``. If None, only the true stages are drawn.
    stage_names : sequence of str | mapping of label to str | None
        Names of the stages, such as ``class_names_`` of a fitted classifier. Required if the stages
        are indices.
    window_seconds : float
        Length of a window in seconds.
    ax : Axes | None
        Axes to draw on. If None, a new figure is created.
    order : sequence of str | None
        Names of all stages from top to bottom. If None, the order is wake, REM, N1, N2, N3. In this
        case, all names must be sleep stages, in any usual spelling
        (:func:`~braindecode_pars.predictions.stage_of`).

    Returns
    -------
    Axes
        Axes with the hypnogram.

    Raises
    ------
    ValueError
        If a stage is not in ``stage_names``, if ``true`` and ``predicted`` have different lengths,
        or if ``order`` is None and a name is not a sleep stage.

    Examples
    --------
    Simulated stages of one recording. The predictions are the true stages, except in a tenth of the
    windows, in which N2 is predicted:

    .. plot::
        :include-source:
        :alt: True and predicted hypnogram of six hours as steps.

        >>> import numpy as np
        >>> from braindecode_pars import datasets, plotting
        >>> rng = np.random.default_rng(1)
        >>> true = datasets.simulated.stages_of_a_night(720, rng)  # six hours
        >>> predicted = np.where(rng.random(720) < 0.1, 2, true)
        >>> ax = plotting.hypnogram(true, predicted, datasets.simulated.STAGES)

    Stages can also be names:

    >>> ax = plotting.hypnogram(["W", "N1", "N2", "N2"], ["W", "N1", "N1", "N2"])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['W', 'N1', 'N2']
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
    order: Sequence[str] | None = None,
    axes: Sequence[Axes] | None = None,
) -> np.ndarray:
    """Plot the predicted classes over time, and below them the class probabilities (hypnodensity).

    The probabilities are drawn as stacked areas. The name "hypnodensity" was introduced by
    Stephansen et al. 2018 for the probabilities of sleep stages, but the classes do not have to be
    sleep stages.

    Parameters
    ----------
    predictions : DataFrame
        Predictions of a recording, as returned by ``predict_raw`` of a classifier. The table must
        have the columns ``onset`` and ``duration`` in seconds, ``label``, and ``probability_LABEL``
        for each class. Windows with NaN probabilities, and gaps between windows, are left blank. To
        plot smoothed predictions, pass the result of
        :func:`~braindecode_pars.predictions.smoothed`.
    order : sequence of str | None
        Names of all classes from top to bottom. If None, the order is wake, REM, N1, N2, N3 for
        sleep stages in any usual spelling (:func:`~braindecode_pars.predictions.stage_of`), and the
        order of the columns for other classes.
    axes : sequence of two Axes | None
        Axes to draw on. If None, a new figure is created.

    Returns
    -------
    ndarray of Axes, shape (2,)
        Upper axes with the predicted class of each window, and lower axes with the probabilities.
        If the label of a window is missing or is not one of the classes, the most probable class is
        drawn.

    Raises
    ------
    ValueError
        If a column is missing, if values are not probabilities, or if ``order`` does not contain
        each class exactly once.

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
    segments, probabilities = read_predictions(predictions, order)
    order = list(probabilities)
    # The figure is higher if there are many classes, because each class needs a line of text.
    height = 4.4 + 0.3 * max(0, len(order) - 6)
    panels = style.axes_for(axes, 2, 1, (9, height), sharex=True, height_ratios=[height - 2.6, 2.6])
    edges = np.append(segments["onset"], segments["stop"].iloc[-1])
    draw_steps(panels[0], edges, order, segments["row"].to_numpy())
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
    """Return the predicted class and the probabilities of all windows and gaps, for plotting.

    In the returned tables, a segment is either a window or a gap between two windows.

    Parameters
    ----------
    predictions : DataFrame
        Predictions of a recording.
    order : sequence of str | None
        As in :func:`hypnodensity`.

    Returns
    -------
    segments : DataFrame
        One row per segment, with the columns of ``predictions`` (NaN in gaps), and:

        - ``stop``: end of the segment in seconds.
        - ``row``: index of the predicted class, from the top of a hypnogram (NaN in gaps and in
          windows without a prediction).
    probabilities : DataFrame
        Class probabilities of each segment, with one column per class, in the order from top to
        bottom. Gaps are NaN.
    """
    windows = check_predictions(predictions)
    columns = [str(name) for name in windows if str(name).startswith(tables.PROBABILITY)]
    if not columns:
        raise ValueError(
            "The table of predictions must have one column probability_LABEL per class, but it has "
            "none. Pass the table that predict_raw of a classifier returns."
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
    """Draw a hypnogram as steps, with thinner steps for predicted stages if there are any.

    Parameters
    ----------
    ax : Axes
        Axes to draw on.
    edges : ndarray, shape (n_windows + 1,)
        Start of each window, and end of the last window, in seconds.
    order : sequence of str
        Names from top to bottom.
    true, predicted : ndarray, shape (n_windows,)
        Index into ``order`` of the stage of each window. NaN if the stage is unknown.
    """
    unit, seconds = style.time_unit(edges[-1] - edges[0])
    edges = edges / seconds
    if predicted is None:
        ax.stairs(-true, edges, baseline=None, color=style.shade(0.2))
    else:
        ax.stairs(-true, edges, baseline=None, color=style.shade(0.72), lw=3.2, label="true")
        ax.stairs(
            -predicted, edges, baseline=None, color=style.COLORS[0], lw=1.1, label="predicted"
        )
        ax.legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
    ax.set_yticks([-row for row in range(len(order))], order, parse_math=False)
    ax.set(xlabel=unit, xlim=(edges[0], edges[-1]), ylim=(-len(order) + 0.55, 0.45))
    style.remove_frame(ax)


# The page ----------------------------------------------------------------------------------------

# The texts and the layout of the page are in the template night_page.html.
#: Width of a window, in pixels.
WINDOW_PIXELS = 6


def night_page(
    predictions: pd.DataFrame, path: str | Path, *, order: Sequence[str] | None = None
) -> Path:
    """Write a scrollable HTML page with the predicted classes and probabilities of a recording.

    Each window is six pixels wide, regardless of the length of the recording. If the pointer is
    over a window, the page shows the time, label and class probabilities of this window. The page
    uses no scripts and no external files.

    Parameters
    ----------
    predictions : DataFrame
        Predictions of a recording, as returned by ``predict_raw`` of a classifier. To show smoothed
        predictions, pass the result of :func:`~braindecode_pars.predictions.smoothed`.
    path : path
        File to write, such as ``"recording1.html"``. Missing folders are created.
    order : sequence of str | None
        Names of all classes from top to bottom. If None, the order is the default order of
        :func:`~braindecode_pars.plotting.hypnodensity`.

    Returns
    -------
    Path
        Path of the HTML file. The file is written completely or not at all.

    Raises
    ------
    OSError
        If the file cannot be written.
    TypeError, ValueError
        If ``predictions`` is not a table of predictions, or if ``order`` does not contain each
        class exactly once.

    Examples
    --------
    The text that the page shows for the second window:

    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from braindecode_pars import plotting
    >>> frame = pd.DataFrame(dict(onset=[0.0, 30.0], duration=30.0, label=["W", "N1"]))
    >>> frame = frame.assign(probability_W=[0.9, 0.2], probability_N1=[0.1, 0.8])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = plotting.night_page(frame, Path(folder, "night.html"))
    ...     print("0:00:30 N1: W 20 %, N1 80 %" in page.read_text(encoding="utf-8"))
    True
    """
    segments, probabilities = read_predictions(predictions, order)
    names = [*probabilities]
    # Gaps, and windows without a prediction, get the index of a row below all classes.
    rows = segments["row"].fillna(len(names)).astype(int)
    window_seconds = segments["duration"].median()
    edges = np.append(segments["onset"], segments["stop"].iloc[-1])
    x = (edges - edges[0]) / window_seconds * WINDOW_PIXELS
    content = dict(
        recording=predictions.attrs.get("recording", ""),
        findings=predictions.attrs.get("findings", {}),
        names=names,
        colors=[look["facecolor"] for look in style.area_styles(names)],
        rows=rows.tolist(),
        probabilities=probabilities.to_numpy().tolist(),
        upper=probabilities.cumsum(axis=1).round(4).to_numpy().tolist(),
        edges=edges.tolist(),
        x=x.round(2).tolist(),
        is_window=segments["duration"].notna().tolist(),
        window_seconds=window_seconds,
        window_pixels=WINDOW_PIXELS,
        changes=to_annotations(predictions),
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
