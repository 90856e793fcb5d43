"""Baseline features: log power in frequency bands."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.integrate import trapezoid
from scipy.signal import welch

from braindecode_pars._parameters import choice, positive
from braindecode_pars._warnings import warn_user
from braindecode_pars.evaluation._window_features import WindowFeatures, check_rate
from braindecode_pars.windows._window_set import WindowSet

__all__ = ["BANDS", "LogBandPower"]

#: Lower and upper edges of the bands of :class:`~braindecode_pars.evaluation.LogBandPower`, in Hz.
#: Sigma is the band of sleep spindles, and alpha that of the sensorimotor rhythm too.
BANDS = {
    "delta": (0.5, 4.0),
    "theta": (4.0, 8.0),
    "alpha": (8.0, 12.0),
    "sigma": (12.0, 16.0),
    "low beta": (16.0, 20.0),
    "high beta": (20.0, 30.0),
    "gamma": (30.0, 45.0),
}


class LogBandPower(WindowFeatures):
    """Logarithm of the power in seven frequency bands, absolute and relative, for each channel.

    The power is estimated with Welch's method. With a linear classifier, as in
    ``make_pipeline(LogBandPower(), StandardScaler(), LogisticRegression())``, these features are
    the baseline for every pretrained encoder. Relative power does not depend on the gain of a
    channel or subject; neither does the input of PARS, because of its instance norm. The bands are
    :data:`~braindecode_pars.evaluation.band_power.BANDS`, from 0.5 to 45 Hz. Those that reach
    beyond half the sampling rate are left out.

    Parameters
    ----------
    sfreq : float | None
        Sampling rate in Hz; required when the windows do not contain it.
    segment_seconds : float
        Length of Welch's segments in seconds.
    power : "both" | "absolute" | "relative"
        Which power: the power in each band, in the squared unit of the signal; that power divided
        by the sum over the bands; or both.
    channels : list of str | None
        Names of the channels to use, in this order. None uses all EEG channels that are not marked
        as bad. Of recordings with different channels, the common ones are used.

    Attributes
    ----------
    chs_info_ : list of dict | None
        Channels of the windows of ``fit``, as in ``mne.Info["chs"]``; None when unknown.
        :meth:`transform` picks these channels by name.
    bands_ : dict of str to tuple | None
        Bands that the sampling rate of ``fit`` allows; None when the rate was unknown.

    Notes
    -----
    The columns are natural logarithms. Those of the first channel come first: the absolute powers
    in the order of the bands, then the relative powers, then the second channel, and so on. A flat
    channel has the logarithm of the smallest float32 as its absolute power, and the same relative
    power in each band.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation import LogBandPower
    >>> LogBandPower(sfreq=100).fit_transform(np.random.randn(4, 2, 3000)).shape
    (4, 28)
    """

    _rules: ClassVar = dict(
        WindowFeatures._rules,
        segment_seconds=positive(),
        power=choice("both", "absolute", "relative"),
    )

    def __init__(
        self,
        sfreq: float | None = None,
        segment_seconds: float = 2.0,
        power: str = "both",
        channels: list[str] | None = None,
    ):
        self.sfreq = sfreq
        self.segment_seconds = segment_seconds
        self.power = power
        self.channels = channels

    def _remember(self, windows: WindowSet) -> None:
        super()._remember(windows)
        self.bands_ = None if windows.sfreq is None else _bands_below(windows.sfreq / 2)
        left_out = [name for name in BANDS if self.bands_ and name not in self.bands_]
        if left_out:
            warn_user(
                f"LogBandPower leaves out {' and '.join(left_out)}, because windows at "
                f"{windows.sfreq:g} Hz have no frequencies above {windows.sfreq / 2:g} Hz."
            )

    def _features(self, batch: np.ndarray, sfreq: float | None) -> np.ndarray:
        check_rate(sfreq)
        # The bands of fit; arrays may be transformed without one.
        bands = getattr(self, "bands_", None) or _bands_below(sfreq / 2)
        segment = min(round(self.segment_seconds * sfreq), batch.shape[-1])
        frequencies, density = welch(batch, sfreq, nperseg=segment)
        _check_resolution(bands, frequencies, sfreq, segment / sfreq)
        absolute = np.stack(
            [
                trapezoid(density[..., inside], frequencies[inside])
                for low, high in bands.values()
                for inside in [(frequencies >= low) & (frequencies <= high)]
            ],
            axis=-1,
        )  # (n_windows, n_chans, n_bands)
        # A flat channel has no power; all its bands get the same relative power.
        total = absolute.sum(axis=-1, keepdims=True)
        equal = np.full_like(absolute, 1 / len(bands))
        relative = np.divide(absolute, total, out=equal, where=total > 0)
        powers = {"absolute": [absolute], "relative": [relative], "both": [absolute, relative]}
        chosen = np.concatenate(powers[self.power], axis=-1)
        # The smallest float32 avoids log(0).
        return np.log(np.maximum(chosen, np.finfo(np.float32).tiny)).reshape(len(batch), -1)


def _bands_below(most: float) -> dict[str, tuple[float, float]]:
    """Return the bands up to a frequency in Hz."""
    bands = {name: (low, high) for name, (low, high) in BANDS.items() if high <= most}
    if not bands:
        raise ValueError(
            f"Windows at {2 * most:g} Hz have no frequencies above {most:g} Hz, too few for any "
            "band; use a higher sampling rate."
        )
    return bands


def _check_resolution(
    bands: dict[str, tuple[float, float]], frequencies: np.ndarray, sfreq: float, seconds: float
) -> None:
    """Check that each band has two frequencies to integrate over, and is below half the rate."""
    for name, (low, high) in bands.items():
        if high > sfreq / 2:
            raise ValueError(
                f"The windows are at {sfreq:g} Hz, too low for {name} ({low:g} to {high:g} Hz), "
                "which the windows of fit have; resample them to one rate."
            )
        inside = (frequencies >= low) & (frequencies <= high)
        if inside.sum() < 2:
            raise ValueError(
                f"Segments of {seconds:g} s resolve {1 / seconds:.3g} Hz, too little for {name} "
                f"({low:g} to {high:g} Hz); use windows and segment_seconds of 2 s or more."
            )
