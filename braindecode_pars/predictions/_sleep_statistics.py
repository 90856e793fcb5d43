"""Statistics of a night of sleep, from its stages."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from braindecode_pars.predictions._table import check_predictions, classes_of
from braindecode_pars.sleep_stages import UNSCORED, known_stages

__all__ = ["sleep_statistics"]

#: Stages of each row of the statistics; S3 and S4 of Rechtschaffen and Kales are N3.
_PARTS = {
    "N1": ("N1",),
    "N2": ("N2",),
    "N3": ("N3", "N4"),
    "REM": ("R",),
    "NREM": ("N1", "N2", "N3", "N4", "light", "NREM"),
}
#: Coarse stages, and the statistics that are unknown in a scoring that has them.
_UNKNOWN = {
    "light": ("N1", "N2"),
    "NREM": ("N1", "N2", "N3"),
    "sleep": ("N1", "N2", "N3", "REM", "NREM"),
}


def sleep_statistics(
    stages: pd.DataFrame | ArrayLike, *, window_seconds: float = 30.0
) -> dict[str, float]:
    """Return statistics of sleep, as YASA defines them.

    Parameters
    ----------
    stages : DataFrame | sequence of str, shape (n_windows,)
        Predictions of a recording, as from ``predict_raw``, or the stages of consecutive windows,
        by names in any usual spelling (:func:`~braindecode_pars.sleep_stages.stage_of`) or numbers
        of Rechtschaffen and Kales. The whole is the time in bed: crop the recording to lights off
        and on before. None, NaN, "unscored", movement time, and time without a row are unscored.
    window_seconds : float
        Length of a window in seconds, for a sequence.

    Returns
    -------
    dict of str to float
        Durations and latencies in minutes, shares in percent:

        - ``TIB``: time in bed, the whole duration.
        - ``SPT``: sleep period time, from the first to the end of the last window of sleep.
        - ``WASO``: wake after sleep onset, wake in the sleep period.
        - ``TST``: total sleep time, the duration of all sleep.
        - ``WAKE``, ``N1``, ``N2``, ``N3``, ``REM``, ``NREM``, ``UNS``: duration of each stage, of
          all NREM sleep, and of unscored windows.
        - ``SOL``: sleep onset latency, the time before the first window of sleep.
        - ``Lat_N1``, ``Lat_N2``, ``Lat_N3``, ``Lat_REM``: latency of each stage from the beginning,
          also of REM. The REM latency of the AASM, from sleep onset, is ``Lat_REM - SOL``.
        - ``%N1``, ``%N2``, ``%N3``, ``%REM``, ``%NREM``: shares of the total sleep time.
        - ``SE``: sleep efficiency, ``TST / TIB``.
        - ``SME``: sleep maintenance efficiency, ``TST / SPT``.

        NaN for the latency of what did not occur, for shares of no sleep, and for stages that a
        coarser scoring (wake, light, deep, REM) does not distinguish.

    Raises
    ------
    ValueError
        When a stage is not known, or when there are none.

    Notes
    -----
    Unscored windows are time in bed, and neither sleep nor wake. They lower the sleep efficiency.
    Statistics of predicted stages have the errors of the model, which do not cancel out: a model
    that takes N1 for wake gives a longer latency.

    References
    ----------
    Iber et al. 2007, The AASM manual for the scoring of sleep and associated events.

    Vallat and Walker 2021, An open-source, high-performance tool for automated sleep staging, eLife
    10:e70092 (YASA).

    Examples
    --------
    >>> from braindecode_pars.predictions import sleep_statistics
    >>> night = ["W"] * 40 + ["N1"] * 10 + ["N2"] * 400 + ["W"] * 50 + ["REM"] * 100 + ["W"] * 200
    >>> found = sleep_statistics(night)
    >>> [found[name] for name in ("TIB", "SPT", "WASO", "TST", "SOL")]
    [400.0, 280.0, 25.0, 255.0, 20.0]
    >>> round(found["SE"], 2), round(found["%REM"], 1)
    (63.75, 19.6)
    """
    scoring, starts, minutes, total = _read(stages, window_seconds)
    is_wake = np.array([stage == "W" for stage in scoring])
    is_sleep = ~is_wake & np.array([stage != UNSCORED for stage in scoring])
    # The sleep period
    first = _first(starts, is_sleep)
    end = np.max((starts + minutes)[is_sleep], initial=-np.inf)
    period = end - first if is_sleep.any() else 0.0
    inside = (starts >= first) & (starts < end) if is_sleep.any() else is_sleep
    # Durations and latencies of the stages, NaN for those that it does not distinguish
    of = {name: np.array([stage in parts for stage in scoring]) for name, parts in _PARTS.items()}
    unknown = {name for stage in set(scoring) for name in _UNKNOWN.get(stage, ())}
    lengths = {
        name: np.nan if name in unknown else minutes[mask].sum() for name, mask in of.items()
    }
    latencies = {
        f"Lat_{name}": np.nan if name in unknown else _first(starts, mask)
        for name, mask in of.items()
        if name != "NREM"
    }
    tst, wake = minutes[is_sleep].sum(), minutes[is_wake].sum()
    found = {
        "TIB": total,
        "SPT": period,
        "WASO": minutes[is_wake & inside].sum(),
        "TST": tst,
        "WAKE": wake,
        **lengths,
        "UNS": total - tst - wake,
        "SOL": first,
        **latencies,
        **{f"%{name}": _percent(length, tst) for name, length in lengths.items()},
        "SE": _percent(tst, total),
        "SME": _percent(tst, period),
    }
    return {name: float(value) for name, value in found.items()}


def _read(
    stages: pd.DataFrame | ArrayLike, window_seconds: float
) -> tuple[list[str], np.ndarray, np.ndarray, float]:
    """Return stage, start and length of each window, and the whole duration, in minutes."""
    if isinstance(stages, pd.DataFrame):
        rows = check_predictions(stages)
        names, scale = rows["label"].tolist(), classes_of(rows)
        scale = list(dict.fromkeys([*scale, *(name for name in names if name is not None)]))
        starts, lengths = (rows[name].to_numpy(float) / 60 for name in ("onset", "duration"))
        starts = starts - starts[0]
    else:
        names = np.asarray(stages, dtype=object).tolist()
        if np.ndim(stages) != 1 or not names:
            raise ValueError(
                f"stages has shape {np.shape(stages)}; pass the stages of one night, (n_windows,)."
            )
        scale = list(dict.fromkeys(name for name in names if not pd.isna(name)))
        starts = np.arange(len(names)) * window_seconds / 60
        lengths = np.full(len(names), window_seconds / 60)
    remedy = "pass names such as W, N1, N2, N3 and R, for labels by class_names_ of the classifier"
    of_name = dict(zip(scale, known_stages(scale, remedy), strict=True))
    scoring = [UNSCORED if pd.isna(name) else of_name[name] for name in names]
    return scoring, starts, lengths, float(starts[-1] + lengths[-1])


def _first(starts: np.ndarray, mask: np.ndarray) -> float:
    return float(starts[mask][0]) if mask.any() else np.nan


def _percent(part: float, whole: float) -> float:
    return 100 * part / whole if whole > 0 else np.nan
