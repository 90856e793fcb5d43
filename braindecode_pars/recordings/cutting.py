"""Cut continuous recordings into windows of fixed length, everywhere or within annotations.

No window contains a gap of its recording. Gaps are marked by annotations of MNE: "EDGE boundary"
and "BAD boundary" between concatenated recordings, "BAD_ACQ_SKIP" for a pause.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import mne
import numpy as np
import pandas as pd
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset, RawDataset
from braindecode.preprocessing import create_windows_from_events

from braindecode_pars.recordings._gaps import continuous_stretches, is_gap
from braindecode_pars.recordings.class_names import name_classes

__all__ = ["event_windows", "fixed_windows"]

#: Seconds that a label may be too short for its windows: FIF files keep times in single precision,
#: which after nine hours is four milliseconds.
_TOLERANCE = 4e-3


def holds_a_window(duration: float, seconds: float) -> bool:
    """Whether a stretch is as long as a window, up to rounded times; both in seconds.

    Examples
    --------
    >>> from braindecode_pars.recordings.cutting import holds_a_window
    >>> holds_a_window(29.998, 30), holds_a_window(29.9, 30)
    (True, False)
    """
    return duration >= seconds - _TOLERANCE


def fixed_windows(
    raw: mne.io.BaseRaw,
    seconds: float = 30.0,
    target: Callable[[np.ndarray, np.ndarray], np.ndarray] | int = -1,
    *,
    stride_seconds: float | None = None,
) -> EEGWindowsDataset | None:
    """Cut a recording into windows of equal length; an incomplete window at the end is dropped.

    After a gap, the next window starts at the first sample after it.

    Parameters
    ----------
    raw : Raw
        Continuous recording.
    seconds : float
        Length of a window in seconds.
    target : int | callable
        Target of all windows, or a function that returns the targets. The function receives the
        start and stop times of all windows in seconds, two arrays of shape (n_windows,). For the
        estimators, -1 marks an unlabelled window.
    stride_seconds : float | None
        Time in seconds from the start of one window to the start of the next. None means the
        length of a window, so that windows do not overlap.

    Returns
    -------
    EEGWindowsDataset | None
        Windows; None when the recording, or each part of it between gaps, is shorter than a window.

    Raises
    ------
    ValueError
        When ``stride_seconds`` is not positive.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.cutting import fixed_windows
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((1, 7500)), info, verbose="error")
    >>> windows = fixed_windows(raw, seconds=30, target=1)
    >>> len(windows), windows[0][0].shape, windows[0][1]
    (2, (1, 3000), 1)
    """
    # Seconds to samples.
    length = round(seconds * raw.info["sfreq"])
    stride = length if stride_seconds is None else round(stride_seconds * raw.info["sfreq"])
    if stride < 1:
        raise ValueError(f"stride_seconds must be positive, got {stride_seconds}.")
    starts = np.array(
        [
            first
            for start, stop in continuous_stretches(raw)
            for first in range(start, stop - length + 1, stride)
        ],
        dtype=int,
    )
    if not len(starts):
        return None
    # As braindecode's create_fixed_length_windows, which cuts across gaps, and sets one target per
    # recording; here each window gets its own.
    seconds_of = starts / raw.info["sfreq"]
    metadata = pd.DataFrame(
        {
            "i_window_in_trial": range(len(starts)),
            "i_start_in_trial": starts,
            "i_stop_in_trial": starts + length,
            "target": target(seconds_of, seconds_of + seconds) if callable(target) else target,
        }
    )
    return EEGWindowsDataset(raw, metadata, {})


def event_windows(
    raw: mne.io.BaseRaw, mapping: Mapping[str, int], seconds: float = 30.0
) -> EEGWindowsDataset | None:
    """Cut the annotated parts of a recording into windows that do not overlap.

    A window that would contain a gap is dropped.

    Parameters
    ----------
    raw : Raw
        Continuous recording with annotations; changed in place.
    mapping : mapping of str to int
        Targets by description of an annotation. Annotations with other descriptions are ignored.
    seconds : float
        Length of a window in seconds.

    Returns
    -------
    EEGWindowsDataset | None
        Windows; None when no annotation is as long as a window.

    Raises
    ------
    ValueError
        When an annotation begins before the last window of the one before it.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.cutting import event_windows
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((1, 9000)), info, verbose="error")
    >>> stages = mne.Annotations([0, 60, 80], [60, 20, 10], ["N2", "N3", "none"])
    >>> raw = raw.set_annotations(stages)
    >>> windows = event_windows(raw, {"N2": 3, "N3": 4}, seconds=10)
    >>> [target for _, target, _ in windows]
    [3, 3, 3, 3, 3, 3, 4, 4]
    """
    sfreq, notes = raw.info["sfreq"], raw.annotations
    length = round(seconds * sfreq)
    # Whole samples of each annotation, within the recording.
    first = np.round((notes.onset - raw.first_time) * sfreq)
    n_samples = np.floor((notes.duration + max(_TOLERANCE, 0.5 / sfreq)) * sfreq)
    n_samples = np.minimum(n_samples, raw.n_times - first)
    # braindecode raises an error for an annotation that is shorter than a window.
    keep = np.isin(notes.description, list(mapping)) & (n_samples >= length)
    stretches = np.array(continuous_stretches(raw))
    if not keep.any() or not len(stretches):
        return None
    last = first + (n_samples // length - 1) * length  # start of the last window
    _check_order(notes.description[keep], first[keep] / sfreq, last[keep] / sfreq)
    found = set(notes.description[keep].tolist())
    # braindecode rounds durations down to samples.
    notes.duration[keep] = (n_samples[keep] + 0.5) / sfreq
    # Gaps stay marked, for a store of the whole recordings.
    gaps = np.array([is_gap(text) for text in notes.description], dtype=bool)
    notes.delete(np.flatnonzero(~keep & ~gaps))
    (windows,) = create_windows_from_events(
        BaseConcatDataset([RawDataset(raw, {})]),
        window_size_samples=length,
        window_stride_samples=length,
        on_last_window="drop",
        mapping={name: mapping[name] for name in found},
        verbose="error",
    ).datasets
    # The stretch in which each window starts must contain its end too.
    starts, stops = (windows.metadata[f"i_{end}_in_trial"].to_numpy() for end in ("start", "stop"))
    stretch = np.searchsorted(stretches[:, 0], starts, side="right") - 1
    whole = (stretch >= 0) & (stops <= stretches[stretch, 1])
    if whole.all():
        return windows
    if not whole.any():
        return None
    kept = EEGWindowsDataset(raw, windows.metadata[whole].reset_index(drop=True), {})
    return name_classes(kept, mapping)


def _check_order(labels: np.ndarray, first: np.ndarray, last: np.ndarray) -> None:
    """Check that the last window of each label starts before the first of the next; in seconds."""
    wrong = np.flatnonzero(first[1:] <= last[:-1])
    if len(wrong):
        i = wrong[0]
        raise ValueError(
            f"its labels {str(labels[i])!r}, from {first[i]:g} s on, and {str(labels[i + 1])!r}, "
            f"from {first[i + 1]:g} s on, overlap; correct their times, or choose fewer labels."
        )
