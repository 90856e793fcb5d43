"""Check the amplitudes of windows: implausible values, flat channels, and unit mismatches.

Each check reads only a limited number of windows, which are evenly spaced over the data.
"""

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from braindecode_pars._common import findings
from braindecode_pars._common.checks import format_list
from braindecode_pars._common.findings import Finding
from braindecode_pars.windows.preprocessing import agreed
from braindecode_pars.windows.table import Windows

#: Minimum plausible standard deviation of a channel within a window. In volts, EEG has a standard
#: deviation of about 1e-6 to 1e-3. Below this minimum, instance normalization removes the signal.
LOWEST = 1e-9
#: Maximum plausible standard deviation of a channel within a window. In microvolts, EEG has a
#: standard deviation of about 1 to 1000. Standardized signals (standard deviation 1) are also
#: within the plausible range.
HIGHEST = 1e6
#: Maximum accepted absolute mean of a channel within a window, in standard deviations.
LARGEST_OFFSET = 1e3
#: Proportion of windows with implausible amplitudes from which a finding is reported. A smaller
#: proportion is accepted, because electrodes may be off temporarily.
MAX_IMPLAUSIBLE = 0.05

#: Maximum number of windows whose amplitude is checked.
N_WINDOWS = 32
#: Typical standard deviation of EEG, in volts.
_TYPICAL_AMPLITUDE = 2e-5
#: Minimum and maximum plausible value of the median standard deviation, in volts. Used if the unit
#: of the windows is known.
PLAUSIBLE_VOLTS = (1e-7, 2e-3)


def amplitude_problem(windows: Iterable[Any], scale: float | None = None) -> Finding | None:
    """Check whether amplitudes and offsets are plausible for EEG, and return the first problem.

    Parameters
    ----------
    windows : iterable of ndarray, shape (n_chans, n_times)
        Windows to check. Flat channels are ignored.
    scale : float | None
        Factor that converts volts to the unit of the windows. If None, the unit is unknown.

    Returns
    -------
    Finding | None
        The problem, as a :class:`~braindecode_pars._common.findings.Finding`. None if amplitudes
        and offsets are plausible.
    """
    # For each window, medians over the channels that are not flat: the standard deviation, and the
    # absolute mean divided by the standard deviation.
    statistics = []
    for window in windows:
        window = np.asarray(window, dtype=float)
        varies = np.ptp(window, axis=1) > 0 if window.size else np.zeros(len(window), bool)
        if varies.any():
            deviation, mean = window[varies].std(axis=1), window[varies].mean(axis=1)
            offset = np.abs(mean) / deviation
            statistics.append((median(deviation.tolist()), median(offset.tolist())))
        else:  # all channels are flat: single precision may have removed a signal on an offset
            statistics.append((math.nan, math.inf if window.any() else math.nan))
    columns = np.array(statistics).reshape(-1, 2).T
    deviations, offsets = (column[~np.isnan(column)] for column in columns)
    implausible = deviations[(deviations < LOWEST) | (deviations > HIGHEST)]
    if len(implausible) and len(implausible) >= MAX_IMPLAUSIBLE * len(deviations):
        deviation = float(np.median(implausible))
        power = 3 * round(math.log10(_TYPICAL_AMPLITUDE / deviation) / 3)
        values = dict(n=len(implausible), n_windows=len(deviations))
        return Finding("implausible_unit", values | dict(deviation=deviation, power=power))
    volts = float(np.median(deviations)) / scale if scale and len(deviations) else None
    if volts is not None and (problem := _problem_in_volts(volts)):
        return problem
    large_offsets = offsets[offsets > LARGEST_OFFSET]
    if len(large_offsets) and len(large_offsets) >= MAX_IMPLAUSIBLE * len(offsets):
        return Finding("large_offset", dict(ratio=float(np.median(large_offsets))))
    return None


def _problem_in_volts(amplitude: float) -> Finding | None:
    is_plausible = PLAUSIBLE_VOLTS[0] <= amplitude <= PLAUSIBLE_VOLTS[1]
    return None if is_plausible else Finding("implausible_volts", dict(volts=amplitude))


#: Maximum standard deviation of a flat channel, relative to the largest standard deviation of any
#: channel in the window. It is above zero, because filtering a constant leaves rounding errors.
_MAX_FLAT_DEVIATION = 1e-9
#: Proportion of windows with flat channels from which a warning is issued.
_MIN_FLAT_PROPORTION = 0.25


def flat_channels(windows: np.ndarray) -> np.ndarray:
    """Return which channels of each window are flat, that is, constant within the window.

    Parameters
    ----------
    windows : ndarray, shape (..., n_chans, n_times)
        Windows.

    Returns
    -------
    ndarray of bool, shape (..., n_chans)
        True for flat channels: channels that are zero or another constant in the whole window.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.windows.amplitudes import flat_channels
    >>> flat_channels(np.array([[1e-5, 3e-5], [2e-5, 2e-5]])).tolist()
    [False, True]
    """
    deviation = windows.astype(float).std(axis=-1)
    # The standard deviation of a constant may be above zero, because its mean is rounded.
    is_constant = np.ptp(windows, axis=-1) == 0
    return is_constant | (deviation <= _MAX_FLAT_DEVIATION * deviation.max(axis=-1, keepdims=True))


def warn_of_flat_channels(is_flat: Mapping[int, np.ndarray]) -> None:
    """Warn if at least a quarter of the checked windows have flat channels.

    Parameters
    ----------
    is_flat : mapping of int to ndarray of bool, shape (n_chans,)
        Result of :func:`flat_channels` for each checked window, by the index of the window.
    """
    flat_rows = {i: np.flatnonzero(rows) for i, rows in is_flat.items() if rows.any()}
    if len(flat_rows) and len(flat_rows) >= _MIN_FLAT_PROPORTION * len(is_flat):
        (i, rows), *_ = flat_rows.items()
        values = dict(n=len(flat_rows), n_windows=len(is_flat), rows=rows.tolist(), window=i)
        findings.warn(Finding("flat_windows", values))


def warn_of_amplitudes(windows: Windows) -> None:
    """Check the amplitudes of at most 32 windows, and warn if they are implausible.

    In windows of a SignalStore (recordings stored on disk by this package), only flat channels are
    checked, because amplitudes were checked when the store was written.

    Warns
    -----
    UserWarning
        If the amplitudes are implausible for EEG both in volts and in microvolts, or if channels
        are flat.
    """
    is_stored = windows.shapes is not None
    positions = evenly_spaced(len(windows), N_WINDOWS)
    checked_windows = dict(zip(positions.tolist(), windows.read(positions), strict=True))
    scale = agreed(windows.recordings["preprocessing"]).scale
    if not is_stored and (problem := amplitude_problem(checked_windows.values(), scale)):
        findings.warn(problem)
    else:
        warn_of_flat_channels({i: flat_channels(window) for i, window in checked_windows.items()})


#: Maximum number of windows from which the range of amplitudes is estimated.
N_WINDOWS_IN_RANGE = 256
#: Percentiles of the amplitudes at the lower and upper end of an :class:`AmplitudeRange`.
_PERCENTILES = (5, 95)
#: Minimum factor between two ranges of amplitudes for a warning. It is larger than three, because
#: amplitudes of different subjects and amplifiers differ by a factor of about three.
MIN_MISMATCH_FACTOR = 5.0


@dataclass(frozen=True)
class AmplitudeRange:
    """Range of the amplitudes of channels in the training data, in the unit of the windows.

    The amplitude of a channel is its standard deviation within a window.

    Attributes
    ----------
    low, high : float
        5th and 95th percentile of the amplitudes over windows and channels.

    Examples
    --------
    >>> from braindecode_pars.windows.amplitudes import AmplitudeRange
    >>> AmplitudeRange(low=5e-6, high=5e-5).times_outside(5e-3)
    100.0
    """

    low: float
    high: float

    def times_outside(self, amplitude: float) -> float:
        """Return the factor between an amplitude and the nearest end of the range; 1 if inside."""
        if amplitude <= 0:
            return float("inf")
        return max(1.0, amplitude / self.high, self.low / amplitude)


def amplitude_range(windows: Windows, *, compare: bool = False) -> AmplitudeRange | None:
    """Estimate the range of channel amplitudes from at most 256 evenly spaced windows.

    Parameters
    ----------
    windows : Windows
        Training windows.
    compare : bool
        Whether to also compare recordings and channels with each other, and warn of outlying
        amplitudes, see :func:`warn_of_amplitude_outliers`.

    Returns
    -------
    AmplitudeRange | None
        Range of the amplitudes of channels that are not flat. None if all channels are flat.
    """
    positions = evenly_spaced(len(windows), N_WINDOWS_IN_RANGE)
    blocks = np.split(positions, range(N_WINDOWS, len(positions), N_WINDOWS))
    log_amplitudes = {
        int(i): log_amplitudes_of(window, both=compare)
        for block in blocks
        for i, window in zip(block, windows.read(block), strict=True)
    }
    if compare:
        warn_of_amplitude_outliers(windows, log_amplitudes)
    amplitudes = 10 ** np.concatenate([values[0] for values in log_amplitudes.values()])
    amplitudes = amplitudes[~np.isnan(amplitudes)]
    if not len(amplitudes):
        return None
    return AmplitudeRange(*np.percentile(amplitudes, _PERCENTILES).tolist())


def log_amplitudes_of(window: np.ndarray, *, both: bool = True) -> np.ndarray:
    """Return the decimal logarithms of the amplitudes of the channels of a window.

    Parameters
    ----------
    window : ndarray, shape (n_chans, n_times)
        Window.
    both : bool
        Whether to return both rows that are described under Returns. If False, only the first row
        is returned; the second row takes most of the computing time.

    Returns
    -------
    ndarray, shape (1, n_chans) or (2, n_chans)
        Log amplitudes; NaN for flat channels. The first row is computed from the unchanged signals.
        The second row is computed after subtracting the median over channels, so that it does not
        depend on the reference. (With an average reference instead, a channel with a wrong unit
        would affect the signals of all channels.)
    """
    window = window.astype(float)
    rows = np.stack([window, window - np.median(window, axis=0)]) if both else window[None]
    flat = flat_channels(rows)
    return np.where(flat, np.nan, np.log10(np.where(flat, 1.0, rows.std(axis=-1))))


#: A recording is an outlier if its amplitude differs from the median of all recordings by more than
#: this factor.
_RECORDING_FACTOR = 20.0
#: A channel is an outlier if its amplitude differs from the median of the channels of its recording
#: by more than this factor.
_CHANNEL_FACTOR = 30.0
#: Key in the description of a recording. The entry contains the names of the channels that are flat
#: or clipped in a large part of the recording, separated by commas.
FLAT_CLIPPED_CHANNELS = "flat_clipped_channels"


def find_outlier_recordings(
    log_amplitudes: pd.Series, factor: float = _RECORDING_FACTOR
) -> pd.Index:
    """Return the recordings whose amplitude differs from the median by more than a factor.

    Parameters
    ----------
    log_amplitudes : Series
        Decimal logarithm of the amplitude of each recording; minus infinity if all channels of the
        recording are flat.
    factor : float
        Maximum accepted factor between the amplitude of a recording and the median amplitude of
        all recordings that are not flat.

    Returns
    -------
    pandas.Index
        Labels of the outlier recordings.

    Examples
    --------
    >>> import pandas as pd
    >>> from braindecode_pars.windows.amplitudes import find_outlier_recordings
    >>> find_outlier_recordings(pd.Series({"a": -5.0, "b": -5.3, "c": -2.0})).tolist()
    ['c']
    """
    return log_amplitudes.index[_is_outlier(log_amplitudes.to_numpy(), factor)]


def _is_outlier(log_amplitudes: np.ndarray, factor: float) -> np.ndarray:
    """Return which amplitudes differ from the median finite amplitude by more than ``factor``."""
    median = _median(log_amplitudes[np.isfinite(log_amplitudes)])
    return np.abs(log_amplitudes - median) > np.log10(factor)


def _median(values: np.ndarray, axis: int = 0) -> np.ndarray:
    """Return medians, ignoring NaN; NaN if all values are NaN."""
    if values.size and not np.isnan(values).any():  # np.median is faster than np.nanmedian
        return np.median(values, axis=axis)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # issued if all values are NaN
        return np.nanmedian(values, axis=axis)


def find_outlier_channels(
    log_amplitudes: Sequence[np.ndarray], ch_names: Sequence[str]
) -> tuple[float, list[str]]:
    """Return the log amplitude of a recording, and the names of its outlier channels.

    Parameters
    ----------
    log_amplitudes : sequence of ndarray, shape (2, n_chans)
        Result of :func:`log_amplitudes_of` for some windows of the recording.
    ch_names : sequence of str
        Names of the channels. If empty, channels are named "row 0", "row 1", ...

    Returns
    -------
    log_amplitude : float
        Decimal logarithm of the median amplitude of the recording.
    outliers : list of str
        Names of the channels whose amplitude differs from the median of all channels by more than
        a factor of 30.
    """
    recorded, referenced = np.stack(log_amplitudes, axis=1)
    log_amplitude = float(_median(_median(recorded, axis=1)))
    if log_amplitude < np.log10(LOWEST):  # differences between channels are then rounding errors
        return log_amplitude, []
    is_flat = np.isnan(recorded)
    recorded = np.where(is_flat, -np.inf, recorded)[~is_flat.all(axis=1)]
    outliers = (
        np.flatnonzero(_is_outlier(_median(table), _CHANNEL_FACTOR)).tolist()
        for table in (recorded, referenced)
    )
    rows = sorted(set().union(*outliers))
    return log_amplitude, [ch_names[i] if ch_names else f"row {i}" for i in rows]


def outlier_finding(recordings: list[str], n_recordings: int) -> Finding:
    """Return the finding about ``recordings``, whose amplitudes are outliers."""
    values = dict(recordings=recordings, n_recordings=n_recordings, factor=_RECORDING_FACTOR)
    return Finding("outlier_recordings", values)


def outlier_channels_finding(channels: Iterable[tuple[str, list[str]]]) -> Finding:
    """Return the finding about outlier channels.

    ``channels`` contains pairs of the name of a recording and the names of its outlier channels.
    """
    texts = [f"{format_list(names)} of {recording}" for recording, names in channels]
    return Finding("outlier_channels", dict(channels=texts, factor=_CHANNEL_FACTOR))


def warn_of_amplitude_outliers(
    windows: Windows, log_amplitudes: Mapping[int, np.ndarray] | None = None
) -> None:
    """Warn of recordings and channels with outlying amplitudes, see :func:`find_outliers`."""
    for finding in find_outliers(windows, log_amplitudes):
        findings.warn(finding)


def find_outliers(
    windows: Windows, log_amplitudes: Mapping[int, np.ndarray] | None = None
) -> Iterator[Finding]:
    """Find recordings and channels with outlying amplitudes, which suggest a wrong unit.

    Parameters
    ----------
    windows : Windows
        Windows of one or more recordings.
    log_amplitudes : mapping of int to ndarray | None
        Result of :func:`log_amplitudes_of` for windows that were already read, by the index of the
        window. If None, five windows per recording are read.

    Yields
    ------
    Finding
        At most one finding for each of these problems:

        - The unit is known, but the median amplitude in volts is implausible for EEG. (This is only
          checked if ``log_amplitudes`` is None.)
        - The amplitudes of some recordings differ from the median of all recordings by more than a
          factor of 20.
        - Some channels are flat in the windows, were flat or clipped in the file, or have an
          amplitude that differs from the median of the channels of the same recording by more than
          a factor of 30.
    """
    is_fit = log_amplitudes is not None
    recordings = windows.table["recording"].to_numpy()
    if log_amplitudes is None:
        rows_by_recording = windows.table.groupby("recording").indices.values()
        chosen = [int(i) for rows in rows_by_recording for i in rows[evenly_spaced(len(rows), 5)]]
        log_amplitudes = {i: log_amplitudes_of(windows[i]) for i in chosen}
    by_recording: dict[int, list[np.ndarray]] = {}
    for i, window_amplitudes in log_amplitudes.items():
        by_recording.setdefault(int(recordings[i]), []).append(window_amplitudes)
    names: list[str] = []
    amplitudes: list[float] = []
    outlier_channels: list[tuple[str, list[str]]] = []
    for number, values in by_recording.items():
        row = windows.recordings.loc[number]
        description = getattr(getattr(row["reader"], "source", None), "description", None)
        entries = {} if description is None else description
        name = entries.get("file") or f"recording {number + 1} (subject {row['subject']})"
        amplitude, outliers = find_outlier_channels(values, row["channels"].names)
        names.append(name)
        amplitudes.append(amplitude)
        flat_clipped = filter(None, entries.get(FLAT_CLIPPED_CHANNELS, "").split(", "))
        if channels := [*dict.fromkeys([*flat_clipped, *outliers])]:
            outlier_channels.append((name, channels))
    # NaN means that all channels are flat.
    table = pd.Series(amplitudes, names, dtype=float).fillna(-np.inf)
    scale = agreed(windows.recordings["preprocessing"]).scale
    varying = table[np.isfinite(table)]
    volts = 10 ** varying.median() / scale if scale and len(varying) else _TYPICAL_AMPLITUDE
    # fit issues the warning about implausible amplitudes separately.
    if not is_fit and (problem := _problem_in_volts(volts)):
        yield problem
    if len(outlier_recordings := find_outlier_recordings(table)):
        yield outlier_finding(outlier_recordings.tolist(), len(table))
    if outlier_channels:
        yield outlier_channels_finding(outlier_channels)


def warn_of_unit_mismatch(windows: Windows, training_range: AmplitudeRange | None) -> None:
    """Warn if the amplitudes of an array are far outside the range of the training data.

    Only arrays are checked. Datasets and recordings are in volts and would have to be read twice.

    Parameters
    ----------
    windows : Windows
        Windows to predict.
    training_range : AmplitudeRange | None
        Range of the amplitudes of the training data. If None, nothing is checked.

    Warns
    -----
    UserWarning
        If the amplitude ranges of the windows and of the training data do not overlap, and are
        separated by a factor of five or more.
    """
    are_arrays = all(
        isinstance(getattr(reader, "source", None), np.ndarray)
        for reader in windows.recordings["reader"]
    )
    if (expected := training_range) is None or not are_arrays:
        return
    positions = evenly_spaced(len(windows), N_WINDOWS_IN_RANGE // 4)
    if (actual := amplitude_range(windows.take(positions))) is None:
        return
    factor = max(expected.low / actual.high, actual.low / expected.high)
    if factor >= MIN_MISMATCH_FACTOR:
        values = dict(low=actual.low, high=actual.high)
        values |= dict(trained_low=expected.low, trained_high=expected.high)
        findings.warn(Finding("other_unit", values))


def evenly_spaced(n: int, max_size: int) -> np.ndarray:
    """Return at most ``max_size`` evenly spaced integers from 0 to ``n - 1``.

    Examples
    --------
    >>> from braindecode_pars.windows.amplitudes import evenly_spaced
    >>> evenly_spaced(3, 256).tolist(), evenly_spaced(1000, 4).tolist()
    ([0, 1, 2], [0, 333, 666, 999])
    """
    return np.linspace(0, n - 1, min(n, max_size)).round().astype(int)
