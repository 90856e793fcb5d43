"""Find duplicate recordings and shared samples from signals, regardless of names and labels.

Duplicate recordings may differ by rounding errors (the same signals in two file formats), or by
filters and reference (a raw and a preprocessed version). Therefore, two recordings are compared by
the correlation of their signals. Two windows share samples if some of their samples are equal up to
a constant factor and an offset.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from scipy.signal import argrelmax
from scipy.spatial import cKDTree

from braindecode_pars._common import channel_names, checks
from braindecode_pars.windows.amplitudes import evenly_spaced
from braindecode_pars.windows.table import Windows

#: Maximum number of windows per recording that are compared.
N_WINDOWS = 4
#: Maximum number of channels per window that are compared.
N_CHANNELS = 4
#: Maximum number of bins per channel that are compared.
N_BINS = 256
#: Duration of a bin in seconds. Averaging over a bin removes line noise (50 or 60 Hz). Otherwise,
#: line noise would make all recordings of a laboratory similar.
BIN_SECONDS = 0.1
#: Minimum number of bins per window. The bins of short windows are shorter than BIN_SECONDS.
MIN_BINS = 32
#: Minimum number of channels for re-referencing windows to the median over channels.
MANY_CHANNELS = 8
#: Minimum absolute correlation between duplicate recordings.
MIN_CORRELATION = 0.5
#: Minimum correlation between duplicate recordings, in standard errors. With only a few values,
#: this minimum is higher than ``MIN_CORRELATION``.
STANDARD_ERRORS = 6.0
#: Proportion of the values that are counted as independent, because adjacent values are correlated.
INDEPENDENT = 0.25
#: Maximum change between adjacent bins, in multiples of the median absolute change. Larger changes
#: are clipped, because artifacts that occur at the same time in all recordings, such as stimulation
#: pulses, do not indicate duplicates.
MAX_CHANGE = 5.0
#: Maximum spectral magnitude at a frequency, in multiples of the median magnitude. Larger
#: magnitudes are clipped, because rhythms that are phase-locked to a stimulus do not indicate
#: duplicates.
MAX_SIZE = 3.0
#: Minimum norm of the clipped spectrum, relative to the norm of the unclipped spectrum. Channels
#: below this minimum, such as a rhythm without noise, are not compared.
MIN_REST = 0.05
#: Maximum range of a flat channel, relative to the largest absolute value of the channel. It is
#: above zero because of rounding errors.
FLAT = 1e-9
#: Number of recordings that are compared with all recordings at once.
BLOCK = 256
#: Number of changes between adjacent samples in a segment that is compared at any shift.
N_CHANGES = 64
#: Number of random projections of a segment.
N_PROJECTIONS = 8
#: Minimum change that is considered a step or a pulse, in multiples of the median absolute change
#: in the segment.
MAX_STEP = 20.0
#: Maximum distance between the normalized projections of two segments with the same samples.
MAX_DISTANCE = 0.01
#: Maximum difference between the samples that two windows share, as a fraction of the changes
#: between adjacent samples. It is above zero because of rounding errors.
MAX_DIFFERENCE = 0.002


def find_duplicates(windows: Windows) -> list[tuple[int, int]]:
    """Find pairs of duplicate recordings.

    At most four windows per recording are read, at the same positions (times) in all recordings.
    Two recordings are duplicates if their windows are correlated (absolute correlation of at
    least 0.5, and at least six standard errors) at more than half of the positions at which both
    recordings have a window.

    Parameters
    ----------
    windows : Windows
        Windows of two or more recordings.

    Returns
    -------
    list of (int, int)
        Pairs of duplicate recordings, as row indices of ``windows.recordings``. In each pair, the
        first index is smaller than the second index.

    Examples
    --------
    The third recording is a copy of the first recording with rounded values:

    >>> import numpy as np
    >>> from braindecode_pars.windows.convert import as_windows
    >>> from braindecode_pars.windows.duplicates import find_duplicates
    >>> first, other = np.random.default_rng(0).normal(size=(2, 3, 4, 1000))
    >>> rounded = first.round(1)
    >>> groups = np.repeat(["P1", "P2", "P3"], 3)
    >>> find_duplicates(as_windows([*first, *other, *rounded], groups=groups))
    [(0, 2)]
    """
    electrodes = _compared_electrodes(windows)
    by_place: dict[int, dict[int, np.ndarray]] = defaultdict(dict)
    for recording, row, place in _compared_windows(windows):
        by_place[place][recording] = _comparable(windows, row, electrodes)
    n_similar = Counter(pair for compared in by_place.values() for pair in _similar(compared))
    return sorted(
        pair
        for pair, n in n_similar.items()
        if 2 * n > sum({*pair} <= compared.keys() for compared in by_place.values())
    )


def find_shared_samples(windows: Windows, n_train: int) -> set[int]:
    """Find test windows that contain samples of training windows.

    The shared samples may be at different positions in the two windows. All windows are read.
    Windows with fewer than 65 samples are not compared.

    Parameters
    ----------
    windows : Windows
        Training windows, followed by test windows.
    n_train : int
        Number of training windows.

    Returns
    -------
    set of int
        Row indices of the test windows that contain samples of training windows.

    Notes
    -----
    Windows are compared by a weighted sum of their channels. A copy is therefore not found if it
    contains different channels, or the same channels in a different order.

    First, segments of 65 samples are compared: one segment at the beginning of each window, and one
    at each local maximum of a filtered signal. The locations of these maxima in the signal do not
    depend on where a window begins. Each segment is described by eight normalized random
    projections of the differences between adjacent samples, so that a constant factor and an offset
    have no effect. If two segments match, all samples that the two windows share are compared.
    Copies with rounding errors above about 0.2 % of the differences between adjacent samples are
    not found.

    Examples
    --------
    The two windows share 400 samples, with a different scale and offset in the second window:

    >>> import numpy as np
    >>> from braindecode_pars.windows.convert import as_windows
    >>> from braindecode_pars.windows.duplicates import find_shared_samples
    >>> recording = np.random.default_rng(0).normal(size=(2, 1000))
    >>> windows = as_windows(np.stack([recording[:, :600], -3 * recording[:, 200:800] + 1]))
    >>> find_shared_samples(windows, n_train=1)
    {1}
    """
    starts, projections = zip(*(_segments(_changes(window)) for window in windows), strict=True)
    rows = np.repeat(np.arange(len(windows)), [*map(len, starts)])
    places, segments = np.concatenate(starts), np.concatenate(projections)
    n = int(np.searchsorted(rows, n_train))  # number of segments of training windows
    tree = cKDTree(segments[:n])
    distances, nearest = tree.query(segments[n:], distance_upper_bound=MAX_DISTANCE)
    shared: set[int] = set()
    for i in np.flatnonzero(distances < np.inf).tolist():
        train, test = int(rows[nearest[i]]), int(rows[n + i])
        shift = int(places[nearest[i]] - places[n + i])
        if test not in shared and _are_equal(windows[train], windows[test], shift):
            shared.add(test)
    return shared


def warn_of_duplicates(windows: Windows, names: Sequence[str]) -> None:
    """Warn of duplicate recordings.

    Parameters
    ----------
    windows : Windows
        Windows of two or more recordings.
    names : sequence of str
        Name of each recording, for the warning.
    """
    if pairs := find_duplicates(windows):
        texts = checks.format_list([f"{names[a]} and {names[b]}" for a, b in pairs], max_items=5)
        checks.warn_user(
            f"Duplicate recordings contain the same signals: {texts}. If they are assigned to "
            "different subjects, training and test data may overlap. Remove the duplicates."
        )


def _compared_windows(windows: Windows) -> Iterator[tuple[int, int, int]]:
    """Yield the windows to compare: their recording, row, and position index.

    The window with position index k is the first window that begins at or after 2^k - 1 window
    lengths. If one of two duplicate files is longer than the other, or if windows are missing in
    one of them, most of the windows at these positions are still the same in both files.
    """
    starts, stops = (windows.table[name].to_numpy() for name in ("start", "stop"))
    for recording, rows in windows.table.groupby("recording").indices.items():
        length = max(1, int((stops - starts)[rows].min()))
        begins = starts[rows] if (starts[rows] >= 0).all() else np.arange(len(rows)) * length
        order = np.argsort(begins, kind="stable")
        n_places = int(np.log2(begins.max() / length + 1)) + 1
        targets = length * (2 ** np.arange(n_places) - 1)
        # If a window is the first window after several targets, it gets the index of the last one.
        places = dict(zip(np.searchsorted(begins[order], targets), range(n_places), strict=True))
        for position, place in [*places.items()][-N_WINDOWS:]:
            yield int(recording), int(rows[order[position]]), place


def _compared_electrodes(windows: Windows) -> list[str]:
    """Return at most four electrodes, chosen from those that occur in the most recordings."""
    names = [channel.names for channel in windows.recordings["channels"]]
    counts = Counter(name for chs in names for name in {*map(channel_names.electrode_name, chs)})
    shared = sorted(name for name, n in counts.items() if n == max(counts.values()))
    return [shared[i] for i in evenly_spaced(len(shared), N_CHANNELS)]


def _comparable(windows: Windows, row: int, electrodes: Sequence[str]) -> np.ndarray:
    """Return standardized changes between the bins of a window, padded with zeros.

    The shape is (N_CHANNELS, N_BINS).
    """
    window = windows[row].astype(float)
    if len(window) >= MANY_CHANNELS:
        window -= np.median(window, axis=0)  # like an average reference, but robust to bad channels
    names = [*map(channel_names.electrode_name, windows.montage_of(row).names)]
    rows = [names.index(name) if name in names else None for name in electrodes]
    if not names:
        rows = evenly_spaced(len(window), N_CHANNELS).tolist()
    n_times = window.shape[1]
    width = max(1, round(min(BIN_SECONDS * (windows.sfreq or np.inf), n_times / MIN_BINS)))
    n_bins = min(n_times // width, N_BINS)
    bins = window[:, : n_bins * width].reshape(len(window), n_bins, width).mean(axis=2)
    values = np.zeros((N_CHANNELS, N_BINS), np.float32)
    for i, channel in enumerate(rows):
        if channel is not None and np.ptp(bins[channel]) > FLAT * np.abs(window[channel]).max():
            values[i, :n_bins] = _without_artifacts(bins[channel])
    return values


def _without_artifacts(bins: np.ndarray) -> np.ndarray:
    """Return standardized changes between bins of a channel, with artifacts and rhythms clipped.

    If the channel contains only a rhythm, all returned values are zero.
    """
    changes = np.diff(bins, prepend=bins[0])
    limit = MAX_CHANGE * np.median(np.abs(changes))
    spectrum = np.fft.rfft(changes.clip(-limit, limit) * np.hanning(len(bins)))
    magnitudes = np.abs(spectrum)
    clipped = magnitudes.clip(max=MAX_SIZE * np.median(magnitudes))
    if np.linalg.norm(clipped) <= MIN_REST * np.linalg.norm(magnitudes):
        return np.zeros(len(bins))
    changes = np.fft.irfft(clipped * np.exp(1j * np.angle(spectrum)), len(bins))
    return changes / np.sqrt((changes**2).mean())


def _similar(compared: Mapping[int, np.ndarray]) -> Iterator[tuple[int, int]]:
    """Yield pairs of recordings whose windows are correlated.

    ``compared`` contains the values of one window per recording, all at the same position.
    """
    recordings = [*compared]
    values = np.stack([signals.ravel() for signals in compared.values()])
    is_known = (values != 0).astype(np.float32)
    for first in range(0, len(values), BLOCK):
        n = is_known[first : first + BLOCK] @ is_known.T
        correlation = np.abs(values[first : first + BLOCK] @ values.T) / np.maximum(n, 1)
        errors = 1 / np.sqrt(np.maximum(INDEPENDENT * n - 3, 1))  # standard errors of Fisher's z
        minimum = np.maximum(MIN_CORRELATION, np.tanh(STANDARD_ERRORS * errors))
        for i, j in np.argwhere((INDEPENDENT * n > 3) & (correlation > minimum)).tolist():
            if first + i < j:
                yield recordings[first + i], recordings[j]


def _changes(window: np.ndarray) -> np.ndarray:
    """Return the differences between adjacent samples of a weighted sum of the channels."""
    return np.diff(np.arange(1, len(window) + 1) @ window.astype(float))


def _segments(changes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first sample of each segment, and the random projections of the segments.

    The projections have shape (n_segments, N_PROJECTIONS). Segments in which most samples do not
    change, and segments with a step or a pulse, are omitted.
    """
    if len(changes) < N_CHANGES:
        return np.empty(0, int), np.empty((0, N_PROJECTIONS))
    kernels = np.random.default_rng(0).normal(size=(N_PROJECTIONS, N_CHANGES))
    filtered = np.abs(np.correlate(changes, kernels[0], "valid"))
    starts = np.union1d([0], argrelmax(filtered, order=N_CHANGES // 2)[0])
    segments = changes[starts[:, None] + np.arange(N_CHANGES)]
    sizes = np.abs(segments)
    is_usable = sizes.max(axis=1) < MAX_STEP * np.median(sizes, axis=1)
    projections = segments[is_usable] @ kernels.T
    projections *= np.sign(projections[:, :1])  # so that they are equal if the signal is inverted
    return starts[is_usable], projections / np.linalg.norm(projections, axis=1, keepdims=True)


def _are_equal(window: np.ndarray, other_window: np.ndarray, shift: int) -> bool:
    """Return whether two windows have equal changes between shared samples, up to a factor.

    Median differences are compared, so that pulses that are equal in all windows have no effect.
    """
    first = _changes(window)[max(0, shift) :]
    other = _changes(other_window)[max(0, -shift) :]
    n = min(len(first), len(other))
    first, other = first[:n], other[:n]
    difference = first - (first @ other) / (other @ other) * other
    return bool(np.median(np.abs(difference)) < MAX_DIFFERENCE * np.median(np.abs(first)))
