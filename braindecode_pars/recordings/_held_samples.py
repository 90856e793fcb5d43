"""Samples of a recording that stay the same: flat channels, and clipped signals."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import mne
import numpy as np

from braindecode_pars.recordings._gaps import continuous_stretches

__all__ = ["HeldTime", "held_time"]

#: Shortest time in seconds without any change that is flat. A coarse converter has shorter ones.
_FLAT = 1.0
#: Fewest equal samples at the end of the range that are clipped. A peak has fewer.
_CLIPPED = 3


class HeldTime(NamedTuple):
    """Time in which a channel does not change.

    Attributes
    ----------
    flat : float
        Seconds in stretches of at least a second with one and the same value.
    clipped : float
        Seconds in which at least three samples after one another are the largest or the smallest
        value of the channel.
    """

    flat: float
    clipped: float


class _Runs(NamedTuple):
    """Samples after one another that are equal: their values, and how many they are."""

    values: np.ndarray
    lengths: np.ndarray


def held_time(raw: mne.io.BaseRaw, names: Iterable[str]) -> dict[str, HeldTime]:
    """Return the time in which channels of a recording are flat or clipped.

    It is looked for in the recording itself: a filter or a reference hides it.

    Parameters
    ----------
    raw : Raw
        Continuous recording. Gaps do not count.
    names : iterable of str
        Channels of the recording.

    Returns
    -------
    dict of str to HeldTime
        Time of each channel in seconds.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.recordings._held_samples import held_time
    >>> wave = np.sin(np.arange(1000) / 9)
    >>> signals = np.stack([np.where(np.arange(1000) < 300, 0, wave), wave.clip(-0.5, 0.5)])
    >>> info = mne.create_info(["C3", "C4"], 100.0, "eeg")
    >>> found = held_time(mne.io.RawArray(signals, info, verbose="error"), ["C3", "C4"])
    >>> found["C3"], found["C4"].flat, found["C4"].clipped > 5
    (HeldTime(flat=3.0, clipped=0.0), 0.0, True)
    """
    stretches, sfreq = continuous_stretches(raw), float(raw.info["sfreq"])
    found = {}
    for name in names:
        parts, ranges = [], []
        for start, stop in stretches:
            # Not raw[name, start:stop], which makes an array of the times, too.
            samples = raw.get_data([name], start, stop, verbose="error")[0]
            parts.append(_runs(samples))
            ranges.append((samples.min(), samples.max()))
        found[name] = _held(parts, np.array(ranges), sfreq)
    return found


def _runs(samples: np.ndarray) -> _Runs:
    """Return the runs of at least three equal samples."""
    equal = np.flatnonzero(samples[1:] == samples[:-1])  # sample i and the next are equal
    if not len(equal):
        return _Runs(np.zeros(0), np.zeros(0, int))
    ends = np.flatnonzero(np.diff(equal) > 1)
    first = equal[np.concatenate([[0], ends + 1])]
    lengths = equal[np.concatenate([ends, [-1]])] - first + 2
    long = lengths >= _CLIPPED
    return _Runs(samples[first[long]], lengths[long])


def _held(parts: list[_Runs], ranges: np.ndarray, sfreq: float) -> HeldTime:
    """Divide the runs of a channel, shape of ``ranges`` (n_parts, 2), into flat and clipped."""
    if not parts:
        return HeldTime(0.0, 0.0)
    values = np.concatenate([part.values for part in parts])
    lengths = np.concatenate([part.lengths for part in parts])
    low, high = ranges[:, 0].min(), ranges[:, 1].max()
    clipped = ((values == low) | (values == high)) & (low < high)
    flat = ~clipped & (lengths >= _FLAT * sfreq)
    return HeldTime(*(float(lengths[which].sum() / sfreq) for which in (flat, clipped)))
