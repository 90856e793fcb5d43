"""Find recordings with the same signals, whatever their names, formats and labels.

Two formats of one recording differ by rounding, and a preprocessed version differs from the raw
recording by filters and reference, so signals are compared by their correlation.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from braindecode_pars._common import channel_names, checks
from braindecode_pars.windows.amplitudes import spread_out
from braindecode_pars.windows.table import Windows

#: Maximum number of windows of a recording that are compared, and of channels and bins of each.
N_WINDOWS, N_CHANNELS, N_BINS = 4, 4, 256
#: Duration of a bin in seconds. Its mean is free of line noise of 50 and 60 Hz, which would make
#: all recordings of a laboratory similar. A short window has shorter bins, at least so many.
BIN_SECONDS, MIN_BINS = 0.1, 32
#: Number of channels from which signals are compared with the average as their reference.
MANY_CHANNELS = 8
#: Minimum correlation, and with few values in standard errors. Neighboring values are correlated,
#: so a quarter of them counts as independent.
MIN_CORRELATION, STANDARD_ERRORS, INDEPENDENT = 0.5, 6.0, 0.25
#: Maximum change between bins in median absolute deviations: artifacts at the same place in all
#: recordings, such as pulses of a stimulator, are no sign of duplicates.
MAX_CHANGE = 5.0
#: Maximum size of a frequency in medians of all frequencies, and minimum share of the signal that
#: remains: rhythms with the phase of a stimulus, and noise-free ones, are no sign either.
MAX_SIZE, MIN_REST = 3.0, 0.05
#: Maximum size of rounding errors in a constant channel, relative to its values.
FLAT = 1e-9
#: Number of recordings that are compared with all others at a time.
BLOCK = 256


def find_duplicates(windows: Windows) -> list[tuple[int, int]]:
    """Return pairs of recordings with the same signals.

    At most four windows of each recording are read. Two recordings are duplicates if the signals
    are correlated in more than half of the windows that both have at the same place.

    Parameters
    ----------
    windows : Windows
        Windows of some recordings.

    Returns
    -------
    list of (int, int)
        Rows of ``windows.recordings``, the smaller one first.

    Examples
    --------
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


def warn_of_duplicates(windows: Windows, names: Sequence[str]) -> None:
    """Warn of recordings with the same signals; ``names`` has one for each recording."""
    if pairs := find_duplicates(windows):
        shown = checks.format_list([f"{names[a]} and {names[b]}" for a, b in pairs], most=5)
        checks.warn_user(
            f"The same signals are in two recordings: {shown}. They count twice, and under two "
            "names of subjects they would be in training and test data. Remove the duplicates."
        )


def _compared_windows(windows: Windows) -> Iterator[tuple[int, int, int]]:
    """Yield recording, row and place of the windows to compare.

    The window of place k is the first one that begins after 2^k - 1 lengths of a window, so that
    most places stay where a file is longer, or some windows are left out.
    """
    starts, stops = (windows.table[name].to_numpy() for name in ("start", "stop"))
    for recording, rows in windows.table.groupby("recording").indices.items():
        length = max(1, int((stops - starts)[rows].min()))
        begins = starts[rows] if (starts[rows] >= 0).all() else np.arange(len(rows)) * length
        order = np.argsort(begins, kind="stable")
        n_places = int(np.log2(begins.max() / length + 1)) + 1
        targets = length * (2 ** np.arange(n_places) - 1)
        # If a window is the first one after several targets, the place of the last target counts.
        places = dict(zip(np.searchsorted(begins[order], targets), range(n_places), strict=True))
        for position, place in [*places.items()][-N_WINDOWS:]:
            yield int(recording), int(rows[order[position]]), place


def _compared_electrodes(windows: Windows) -> list[str]:
    """Return electrodes that most recordings have, at equal distances in their order."""
    names = [channel.names for channel in windows.recordings["channels"]]
    counts = Counter(name for chs in names for name in {*map(channel_names.electrode_name, chs)})
    shared = sorted(name for name, n in counts.items() if n == max(counts.values()))
    return [shared[i] for i in spread_out(len(shared), N_CHANNELS)]


def _comparable(windows: Windows, row: int, electrodes: Sequence[str]) -> np.ndarray:
    """Return standardized changes between bins, shape (N_CHANNELS, N_BINS), and zeros elsewhere."""
    window = windows[row].astype(float)
    if len(window) >= MANY_CHANNELS:
        window -= np.median(window, axis=0)  # as the reference, without bad channels
    names = [*map(channel_names.electrode_name, windows.montage_of(row).names)]
    rows = [names.index(name) if name in names else None for name in electrodes]
    if not names:
        rows = spread_out(len(window), N_CHANNELS).tolist()
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
    """Return standardized changes between bins of a channel; zeros if it is a rhythm alone."""
    changes = np.diff(bins, prepend=bins[0])
    limit = MAX_CHANGE * np.median(np.abs(changes))
    spectrum = np.fft.rfft(changes.clip(-limit, limit) * np.hanning(len(bins)))
    sizes = np.abs(spectrum)
    limited = sizes.clip(max=MAX_SIZE * np.median(sizes))
    if np.linalg.norm(limited) <= MIN_REST * np.linalg.norm(sizes):
        return np.zeros(len(bins))
    changes = np.fft.irfft(limited * np.exp(1j * np.angle(spectrum)), len(bins))
    return changes / np.sqrt((changes**2).mean())


def _similar(compared: Mapping[int, np.ndarray]) -> Iterator[tuple[int, int]]:
    """Yield pairs of recordings, in their order, whose windows at one place are correlated."""
    recordings = [*compared]
    values = np.stack([signals.ravel() for signals in compared.values()])
    is_known = (values != 0).astype(np.float32)
    for first in range(0, len(values), BLOCK):
        n = is_known[first : first + BLOCK] @ is_known.T
        correlation = np.abs(values[first : first + BLOCK] @ values.T) / np.maximum(n, 1)
        errors = 1 / np.sqrt(np.maximum(INDEPENDENT * n - 3, 1))  # of Fisher's z
        minimum = np.maximum(MIN_CORRELATION, np.tanh(STANDARD_ERRORS * errors))
        for i, j in np.argwhere((INDEPENDENT * n > 3) & (correlation > minimum)).tolist():
            if first + i < j:
                yield recordings[first + i], recordings[j]
