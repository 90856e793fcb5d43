"""A page of a night: classes and probabilities along time, to scroll, in one HTML file.

The texts and the layout are in the template ``night_page.html``. Coordinates are computed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from braindecode_pars._common.tables import SMOOTHED_LABEL
from braindecode_pars.plotting.sleep_figures import read_predictions
from braindecode_pars.plotting.style import write_page
from braindecode_pars.plotting.training_figures import area_styles
from braindecode_pars.predictions import check_predictions, smoothed, to_annotations

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
    tables = {"raw": predictions}
    if SMOOTHED_LABEL in predictions:
        tables["smoothed"] = smoothed(predictions)
    return write_page(path, Path(__file__).with_suffix(".html"), _content(tables, order))


def _content(tables: dict[str, pd.DataFrame], order: Sequence[str] | None) -> dict[str, Any]:
    """Return what the template shows of the raw and perhaps the smoothed predictions."""
    read = {kind: read_predictions(table, order) for kind, table in tables.items()}
    names, edges, rows, *_ = read["raw"]
    duration = float(np.median(tables["raw"]["duration"]))
    scale = _WINDOW / duration  # pixels per second
    x = ((edges - edges[0]) * scale).round(2)
    # From top to bottom: the hypnogram, and a panel of probabilities for each kind
    tops = [_TOP + _ROW * len(names) + _GAP + i * (_PANEL + _GAP) for i in range(len(read))]
    areas = {kind: _areas(pieces, x) for kind, (*_, pieces, _) in read.items()}
    step = next((t for t in _TICKS if t * scale >= _TICK), _TICKS[-1])
    ticks = np.arange(0, edges[-1] - edges[0] + 1, step).tolist()
    *_, last = tables.values()
    spans = to_annotations(last)
    stops = spans.onset + spans.duration
    return dict(
        recording=tables["raw"].attrs.get("recording", ""),
        findings=tables["raw"].attrs.get("findings", {}),
        classes=list(zip(names, [s["facecolor"] for s in area_styles(names)], strict=True)),
        minutes={kind: _minutes(table, names) for kind, table in tables.items()},
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
        panels={kind: (top, areas[kind]) for kind, top in zip(read, tops, strict=True)},
        windows=list(_windows(read, rows, edges, x)),
    )


def time_text(seconds: float) -> str:
    """Return a time from the beginning of the recording.

    Examples
    --------
    >>> from braindecode_pars.plotting.night_page import time_text
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


def _minutes(table: pd.DataFrame, names: Sequence[str]) -> list[float]:
    """Return the minutes of each class, and of windows without one."""
    rows = check_predictions(table)
    label = rows["label"].where(rows["label"].isin(list(names)), "")
    minutes = rows.groupby(label)["duration"].sum() / 60
    return [float(minutes.get(name, 0.0)) for name in (*names, "")]
