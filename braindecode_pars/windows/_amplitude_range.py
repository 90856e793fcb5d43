"""The range of amplitudes of the windows that a model was trained on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from braindecode_pars.windows._spread import spread_out
from braindecode_pars.windows._window_set import WindowSet

__all__ = ["N_WINDOWS", "AmplitudeRange", "amplitude_range", "range_of"]

#: Largest number of windows that are looked at.
N_WINDOWS = 256
_PERCENTILES = (5, 95)


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
    >>> from braindecode_pars.windows._amplitude_range import AmplitudeRange
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


def amplitude_range(windows: WindowSet) -> AmplitudeRange | None:
    """Return the range of amplitudes of windows; at most 256 at equal distances are read.

    Parameters
    ----------
    windows : WindowSet
        Training windows.

    Returns
    -------
    AmplitudeRange | None
        None when all channels are flat.
    """
    return range_of(windows[int(i)][0] for i in spread_out(len(windows), N_WINDOWS))


def range_of(windows: Iterable[np.ndarray]) -> AmplitudeRange | None:
    """Return the range of amplitudes of arrays of shape (n_chans, n_times); flat ones are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.windows._amplitude_range import range_of
    >>> wave = np.sqrt(2) * np.sin(np.arange(100) * 2 * np.pi / 20)
    >>> found = range_of([np.stack([n * wave, 0 * wave]) for n in range(1, 102)])
    >>> round(found.low, 6), round(found.high, 6)
    (6.0, 96.0)
    """
    amplitudes = np.concatenate([window.astype(float).std(axis=1) for window in windows])
    amplitudes = amplitudes[amplitudes > 0]
    if not len(amplitudes):
        return None
    return AmplitudeRange(*np.percentile(amplitudes, _PERCENTILES).tolist())
