"""Features of windows that many fits need: within a context, they are computed once.

A comparison with few labels fits the same methods on many draws of the same windows. Where nothing
before a classifier is trained, as with band power or a given encoder, the features of a window are
the same in every draw.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from braindecode_pars.windows.table import Windows

__all__ = ["features_computed_once"]

Features = dict[str, np.ndarray]

#: Rows of features by what computes them, by window; and the windows themselves.
_known: ContextVar[tuple[dict[Hashable, dict[tuple, Any]], list[Windows]] | None] = ContextVar(
    "features", default=None
)


@contextmanager
def features_computed_once() -> Iterator[None]:
    """Within this context, the features of a window are computed once for all fits.

    It is for repeated fits on the windows of one dataset in one process: protocols with many draws,
    cross-validation, searches. It holds for the features of a given encoder
    (:class:`~braindecode_pars.PARSEmbedder`, :class:`~braindecode_pars.FewLabelsClassifier`) and
    for those without one, such as :class:`~braindecode_pars.evaluation.LogBandPower`. They stay in
    memory until the context ends, and can differ by rounding from those without it. Worker
    processes (``n_jobs``) do not share them. Do not change windows in place within the context.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.evaluation import (
    ...     LogBandPower, features_computed_once, label_efficiency
    ... )
    >>> probe = make_pipeline(LogBandPower(), StandardScaler(), LogisticRegression(C=0.01))
    >>> with features_computed_once():
    ...     scores = label_efficiency(
    ...         {"band power": probe},
    ...         datasets.mental_arithmetic(),
    ...         n_train_subjects=[4],
    ...         cv=4,
    ...         seeds=range(3),
    ...         verbose=0,
    ...     )
    """
    token = _known.set(({}, []))
    try:
        yield
    finally:
        _known.reset(token)


def computed_once(
    make_key: Callable[[], Hashable], windows: Windows, compute: Callable[[Windows], Features]
) -> Features:
    """Return the features of windows; in the context, those that are known are not computed.

    Parameters
    ----------
    make_key : callable
        Function that returns all that the features of a window depend on, apart from the window.
    windows : Windows
        Windows with the channels that are used.
    compute : callable
        Function of windows that returns arrays by name, with one row for each window.
    """
    known = _known.get()
    if known is None or not len(windows):
        return compute(windows)
    rows_of, alive = known
    rows = rows_of.setdefault(make_key(), {})
    lengths = (windows.table["stop"] - windows.table["start"]).tolist()
    places = list(zip(windows.places(), lengths, strict=True))
    missing = [i for i, place in enumerate(places) if place not in rows]
    if missing:
        try:
            found = compute(windows.take(missing))
        except ValueError:
            compute(windows)  # its message has the number of the window among all
            raise
        for n, i in enumerate(missing):
            rows[places[i]] = {name: values[n] for name, values in found.items()}
        alive.append(windows)  # while it is, no other window can have its place
    return {name: np.stack([rows[p][name] for p in places]) for name in rows[places[0]]}


def checked_once(windows: Windows) -> tuple[int, int]:
    """Check windows as ``Windows.check`` does; in the context, each is read for that once."""
    channels = tuple(ch["ch_name"] for ch in windows.chs_info or ())

    def compute(those: Windows) -> Features:
        return {"shape": np.tile(those.check(), (len(those), 1))}

    shapes = computed_once(lambda: ("shape", channels), windows, compute)["shape"]
    if (shapes != shapes[0]).any():
        return windows.check()  # names the window
    n_chans, n_times = shapes[0].tolist()
    return n_chans, n_times
