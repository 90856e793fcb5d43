"""Figures of a night: hypnogram and hypnodensity, and both as a page to scroll along its time."""

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
    """Draw the sleep stages of one night, with predicted stages and differences if given.

    Parameters
    ----------
    true : ndarray, shape (n_windows,)
        True stages in chronological order, as indices into ``stage_names`` or as names. The values
        -1, NaN and None stand for an unknown stage, which stays blank.
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
        >>> true = datasets.simulated.stages_of_a_night(720, rng)  # six hours
        >>> predicted = np.where(rng.random(720) < 0.1, 2, true)
        >>> ax = plotting.hypnogram(true, predicted, datasets.simulated.STAGES)

    Stages may also be names:

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
                f"{name} has shape ({len(stages)},); pass a stage for each window of one night."
            )
    if stage_names is None:
        labels = {label for stages in series.values() for label in stages}
        known_labels = [label for label in labels if not style.is_unknown(label)]
        if not all(isinstance(label, str) for label in known_labels):
            raise ValueError("The stages are numbers; pass stage_names, the names of the stages.")
        stage_names = sorted(known_labels)
    names = style.names_by_label(stage_names)
    different = list(dict.fromkeys(names.values()))
    order = style.in_figure_order(different, top_to_bottom(different) if order is None else order)
    number = {label: order.index(name) for label, name in names.items()}
    rows = {name: np.array(style.entries(stages, number), float) for name, stages in series.items()}

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
    """Draw the probabilities of classes over time as stacked areas, and the classes above.

    The name is that of Stephansen et al. 2018 for sleep stages. Any other classes are drawn in the
    same way.

    Parameters
    ----------
    predictions : DataFrame
        Predictions of a recording, as from ``predict_raw``: the columns ``onset`` and ``duration``
        in seconds, ``label``, and ``probability_LABEL`` for each class. Windows with NaN, and parts
        of the recording without a row, stay blank. For those that are smoothed over time, pass
        :func:`~braindecode_pars.predictions.smoothed` of them.
    true : ndarray, shape (n_windows,) | None
        True classes, by their names. None, NaN and -1 stand for an unknown class.
    order : sequence of str | None
        Names of all classes from top to bottom. None means wake, REM, N1 to N3 if all names are
        those of sleep stages (:func:`~braindecode_pars.predictions.stage_of`), and otherwise the
        given order.
    axes : sequence of two Axes | None
        Axes to draw on; None makes a new figure.

    Returns
    -------
    ndarray of Axes, shape (2,)
        Label of each window above, or its most probable class where ``label`` is none of the
        classes; probabilities below.

    Raises
    ------
    ValueError
        If a column is missing, if values are no probabilities, if a true class is not drawn, or if
        ``order`` does not have each class once.

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
    order, edges, rows, pieces, drawn = read_predictions(predictions, order)
    shown = [drawn]
    if true is not None:
        # Rows from the top. A number is the name of a class, never the position of a column.
        row_of: dict[Any, int] = {name: i for i, name in enumerate(order)}
        row_of |= {float(name): i for name, i in row_of.items() if name.lstrip("-").isdigit()}
        expected = np.array(style.entries(true, row_of), dtype=float)
        if len(expected) != len(predictions):
            raise ValueError(f"There are {len(expected)} true classes, {len(predictions)} windows.")
        shown.insert(0, np.where(rows < 0, np.nan, expected[rows]))

    # Each class needs a line of text beside the upper axes, and some in the legend below.
    height = 4.4 + 0.3 * max(0, len(order) - 6)
    panels = style.axes_for(axes, 2, 1, (9, height), sharex=True, height_ratios=[height - 2.6, 2.6])
    draw_steps(panels[0], edges, order, *shown)
    panels[0].set_xlabel("")
    # Stacked areas of probabilities, with the first class on top
    ax = panels[1]
    unit, seconds = style.time_unit(edges[-1] - edges[0])
    edges = edges / seconds
    upper = np.cumsum(pieces[:, ::-1], axis=1)[:, ::-1]
    lower = np.column_stack([upper[:, 1:], np.where(np.isnan(upper[:, 0]), np.nan, 0)])
    for i, (name, look) in enumerate(zip(order, style.area_styles(order), strict=True)):
        area: dict[str, Any] = dict(baseline=lower[:, i], fill=True, lw=0, label=name, **look)
        ax.stairs(upper[:, i], edges, **area)
    ax.set(xlabel=unit, ylabel="probability", ylim=(0, 1), xlim=(edges[0], edges[-1]))
    style.remove_frame(ax)
    style.named_legend(ax, style.named_artists(ax), loc="upper left", bbox_to_anchor=(1, 1))
    return panels


def read_predictions(
    predictions: pd.DataFrame, order: Sequence[str] | None = None
) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return what figures draw of predictions, in pieces of time that follow each other.

    Parameters
    ----------
    predictions : DataFrame
        Predictions of a recording.
    order : sequence of str | None
        As in :func:`hypnodensity`.

    Returns
    -------
    order : list of str
        Names from top to bottom.
    edges : ndarray, shape (n_pieces + 1,)
        Start of each piece and end of the last, in seconds.
    rows : ndarray of int, shape (n_pieces,)
        Row of each piece in the table; -1 where the table has none.
    pieces : ndarray, shape (n_pieces, n_classes)
        Probabilities, NaN where there are none.
    drawn : ndarray, shape (n_pieces,)
        Index of the class in ``order``, NaN where there is none.
    """
    frame = check_predictions(predictions)
    columns = [str(name) for name in frame if str(name).startswith(tables.PROBABILITY)]
    if not columns:
        raise ValueError("The predictions have no column probability_LABEL for each class.")
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
    pieces = np.where(np.array(rows)[:, None] < 0, np.nan, values[rows])
    drawn = np.where(np.isfinite(pieces).all(axis=1), labels[rows], np.nan)
    return order, np.array(edges), np.array(rows), pieces, drawn


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
        # A block in a further row for each window with different true and predicted stages. The
        # edge line keeps a window visible when it is narrower than a pixel.
        both = np.isfinite(true) & np.isfinite(predicted)
        differ = np.flatnonzero(both & (true != predicted))
        spans = [(edges[i], edges[i + 1] - edges[i]) for i in differ]
        ax.broken_barh(spans, (-len(names) - 0.3, 0.6), color=style.COLORS[6], lw=0.6)
        names.append("differ")
        agreement = 100 * (1 - len(differ) / both.sum()) if both.any() else np.nan
        ax.set_title(f"agreement {agreement:.0f} % of {both.sum()} windows", loc="left")
        ax.legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
    # Axes
    ax.set_yticks([-row for row in range(len(names))], names, parse_math=False)
    ax.set(xlabel=unit, xlim=(edges[0], edges[-1]), ylim=(-len(names) + 0.55, 0.45))
    style.remove_frame(ax)


# The page ----------------------------------------------------------------------------------------

# Texts and layout are in the template night_page.html. Coordinates are computed here.
#: Pixels: width of a window; heights of a class in the hypnogram, of a panel of probabilities and
#: of the gap above it; top of the hypnogram; smallest distance of labels on the time axis.
_WINDOW, _ROW, _PANEL, _GAP, _TOP, _TICK = 6, 24, 120, 34, 8, 60
#: Distances of labels on the time axis in seconds.
_TICKS = (5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)


def night_page(
    predictions: pd.DataFrame, path: str | Path, *, order: Sequence[str] | None = None
) -> Path:
    """Write a page with the classes and probabilities of a recording, to scroll along its time.

    A window is six pixels wide, whatever the length of the recording; a pointer over it shows its
    time, label and probabilities. The page needs no script, no other file and no network.

    Parameters
    ----------
    predictions : DataFrame
        Predictions of a recording, as from ``predict_raw``. Of those with ``smooth=True``, the page
        shows both the raw and the smoothed ones.
    path : path
        File to write, such as ``"night1.html"``. Folders are created.
    order : sequence of str | None
        As in :func:`~braindecode_pars.plotting.hypnodensity`.

    Returns
    -------
    Path
        The file. It is written completely or not at all.

    Raises
    ------
    OSError
        When the file cannot be written.
    TypeError, ValueError
        When ``predictions`` is not a table of predictions, or ``order`` does not have each class
        once.

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
    # From top to bottom: the hypnogram, and a panel of probabilities for each kind
    tops = [_TOP + _ROW * len(names) + _GAP + i * (_PANEL + _GAP) for i in range(len(read))]
    # Minutes of each class, and of windows without one
    minutes = {}
    for kind, table in kinds.items():
        predicted = check_predictions(table)
        label = predicted["label"].where(predicted["label"].isin(list(names)), "")
        spent = predicted["duration"].groupby(label).sum() / 60
        minutes[kind] = [float(spent.get(name, 0.0)) for name in (*names, "")]
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
        steps={kind: _steps(drawn, x) for kind, (*_, drawn) in read.items()},
        panels={
            kind: (top, _areas(pieces, x))
            for top, (kind, (*_, pieces, _)) in zip(tops, read.items(), strict=True)
        },
        windows=list(_windows(read, rows, edges, x)),
    )
    return style.write_page(path, Path(__file__).with_name("night_page.html"), content)


def time_text(seconds: float) -> str:
    """Return a time from the beginning of the recording.

    Examples
    --------
    >>> from braindecode_pars.predictions.night_figures import time_text
    >>> time_text(3690.0), time_text(7.5)
    ('1:01:30', '0:00:07.5')
    """
    whole, dot, rest = str(timedelta(seconds=round(float(seconds), 3))).partition(".")
    return whole + dot + rest.rstrip("0")


def _steps(drawn: np.ndarray, x: np.ndarray) -> str:
    """Return the path of a hypnogram; it is broken where a class is unknown."""
    commands, before = [], np.nan
    for row, start, stop in zip(drawn, x[:-1], x[1:], strict=True):
        y = _TOP + (row + 0.5) * _ROW
        if np.isfinite(row):
            commands.append(
                f"V{y:g}H{stop:.9g}" if np.isfinite(before) else f"M{start:.9g},{y:g}H{stop:.9g}"
            )
        before = row
    return "".join(commands)


def _areas(pieces: np.ndarray, x: np.ndarray) -> list[str]:
    """Return the path of the area of each class, with the first class on top."""
    upper = np.cumsum(pieces, axis=1) * _PANEL
    lower = upper - pieces * _PANEL
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
        for kind, (*_, pieces, drawn) in read.items():
            if np.isfinite(drawn[i]):
                shares = zip(names, 100 * pieces[i], strict=True)
                listed = ", ".join(f"{name} {share:.0f} %" for name, share in shares)
                lines.append(f"{names[int(drawn[i])]}, {kind}: {listed}")
        text = "\n".join(lines or ["not predicted"])
        yield float(x[i]), float(x[i + 1] - x[i]), f"{time_text(edges[i])} {text}"
