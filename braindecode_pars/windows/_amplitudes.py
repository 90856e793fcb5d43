"""Amplitudes that EEG cannot have: a signal that was scaled twice, or one on a huge offset."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from braindecode_pars._warnings import warn_user
from braindecode_pars.windows._spread import spread_out

__all__ = ["N_WINDOWS", "amplitude_problem", "warn_of_amplitudes"]

#: Accepted standard deviations. EEG has about 1e-6 to 1e-3 in volts and 1 to 1000 in microvolts.
#: Below, the instance norm loses the signal; standardised signals (1) are within the range, too.
LOWEST, HIGHEST = 1e-9, 1e6
#: Largest accepted offset, in standard deviations.
LARGEST_OFFSET = 1e3
#: Share of windows that is accepted: electrodes fall off now and then.
SHARE = 0.05

#: Largest number of windows that are looked at.
N_WINDOWS = 32
_USUAL = 2e-5  # volts


def amplitude_problem(windows: Iterable[Any]) -> str | None:
    """Return a sentence about amplitudes that EEG cannot have; None if all is well.

    Parameters
    ----------
    windows : iterable of ndarray, shape (n_chans, n_times)
        Windows to look at. Channels without any change are ignored.

    Returns
    -------
    str | None
        What was found, what EEG has, and what to do.
    """
    spreads, offsets = [], []  # one entry for each window: the median over its channels
    for window in windows:
        window = np.asarray(window, dtype=float)
        if window.size == 0:
            continue
        changes = np.ptp(window, axis=1) > 0
        if changes.any():
            spread, mean = window[changes].std(axis=1), window[changes].mean(axis=1)
            spreads.append(float(np.median(spread)))
            offsets.append(float(np.median(np.abs(mean) / spread)))
        elif window.any():  # the signal is smaller than single precision on this offset
            offsets.append(math.inf)
    odd = [spread for spread in spreads if not LOWEST <= spread <= HIGHEST]
    if odd and len(odd) >= SHARE * len(spreads):
        return _scale_sentence(float(np.median(odd)), len(odd), len(spreads))
    large = [offset for offset in offsets if offset > LARGEST_OFFSET]
    if large and len(large) >= SHARE * len(offsets):
        times = float(np.median(large))
        found = f"{times:.2g} times" if times < 1e7 else "more than 1e7 times"
        return (
            f"The mean of the signal is {found} its standard deviation, so that single precision "
            "may not resolve the signal, and models may see the offset alone; high-pass filter "
            "the recordings, for example at 0.5 Hz."
        )
    return None


def _scale_sentence(spread: float, n_odd: int, n_windows: int) -> str:
    some = "" if n_odd == n_windows else f" in {n_odd} of {n_windows} windows looked at"
    power = 3 * round(math.log10(_USUAL / spread) / 3)
    advice = f"multiply it by 1e{power}" if abs(power) <= 12 else "check its unit"
    return (
        f"The standard deviation of the signal is {spread:.1g}{some}; EEG has about 1e-6 to 1e-3 "
        f"in volts and 1 to 1000 in microvolts. Was the signal scaled twice? Then {advice}."
    )


def warn_of_amplitudes(windows: Any) -> None:
    """Look at some windows of a WindowSet; a store was looked at when it was written.

    Warns
    -----
    UserWarning
        When their amplitudes are not those of EEG in any usual unit.
    """
    if windows.shapes is not None:  # windows of a store
        return
    problem = amplitude_problem(windows[int(i)][0] for i in spread_out(len(windows), N_WINDOWS))
    if problem:
        warn_user(problem)
