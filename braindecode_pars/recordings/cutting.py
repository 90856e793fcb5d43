"""Cut continuous recordings into windows of fixed length, everywhere or within annotations.

No window contains a gap of its recording. Gaps are marked by annotations of MNE: "EDGE boundary"
and "BAD boundary" between concatenated recordings, "BAD_ACQ_SKIP" for a pause. None overlaps
another annotation that begins with "BAD". What is left out is counted. Windows keep the names of
their classes in the way of braindecode.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, TypeVar

import mne
import numpy as np
import pandas as pd
from braindecode.datasets import EEGWindowsDataset, WindowsDataset

from braindecode_pars._common.checks import check_positive
from braindecode_pars.windows.marks import are_good, continuous_segments

log = logging.getLogger(__name__)


class ExcludedItem(NamedTuple):
    """Something of a recording that is left out.

    Attributes
    ----------
    what, why : str
        What it is, "recordings", "labels" or "windows", and the reason.
    number, of : int
        How many they are, and of how many in the recording.
    is_asked : bool
        Whether the user has asked for it, so that it is no reason for a warning or an error.
    """

    what: str
    why: str
    number: int
    of: int
    is_asked: bool = False

    def __str__(self) -> str:
        return f"{self.number} of {self.of} {self.what} {self.why}"


_OMISSIONS: ContextVar[list[ExcludedItem] | None] = ContextVar("_OMISSIONS", default=None)


@contextmanager
def collected_omissions() -> Iterator[list[ExcludedItem]]:
    """Collect what is left out inside, also by functions that return no window.

    Examples
    --------
    >>> from braindecode_pars.recordings.cutting import collected_omissions, omit
    >>> with collected_omissions() as omissions:
    ...     omit("windows", "too noisy", 2, 10)
    >>> omissions[0].why
    'too noisy'
    """
    omissions: list[ExcludedItem] = []
    token = _OMISSIONS.set(omissions)
    try:
        yield omissions
    finally:
        _OMISSIONS.reset(token)


def omit(what: str, why: str, number: int, of: int, *, is_asked: bool = False) -> None:
    """Note what is left out, if it is anything; see :class:`ExcludedItem`."""
    omissions = _OMISSIONS.get()
    if number and omissions is not None:
        omissions.append(ExcludedItem(what, why, int(number), int(of), is_asked))
    elif number:
        log.info("Left out: %d of %d %s, %s.", number, of, what, why)


#: Seconds by which times may be rounded, and labels too short for their windows: FIF files keep
#: times in single precision, which after nine hours is four milliseconds.
ROUNDING = 4e-3


def holds_a_window(duration: float, seconds: float) -> bool:
    """Whether a stretch is as long as a window, up to rounded times; both in seconds.

    Examples
    --------
    >>> from braindecode_pars.recordings.cutting import holds_a_window
    >>> holds_a_window(29.998, 30), holds_a_window(29.9, 30)
    (True, False)
    """
    return duration >= seconds - ROUNDING


def fixed_windows(
    raw: mne.io.BaseRaw,
    seconds: float = 30.0,
    target: Callable[[np.ndarray, np.ndarray], np.ndarray] | np.ndarray | int = -1,
) -> EEGWindowsDataset | None:
    """Cut a recording into windows of equal length; an incomplete window at the end is dropped.

    After a gap, the next window starts at the first sample after it. Windows that overlap an
    annotation that begins with "BAD" are left out.

    Parameters
    ----------
    raw : Raw
        Continuous recording.
    seconds : float
        Length of a window in seconds.
    target : int | ndarray | callable
        Target of all windows, of each window, or a function that returns the targets. It receives
        the start and stop times of all windows in seconds, two arrays of shape (n_windows,). For
        the estimators, -1 marks an unlabeled window.

    Returns
    -------
    EEGWindowsDataset | None
        Windows; None when the recording, or each part of it between gaps, is shorter than a window,
        or when all windows are bad.

    Raises
    ------
    ValueError
        When ``seconds`` is not positive, or less than a sample.

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
    check_positive(seconds=seconds)
    length = round(seconds * raw.info["sfreq"])  # in samples
    if length < 1:
        raise ValueError(f"seconds={seconds:g} is less than a sample at {raw.info['sfreq']:g} Hz.")
    stretches = continuous_segments(raw)
    of_each = [np.arange(start, stop - length + 1, length) for start, stop in stretches]
    if not sum(map(len, of_each)):
        omit("recordings", f"shorter than a window of {seconds:g} s", 1, 1)
        return None
    starts = np.concatenate(of_each)
    # As braindecode's create_fixed_length_windows, which cuts across gaps, and sets one target per
    # recording; here each window gets its own.
    seconds_of = starts / raw.info["sfreq"]
    targets = target(seconds_of, seconds_of + seconds) if callable(target) else target
    return _good_windows(raw, np.arange(len(starts)), starts, length, targets)


def _good_windows(
    raw: mne.io.BaseRaw,
    numbers: np.ndarray,
    starts: np.ndarray,
    length: int,
    targets: np.ndarray | Sequence[int] | int,
) -> EEGWindowsDataset | None:
    """Return windows without those in bad times; None if there is none."""
    metadata = pd.DataFrame(
        {
            "i_window_in_trial": numbers,
            "i_start_in_trial": starts,
            "i_stop_in_trial": starts + length,
            "target": targets,
        }
    )
    good = are_good(raw, starts, starts + length)
    why = 'in gaps or in annotations that begin with "BAD"'
    omit("windows", why, np.sum(~good), len(good), is_asked=True)
    return EEGWindowsDataset(raw, metadata[good].reset_index(drop=True), {}) if any(good) else None


def event_windows(
    raw: mne.io.BaseRaw, mapping: Mapping[str, int], seconds: float = 30.0
) -> EEGWindowsDataset | None:
    """Cut the annotated parts of a recording into windows that do not overlap.

    A window that would contain a gap, or overlap an annotation that begins with "BAD", is left out.

    Parameters
    ----------
    raw : Raw
        Continuous recording with annotations.
    mapping : mapping of str to int
        Targets by description of an annotation. Annotations with other descriptions are ignored.
    seconds : float
        Length of a window in seconds.

    Returns
    -------
    EEGWindowsDataset | None
        Windows; None when no annotation is as long as a window.

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
    check_positive(seconds=seconds)
    sfreq, notes = raw.info["sfreq"], raw.annotations
    length = round(seconds * sfreq)
    # Whole samples of each annotation, within the recording.
    first = np.round((notes.onset - raw.first_time) * sfreq)
    n_samples = np.floor((notes.duration + max(ROUNDING, 0.5 / sfreq)) * sfreq)
    n_samples = np.minimum(n_samples, raw.n_times - first)
    keep = np.isin(notes.description, list(mapping)) & (n_samples >= length)
    first, counts = first[keep].astype(int), (n_samples[keep] // length).astype(int)
    numbers = np.concatenate([np.arange(n) for n in counts], dtype=int) if len(counts) else counts
    starts = np.repeat(first, counts) + numbers * length
    targets = np.array([mapping[label] for label in np.repeat(notes.description[keep], counts)])
    windows = _good_windows(raw, numbers, starts, length, targets)
    return None if windows is None else name_classes(windows, mapping)


W = TypeVar("W", EEGWindowsDataset, WindowsDataset)


def name_classes(windows: W, classes: Sequence[str] | Mapping[str, int]) -> W:
    """Keep the names of targets with windows.

    The names are written where braindecode's windowers write them: as the entry ``mapping`` of the
    last record in ``window_kwargs``. The estimators read them from there into ``class_names_``.

    Parameters
    ----------
    windows : EEGWindowsDataset | WindowsDataset
        Windows of a recording; changed in place.
    classes : sequence of str | mapping of str to int
        Names of the targets 0, 1, ..., or the target of each name. Without any, nothing is written.

    Returns
    -------
    EEGWindowsDataset
        The windows.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.cutting import name_classes
    >>> from braindecode_pars.recordings.cutting import fixed_windows
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((1, 7500)), info, verbose="error")
    >>> windows = name_classes(fixed_windows(raw, target=1), ("rest", "task"))
    >>> windows.window_kwargs
    [('name_classes', {'mapping': {'rest': 0, 'task': 1}})]
    """
    if not isinstance(classes, Mapping):
        classes = {name: target for target, name in enumerate(classes)}
    if classes:
        earlier: list = getattr(windows, "window_kwargs", None) or []
        windows.window_kwargs = [*earlier, ("name_classes", dict(mapping=dict(classes)))]
    return windows


def split_at_gaps(raw: mne.io.BaseRaw) -> list[mne.io.BaseRaw]:
    """Split a recording at its gaps; one without gaps is returned as it is.

    The parts have its info, and no annotations.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.cutting import split_at_gaps
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> parts = [mne.io.RawArray(np.zeros((1, n)), info, verbose="error") for n in (500, 300)]
    >>> joined = mne.concatenate_raws(parts, verbose="error")
    >>> [int(part.n_times) for part in split_at_gaps(joined)]
    [500, 300]
    """
    stretches = continuous_segments(raw)
    if stretches == [(0, raw.n_times)]:
        return [raw]
    return [  # not by raw.crop, before which all is copied for each part
        mne.io.RawArray(
            raw.get_data(start=start, stop=stop),
            raw.info.copy(),
            raw.first_samp + start,
            verbose="error",
        )
        for start, stop in stretches
    ]
