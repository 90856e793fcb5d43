"""Amplitudes of windows: those that EEG cannot have, and the range that a model was trained on.

A few windows at equal distances stand for the whole data.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from braindecode_pars._common.checks import format_list, warn_user
from braindecode_pars.windows.preprocessing import agreed
from braindecode_pars.windows.table import Windows

#: Accepted standard deviations. EEG has about 1e-6 to 1e-3 in volts and 1 to 1000 in microvolts.
#: Below, the instance norm loses the signal; standardized signals (1) are within the range, too.
LOWEST, HIGHEST = 1e-9, 1e6
#: Largest accepted offset, in standard deviations.
LARGEST_OFFSET = 1e3
#: Share of windows that is accepted: electrodes fall off now and then.
SHARE = 0.05

#: Maximum number of windows whose amplitude is checked.
N_WINDOWS = 32
_USUAL = 2e-5  # volts
#: Accepted median of the standard deviations where they are known to be in volts.
IN_VOLTS = (1e-7, 2e-3)


def amplitude_problem(windows: Iterable[Any], scale: float | None = None) -> str | None:
    """Return a sentence about amplitudes that EEG cannot have; None if all is well.

    Parameters
    ----------
    windows : iterable of ndarray, shape (n_chans, n_times)
        Windows to look at. Channels without any change are ignored.
    scale : float | None
        Factor from volts to the unit of the windows; None if it is unknown.

    Returns
    -------
    str | None
        What was found, what EEG has, and what to do.
    """
    # Medians over varying channels: the standard deviation, and the offset relative to it.
    levels = []
    for window in windows:
        window = np.asarray(window, dtype=float)
        changes = np.ptp(window, axis=1) > 0 if window.size else np.zeros(len(window), bool)
        if changes.any():
            spread, mean = window[changes].std(axis=1), window[changes].mean(axis=1)
            levels.append((np.median(spread), np.median(np.abs(mean) / spread)))
        else:  # of a constant, the signal is smaller than single precision on this offset
            levels.append((math.nan, math.inf if window.any() else math.nan))
    columns = np.array(levels).reshape(-1, 2).T
    spreads, offsets = (column[~np.isnan(column)] for column in columns)
    odd = spreads[(spreads < LOWEST) | (spreads > HIGHEST)]
    if len(odd) and len(odd) >= SHARE * len(spreads):
        spread, n = float(np.median(odd)), len(spreads)
        some = "" if len(odd) == n else f" in {len(odd)} of {n} windows looked at"
        power = 3 * round(math.log10(_USUAL / spread) / 3)
        return (
            f"The standard deviation of the signal is {spread:.1g}{some}; EEG has about 1e-6 to "
            f"1e-3 in volts and 1 to 1000 in microvolts. Scaled twice? Multiply it by 1e{power}."
        )
    volts = float(np.median(spreads)) / scale if scale and len(spreads) else _USUAL
    if problem := _problem_in_volts(volts):
        return problem
    large = offsets[offsets > LARGEST_OFFSET]
    if len(large) and len(large) >= SHARE * len(offsets):
        times = float(np.median(large))
        ratio = f"{times:.2g} times" if times < 1e7 else "more than 1e7 times"
        return (
            f"The mean of the signal is {ratio} its standard deviation, and models may see the "
            "offset alone; high-pass filter the recordings, for example at 0.5 Hz."
        )
    return None


def _problem_in_volts(amplitude: float) -> str | None:
    if IN_VOLTS[0] <= amplitude <= IN_VOLTS[1]:
        return None
    return (
        f"The median standard deviation of the signal is {amplitude:.1g} V; EEG has about 1e-6 to "
        "1e-3 V. The unit or the gain in the files may be wrong: correct it there."
    )


#: Standard deviation below which a channel is flat, relative to the largest one of the window:
#: filters leave rounding errors of a constant.
_NO_CHANGE = 1e-9
#: Smallest share of windows with a flat channel that is warned of.
_FLAT_SHARE = 0.25


def flat_channels(windows: np.ndarray) -> np.ndarray:
    """Return which channels do not change within a window.

    Parameters
    ----------
    windows : ndarray, shape (..., n_chans, n_times)
        Windows.

    Returns
    -------
    ndarray of bool, shape (..., n_chans)
        True for zeros and other constants.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.windows.amplitudes import flat_channels
    >>> flat_channels(np.array([[1e-5, 3e-5], [2e-5, 2e-5]])).tolist()
    [False, True]
    """
    spread = windows.astype(float).std(axis=-1)
    constant = np.ptp(windows, axis=-1) == 0  # its mean may be rounded
    return constant | (spread <= _NO_CHANGE * spread.max(axis=-1, keepdims=True))


def warn_of_flat_channels(flat: Mapping[int, np.ndarray]) -> None:
    """Warn when a quarter of windows have a :func:`flat channel <flat_channels>`, by number."""
    flat_rows = {i: np.flatnonzero(rows) for i, rows in flat.items() if rows.any()}
    if len(flat_rows) and len(flat_rows) >= _FLAT_SHARE * len(flat):
        (i, rows), *_ = flat_rows.items()
        warn_user(
            f"{len(flat_rows)} of {len(flat)} windows looked at have channels that do not change, "
            f"such as row {format_list([*map(str, rows)], most=3)} of window {i}: zeros or a constant. "
            "Mark an electrode that is off in info['bads'], or leave it out with channels=."
        )


def warn_of_amplitudes(windows: Windows) -> None:
    """Look at some windows; the amplitudes of a store were looked at when it was written.

    Warns
    -----
    UserWarning
        When their amplitudes are not those of EEG in any usual unit, or channels are flat.
    """
    is_stored = windows.shapes is not None
    looked_at = {int(i): windows[int(i)] for i in spread_out(len(windows), N_WINDOWS)}
    scale = agreed(windows.recordings["preprocessing"].tolist()).scale
    if not is_stored and (problem := amplitude_problem(looked_at.values(), scale)):
        warn_user(problem)
    else:
        warn_of_flat_channels({i: flat_channels(window) for i, window in looked_at.items()})


#: Maximum number of windows from which the range of amplitudes is estimated.
N_WINDOWS_IN_RANGE = 256
_PERCENTILES = (5, 95)
#: Factor outside of the usual range; subjects and amplifiers differ by a factor of about three.
FAR = 5.0


@dataclass(frozen=True)
class AmplitudeRange:
    """Usual amplitudes of channels, in the unit of the windows.

    The amplitude of a channel is its standard deviation within a window.

    Attributes
    ----------
    low, high : float
        5th and 95th percentile over the windows and channels.

    Examples
    --------
    >>> from braindecode_pars.windows.amplitudes import AmplitudeRange
    >>> AmplitudeRange(low=5e-6, high=5e-5).times_outside(5e-3)
    100.0
    """

    low: float
    high: float

    def times_outside(self, amplitude: float) -> float:
        """Return the factor by which an amplitude is outside of the range; 1 within it."""
        if amplitude <= 0:
            return float("inf")
        return max(1.0, amplitude / self.high, self.low / amplitude)


def amplitude_range(windows: Windows, *, compare: bool = False) -> AmplitudeRange | None:
    """Return the range of amplitudes of windows; at most 256 at equal distances are read.

    Parameters
    ----------
    windows : Windows
        Training windows.
    compare : bool
        Whether to warn of recordings far from the others, as :func:`warn_of_other_units` does.

    Returns
    -------
    AmplitudeRange | None
        None when all channels are flat; flat ones are left out.
    """
    numbers = spread_out(len(windows), N_WINDOWS_IN_RANGE).tolist()
    levels = {i: levels_of(windows[i], both=compare) for i in numbers}
    if compare:
        warn_of_other_units(windows, levels)
    amplitudes = 10 ** np.concatenate([window_levels[0] for window_levels in levels.values()])
    amplitudes = amplitudes[~np.isnan(amplitudes)]
    if not len(amplitudes):
        return None
    return AmplitudeRange(*np.percentile(amplitudes, _PERCENTILES).tolist())


def levels_of(window: np.ndarray, *, both: bool = True) -> np.ndarray:
    """Return decimal logarithms of the amplitudes of channels, NaN of a flat one, in two rows.

    The second is without the median of the channels, and so does not depend on the reference: an
    average hands a channel of another unit on to all. Its median takes most of the time, so it is
    left out unless ``both``.
    """
    window = window.astype(float)
    rows = np.stack([window, window - np.median(window, axis=0)]) if both else window[None]
    flat = flat_channels(rows)
    return np.where(flat, np.nan, np.log10(np.where(flat, 1.0, rows.std(axis=-1))))


#: Factor from the middle of all recordings, or of a recording's channels, from which the unit of
#: one may be wrong.
_OTHER_UNIT, _OTHER_CHANNEL = 20.0, 30.0
#: Entry of a description: channels that are flat or clipped in much of a recording, with commas.
HELD = "flat_clipped_channels"
OTHER_CHANNELS = (
    f"The amplitude of channels is more than {_OTHER_CHANNEL:g} times larger or smaller than that "
    "of the recording's other channels, or they are flat or clipped: {}. Their unit may be wrong, "
    "or an electrode was off. Correct it in the file, or mark the channel as bad there."
)


def is_outlier(levels: pd.Series, times: float = _OTHER_UNIT) -> pd.Index:
    """Return which recordings are far from the others; levels are decimal logarithms.

    Examples
    --------
    >>> import pandas as pd
    >>> from braindecode_pars.windows.amplitudes import is_outlier
    >>> is_outlier(pd.Series({"a": -5.0, "b": -5.3, "c": -2.0})).tolist()
    ['c']
    """
    middle = levels[np.isfinite(levels)].median()  # a flat channel is minus infinity
    return levels.index[(levels - middle).abs() > np.log10(times)]


def find_outlier_channels(
    levels: Sequence[np.ndarray], ch_names: Sequence[str]
) -> tuple[float, list[str]]:
    """Return the level of a recording by its windows, and its channels far from the others."""
    plain, rest = (pd.DataFrame([values[kind] for values in levels]) for kind in (0, 1))
    level = float(plain.median(axis=1).median())
    if level < np.log10(LOWEST):  # the rounding in a file makes such channels differ
        return level, []
    plain = plain.dropna(how="all").fillna(-np.inf)
    far = (is_outlier(table.median(), _OTHER_CHANNEL) for table in (plain, rest))
    rows = sorted(set().union(*far))
    return level, [ch_names[i] if ch_names else f"row {i}" for i in rows]


def other_units_text(names: list[str], of: int) -> str:
    """Return a sentence about recordings, of so many, whose amplitude is far from the others."""
    return (
        f"The amplitude of {len(names)} of {of} recordings is more than {_OTHER_UNIT:g} times "
        f"larger or smaller than that of the others: {format_list(names, most=5)}. Their unit may be "
        "wrong. Correct it in the file, or leave them out."
    )


def warn_of_other_units(windows: Windows, read: Mapping[int, np.ndarray] | None = None) -> None:
    """Compare the amplitudes of recordings, and of the channels within each.

    A recording that was named when it was loaded is not named again.

    Parameters
    ----------
    windows : Windows
        Windows of recordings.
    read : mapping of int to ndarray | None
        :func:`Levels <levels_of>` of windows that were read already, by number. Without them, five
        windows of each recording are read.

    Warns
    -----
    UserWarning
        When the amplitude of recordings is 20 times larger or smaller than that of the others; or
        that of channels, 30 times, or when a channel is flat, or was in its file.
    """
    by_recording = _levels_by_recording(windows, read)
    log_amplitude: dict[int, float] = {}
    odd_channels: dict[int, list[str]] = {}
    names: dict[int, str] = {}
    sources: dict[int, Any] = {}
    for number, recording_levels in by_recording.items():
        row = windows.recordings.loc[number]
        log_amplitude[number], odd = find_outlier_channels(recording_levels, row["channels"].names)
        source = getattr(row["reader"], "source", None)
        if getattr(source, "has_doubtful_unit", False):
            continue
        description = getattr(source, "description", None)
        entries = {} if description is None else description
        names[number] = entries.get("file") or f"recording {number + 1} (subject {row['subject']})"
        held = entries[HELD].split(", ") if HELD in entries else []
        if channels := [*dict.fromkeys([*held, *odd])]:
            odd_channels[number] = channels
        sources[number] = source
    level = pd.Series(log_amplitude, dtype=float).fillna(-np.inf)  # all channels are flat
    scale = agreed(windows.recordings["preprocessing"].tolist()).scale
    varying = level[np.isfinite(level)]
    volts = 10 ** varying.median() / scale if scale and len(varying) else _USUAL
    if read is None and (problem := _problem_in_volts(volts)):  # fit says it anyway
        warn_user(problem)
    if far := [number for number in is_outlier(level) if number in names]:
        warn_user(other_units_text([names[number] for number in far], len(log_amplitude)))
    if odd_channels:
        texts = [f"{format_list(channels)} of {names[n]}" for n, channels in odd_channels.items()]
        warn_user(OTHER_CHANNELS.format(format_list(texts, most=5)))
    # Marked only when recordings are loaded, because a fit may hide its warnings.
    for number in {*far, *odd_channels} if read is None else ():
        with suppress(AttributeError):  # arrays
            sources[number].has_doubtful_unit = True


def _levels_by_recording(
    windows: Windows, read: Mapping[int, np.ndarray] | None
) -> dict[int, list[np.ndarray]]:
    """Return the levels of the windows that were read, else of five windows, by recording."""
    if read is None:
        rows_by_recording = windows.table.groupby("recording").indices.values()
        chosen = [int(i) for rows in rows_by_recording for i in rows[spread_out(len(rows), 5)]]
        read = {i: levels_of(windows[i]) for i in chosen}
    by_recording: dict[int, list[np.ndarray]] = {}
    for i, level in read.items():
        by_recording.setdefault(int(windows.table["recording"].iloc[i]), []).append(level)
    return by_recording


def warn_of_another_unit(windows: Windows, usual: AmplitudeRange | None) -> None:
    """Compare the amplitudes of arrays with those of the training; None compares nothing.

    Datasets and recordings are in volts, and are not read a second time for this.

    Warns
    -----
    UserWarning
        When nearly all are outside by a factor of five or more.
    """
    are_arrays = all(
        isinstance(getattr(reader, "source", None), np.ndarray)
        for reader in windows.recordings["reader"]
    )
    checked_windows = windows.take(spread_out(len(windows), N_WINDOWS_IN_RANGE // 4))
    actual = amplitude_range(checked_windows) if usual and are_arrays else None
    if usual and actual and max(usual.low / actual.high, actual.low / usual.high) >= FAR:
        warn_user(
            f"The amplitude of these windows ({actual.low:.1g} to {actual.high:.1g}) is far "
            f"outside that of the training ({usual.low:.1g} to {usual.high:.1g}): pass them in the "
            "unit of fit."
        )


def spread_out(n: int, most: int) -> np.ndarray:
    """Return at most ``most`` of the numbers 0 to ``n - 1``, at equal distances.

    Examples
    --------
    >>> from braindecode_pars.windows.amplitudes import spread_out
    >>> spread_out(3, 256).tolist(), spread_out(1000, 4).tolist()
    ([0, 1, 2], [0, 333, 666, 999])
    """
    return np.linspace(0, n - 1, min(n, most)).round().astype(int)
