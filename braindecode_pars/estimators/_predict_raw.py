"""Predictions of a continuous recording, as a table with one row for each window."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import entr
from sklearn.utils.validation import check_is_fitted

from braindecode_pars._parameters import boolean, check_parameters, share
from braindecode_pars.estimators._by_subject import MIN_WINDOWS
from braindecode_pars.estimators._findings import recording_findings
from braindecode_pars.estimators._recording import RecordingToPredict, prepare_recording
from braindecode_pars.estimators._window_grid import grid_average, window_starts
from braindecode_pars.recordings._opening import open_recording

__all__ = ["predict_raw"]

RULES = dict(overlap=share(), preprocess=boolean())


def predict_raw(clf: Any, raw: Any, *, overlap: float, preprocess: bool) -> pd.DataFrame:
    """Predict a recording with a fitted classifier; see ``LogitClassifier.predict_raw``."""
    # Check everything before a file is read.
    check_parameters(dict(overlap=overlap, preprocess=preprocess), RULES, "predict_raw")
    check_is_fitted(clf)
    sfreq, length = _known_rate(clf), clf.n_times_

    # Prepare the signals.
    raw, name = open_recording(raw)
    _check_length(raw, length / sfreq)
    recording = prepare_recording(
        raw, name, sfreq, length, clf.chs_info_, clf.preprocessing_, preprocess=preprocess
    )
    _check_signals(recording)
    findings = recording_findings(recording, clf)

    # Predict the windows that can be predicted.
    starts = window_starts(recording.n_times, length, overlap)
    starts = starts[recording.may_predict(starts, length)]
    _check_windows(clf, starts, recording, length / sfreq)
    probabilities = clf.predict_proba(recording.windows(starts, length))

    # One row for each window of the grid.
    n_rows = recording.n_times // length
    rows = grid_average(probabilities, starts, length, n_rows)
    rows[~recording.may_predict(np.arange(n_rows) * length, length)] = np.nan
    findings["windows"] = n_rows
    findings["windows_not_predicted"] = int(np.isnan(rows[:, 0]).sum())
    frame = prediction_frame(rows, length / sfreq, clf._class_texts)
    frame.attrs |= {"recording": name, "findings": findings}
    return frame


def prediction_frame(probabilities: np.ndarray, seconds: float, classes: list[str]) -> pd.DataFrame:
    """Return the table of the probabilities of windows side by side.

    Parameters
    ----------
    probabilities : ndarray, shape (n_windows, n_classes)
        Probabilities; NaN for a window that was not predicted.
    seconds : float
        Length of a window in seconds.
    classes : list of str
        Names of the classes.

    Returns
    -------
    pandas.DataFrame
        Columns ``onset``, ``duration``, ``label``, ``probability_CLASS`` for each class, and
        ``entropy``.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.estimators._predict_raw import prediction_frame
    >>> frame = prediction_frame(np.array([[0.1, 0.9], [np.nan, np.nan]]), 30.0, ["W", "N1"])
    >>> frame["label"].tolist(), frame["onset"].tolist()
    (['N1', None], [0.0, 30.0])
    """
    predicted = ~np.isnan(probabilities[:, 0])
    labels = np.full(len(probabilities), None, object)
    labels[predicted] = np.array(classes, object)[probabilities[predicted].argmax(axis=1)]
    frame = pd.DataFrame(
        {
            "onset": np.arange(len(probabilities)) * seconds,
            "duration": seconds,
            "label": pd.Series(labels, dtype=object),  # pandas 3 would make NaN of None
            **{f"probability_{name}": probabilities[:, i] for i, name in enumerate(classes)},
            "entropy": entr(probabilities).sum(axis=1),
        }
    )
    frame.attrs["classes"] = classes
    return frame


def _known_rate(clf: Any) -> float:
    if clf.sfreq_ is None:
        raise ValueError(
            f"The sampling rate of the windows in fit is unknown, so {type(clf).__name__} cannot "
            "cut a recording into such windows; fit again with sfreq (Hz)."
        )
    return float(clf.sfreq_)


def _check_length(raw: Any, seconds: float) -> None:
    recorded = raw.n_times / raw.info["sfreq"]
    if round(recorded, 6) < round(seconds, 6):
        raise ValueError(
            f"The recording has {recorded:g} s, less than one window of the model ({seconds:g} s)."
        )


def _check_signals(recording: RecordingToPredict) -> None:
    if not np.ptp(recording.signals, axis=1).any():
        names = ", ".join(d.formula for d in recording.found)
        raise ValueError(
            f"All channels of the recording are flat ({names}), so there is nothing to predict; "
            "was the recording exported without its signals?"
        )


def _check_windows(
    clf: Any, starts: np.ndarray, recording: RecordingToPredict, seconds: float
) -> None:
    """Check that there are windows, and for a model that recentres, enough for a mean."""
    if not len(starts):
        raise ValueError(
            f"No window of {seconds:g} s of the recording can be predicted: each contains a gap or "
            'an annotation that begins with "BAD".'
        )
    if getattr(clf, "recenter", None) is not None and len(starts) < MIN_WINDOWS:
        raise ValueError(
            f"The recording has {len(starts)} windows of {seconds:g} s that can be predicted; a "
            f"model with recenter='subject' needs at least {MIN_WINDOWS} for the mean of a subject."
        )
