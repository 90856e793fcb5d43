"""Cut continuous recordings into windows of fixed length, everywhere or within annotations.

Windows overlap neither gaps of the recording nor annotations that begin with "BAD". MNE marks gaps
with annotations: "EDGE boundary" and "BAD boundary" between concatenated recordings, and
"BAD_ACQ_SKIP" for a pause of the acquisition. The numbers of excluded windows and labels are
recorded, see :func:`record_excluded`. Class names are stored with the windows, as in braindecode.
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
    """Number of items of one kind, such as windows, that were excluded from a recording, and why.

    Attributes
    ----------
    what : str
        Kind of the excluded items: "recordings", "labels", "windows", "signals", or "rows" of a
        BIDS table.
    why : str
        Reason why the items were excluded.
    number : int
        Number of excluded items.
    of : int
        Total number of items of this kind in the recording.
    is_requested : bool
        Whether the user requested the exclusion, for example with "BAD" annotations. If True,
        neither a warning nor an error is needed.
    """

    what: str
    why: str
    number: int
    of: int
    is_requested: bool = False

    def __str__(self) -> str:
        return f"{self.number} of {self.of} {self.what} ({self.why})"


_EXCLUDED_ITEMS: ContextVar[list[ExcludedItem] | None] = ContextVar("_EXCLUDED_ITEMS", default=None)


@contextmanager
def collect_excluded_items() -> Iterator[list[ExcludedItem]]:
    """Collect the items that are excluded by functions called inside this context manager.

    Yields
    ------
    list of ExcludedItem
        List to which each excluded item is appended.

    Examples
    --------
    >>> from braindecode_pars.recordings.cutting import collect_excluded_items, record_excluded
    >>> with collect_excluded_items() as excluded_items:
    ...     record_excluded("windows", "too noisy", 2, 10)
    >>> excluded_items[0].why
    'too noisy'
    """
    excluded_items: list[ExcludedItem] = []
    token = _EXCLUDED_ITEMS.set(excluded_items)
    try:
        yield excluded_items
    finally:
        _EXCLUDED_ITEMS.reset(token)


def record_excluded(
    what: str, why: str, number: int, of: int, *, is_requested: bool = False
) -> None:
    """Record that items of a recording are excluded; the parameters are those of ExcludedItem.

    Outside of :func:`collect_excluded_items`, the exclusion is only logged.
    """
    excluded_items = _EXCLUDED_ITEMS.get()
    if number and excluded_items is not None:
        excluded_items.append(ExcludedItem(what, why, int(number), int(of), is_requested))
    elif number:
        log.info("Excluded: %d of %d %s (%s).", number, of, what, why)


#: Tolerance in seconds for rounded times, and for labels that are slightly shorter than a window.
#: FIF files store times in single precision, with a resolution of 4 ms after nine hours.
ROUNDING = 4e-3


def holds_a_window(duration: float, seconds: float) -> bool:
    """Return whether a segment is at least as long as a window, tolerating rounding errors.

    Parameters
    ----------
    duration : float
        Duration of the segment in seconds.
    seconds : float
        Length of a window in seconds.

    Examples
    --------
    A segment may be shorter than a window by 2 ms, but not by 100 ms:

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
    """Cut a recording into consecutive windows of equal length.

    An incomplete window at the end is dropped. After a gap, the next window starts at the first
    sample after the gap. Windows that overlap an annotation that begins with "BAD" are excluded.

    Parameters
    ----------
    raw : Raw
        Continuous recording.
    seconds : float
        Length of a window in seconds.
    target : int | ndarray | callable
        One target for all windows; an array with the target of each window, including windows that
        will be excluded because of a "BAD" annotation; or a function that returns this array. The
        function receives the start and stop times of all windows in seconds, as two arrays of shape
        (n_windows,). The target -1 marks an unlabeled window.

    Returns
    -------
    EEGWindowsDataset | None
        Windows. None if all segments between gaps are shorter than a window, or if all windows are
        excluded.

    Raises
    ------
    ValueError
        If ``seconds`` is not positive, or so short that a window would contain no sample.

    Examples
    --------
    75 seconds contain two complete windows of 30 seconds:

    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.cutting import fixed_windows
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((1, 7500)), info, verbose="error")
    >>> windows = fixed_windows(raw, seconds=30, target=1)
    >>> len(windows), windows[0][0].shape, windows[0][1]
    (2, (1, 3000), 1)
    """
    length = _n_samples(raw, seconds)
    segments = continuous_segments(raw)
    segment_starts = [np.arange(start, stop - length + 1, length) for start, stop in segments]
    if not sum(map(len, segment_starts)):
        record_excluded("recordings", f"shorter than a window of {seconds:g} s", 1, 1)
        return None
    starts = np.concatenate(segment_starts)
    # Unlike braindecode's create_fixed_length_windows, windows do not span gaps, and each window
    # has its own target.
    start_seconds = starts / raw.info["sfreq"]
    targets = target(start_seconds, start_seconds + seconds) if callable(target) else target
    return _good_windows(raw, np.arange(len(starts)), starts, length, targets)


def _n_samples(raw: mne.io.BaseRaw, seconds: float) -> int:
    """Return the number of samples of a window; raise ValueError if there are none."""
    check_positive(seconds=seconds)
    n_samples = round(seconds * raw.info["sfreq"])
    if not n_samples:
        raise ValueError(
            f"Windows must contain at least one sample, got seconds={seconds} at a sampling rate "
            f"of {raw.info['sfreq']:g} Hz. Use longer windows."
        )
    return n_samples


def _good_windows(
    raw: mne.io.BaseRaw,
    numbers: np.ndarray,
    starts: np.ndarray,
    length: int,
    targets: np.ndarray | Sequence[int] | int,
) -> EEGWindowsDataset | None:
    """Return the windows outside gaps and bad segments; None if there are none."""
    stops = starts + length
    columns = dict(i_window_in_trial=numbers, i_start_in_trial=starts, i_stop_in_trial=stops)
    metadata = pd.DataFrame(dict(columns, target=targets))
    good = are_good(raw, starts, stops)
    reason = 'overlapping a gap or an annotation that begins with "BAD"'
    record_excluded("windows", reason, np.sum(~good), len(good), is_requested=True)
    return EEGWindowsDataset(raw, metadata[good].reset_index(drop=True), {}) if any(good) else None


def event_windows(
    raw: mne.io.BaseRaw, mapping: Mapping[str, int], seconds: float = 30.0
) -> EEGWindowsDataset | None:
    """Cut the annotated segments of a recording into consecutive windows of equal length.

    Each annotation is cut from its onset, and an incomplete window at its end is dropped. Windows
    that overlap a gap, or an annotation that begins with "BAD", are excluded.

    Parameters
    ----------
    raw : Raw
        Continuous recording with annotations.
    mapping : mapping of str to int
        Target for each annotation description. Annotations with other descriptions are ignored.
    seconds : float
        Length of a window in seconds.

    Returns
    -------
    EEGWindowsDataset | None
        Windows. None if no annotation in ``mapping`` is at least as long as a window, or if all
        windows are excluded.

    Examples
    --------
    60 s of N2 and 20 s of N3 are cut into windows of 10 s. The annotation "none" has no target:

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
    length = _n_samples(raw, seconds)
    sfreq, annotations = raw.info["sfreq"], raw.annotations
    # Number of samples of each annotation within the recording.
    first = np.round((annotations.onset - raw.first_time) * sfreq)
    n_samples = np.floor((annotations.duration + max(ROUNDING, 0.5 / sfreq)) * sfreq)
    n_samples = np.minimum(n_samples, raw.n_times - first)
    keep = np.isin(annotations.description, list(mapping)) & (n_samples >= length)
    first, counts = first[keep].astype(int), (n_samples[keep] // length).astype(int)
    numbers = np.concatenate([np.arange(n) for n in counts], dtype=int) if len(counts) else counts
    starts = np.repeat(first, counts) + numbers * length
    targets = np.repeat([mapping[label] for label in annotations.description[keep]], counts)
    windows = _good_windows(raw, numbers, starts, length, targets)
    return None if windows is None else name_classes(windows, mapping)


W = TypeVar("W", EEGWindowsDataset, WindowsDataset)


def name_classes(windows: W, classes: Sequence[str] | Mapping[str, int]) -> W:
    """Store the class names of the targets with the windows, as in braindecode.

    The class names are stored in the entry ``mapping`` of the last element of ``window_kwargs``.
    The estimators read ``class_names_`` from this entry.

    Parameters
    ----------
    windows : EEGWindowsDataset | WindowsDataset
        Windows of a recording; changed in place.
    classes : sequence of str | mapping of str to int
        Class names in the order of the targets 0, 1, ..., or a mapping of class names to targets.
        If empty, nothing is stored.

    Returns
    -------
    EEGWindowsDataset | WindowsDataset
        The same object as ``windows``.

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
    """Split a recording into the segments between its gaps.

    Parameters
    ----------
    raw : Raw
        Continuous recording.

    Returns
    -------
    list of Raw
        Segments, with the measurement info of the recording, but without annotations. If the
        recording has no gaps, the only element is the recording itself, unchanged.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings.cutting import split_at_gaps
    >>> info = mne.create_info(["C3"], 100.0, "eeg")
    >>> segments = [mne.io.RawArray(np.zeros((1, n)), info, verbose="error") for n in (500, 300)]
    >>> raw = mne.concatenate_raws(segments, verbose="error")
    >>> [int(segment.n_times) for segment in split_at_gaps(raw)]
    [500, 300]
    """
    segments = continuous_segments(raw)
    if segments == [(0, raw.n_times)]:
        return [raw]
    pieces = []
    for start, stop in segments:  # raw.copy().crop() would copy the whole recording
        signals = raw.get_data(start=start, stop=stop)
        pieces.append(mne.io.RawArray(signals, raw.info, raw.first_samp + start, verbose="error"))
    return pieces
