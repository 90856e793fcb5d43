"""Baseline features: log power in frequency bands."""

from __future__ import annotations

from types import NoneType
from typing import Any

import numpy as np
from scipy.integrate import trapezoid
from scipy.signal import welch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from braindecode_pars._parameters import boolean, check_parameters, instance, optional, positive
from braindecode_pars.windows._picking import pick_as_fitted, pick_for_fit
from braindecode_pars.windows._window_set import as_window_set

__all__ = ["BANDS", "LogBandPower"]

_RULES = dict(
    sfreq=optional(positive()),
    segment_seconds=positive(),
    relative=boolean(),
    channels=instance("a list of channel names, or None", list, tuple, NoneType),
)

#: Lower and upper edges of the bands of :class:`~braindecode_pars.evaluation.LogBandPower`, in Hz.
BANDS = {
    "delta": (0.5, 4.0),
    "theta": (4.0, 8.0),
    "alpha": (8.0, 12.0),
    "sigma": (12.0, 16.0),
    "beta": (16.0, 30.0),
}


class LogBandPower(TransformerMixin, BaseEstimator):
    """Logarithm of the relative power in five frequency bands, for each channel.

    The power is estimated with Welch's method. With a linear classifier, as in
    ``make_pipeline(LogBandPower(), StandardScaler(), LogisticRegression())``, these features are
    the baseline for every pretrained encoder. Relative power does not depend on the gain of a
    channel or subject; neither does the input of PARS, because of its instance norm. The bands are
    :data:`~braindecode_pars.evaluation.band_power.BANDS`.

    Parameters
    ----------
    sfreq : float | None
        Sampling rate in Hz; required when the windows do not contain it.
    channels : list of str | None
        Names of the channels to use, in this order. None uses all EEG channels that are not marked
        as bad. Of recordings with different channels, the common ones are used.
    segment_seconds : float
        Length of Welch's segments in seconds.
    relative : bool
        Whether to divide the power in each band by the sum over the bands. False gives the
        logarithm of the power itself, in the squared unit of the signal.

    Attributes
    ----------
    chs_info_ : list of dict | None
        Channels of the windows of ``fit``, as in ``mne.Info["chs"]``; None when unknown.
        :meth:`transform` picks these channels by name.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation import LogBandPower
    >>> LogBandPower(sfreq=100).fit_transform(np.random.randn(4, 2, 3000)).shape
    (4, 10)
    """

    def __init__(
        self,
        sfreq: float | None = None,
        segment_seconds: float = 2.0,
        relative: bool = True,
        channels: list[str] | None = None,
    ):
        self.sfreq = sfreq
        self.segment_seconds = segment_seconds
        self.relative = relative
        self.channels = channels

    def fit(self, X: Any, y: Any = None) -> LogBandPower:
        """Remember the channels of the windows; there is nothing else to learn.

        Parameters
        ----------
        X : windows
            Windows whose channels :meth:`transform` will use. No signal is read.
        y : Any
            Not used; scikit-learn passes it.

        Returns
        -------
        LogBandPower
            The transformer itself.

        Raises
        ------
        ValueError
            When there is no EEG channel, or a channel in ``channels`` is missing.
        """
        self.chs_info_ = pick_for_fit(as_window_set(X), self.channels).chs_info
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Compute the log band power of each window.

        Parameters
        ----------
        X : windows
            Windows of the same shape. Channels are matched to those of :meth:`fit` by name. Only
            windows without channel names, such as arrays, can be transformed without :meth:`fit`.

        Returns
        -------
        ndarray, shape (n_windows, n_chans * 5)
            Natural logarithms: the five bands of the first channel, then those of the second, and
            so on. A flat channel has the same relative power in each band.

        Raises
        ------
        NotFittedError
            When the windows have channel names and :meth:`fit` was not called.
        TypeError
            When a parameter has the wrong type.
        ValueError
            When a parameter is out of range, there are no windows, the sampling rate is unknown,
            windows differ in shape or are too short for a band, a window contains NaN, or a channel
            of :meth:`fit` is missing.
        """
        check_parameters(vars(self), _RULES, type(self).__name__)
        windows = as_window_set(X, sfreq=self.sfreq)
        windows.check_not_empty()
        if windows.sfreq is None:
            raise ValueError("The sampling rate of the windows is unknown; pass sfreq (Hz).")
        if windows.chs_info is not None or self.channels is not None:
            check_is_fitted(self)  # otherwise each call would pick its own channels
            windows = pick_as_fitted(windows, self.chs_info_)
        return np.concatenate([self._power(batch, windows.sfreq) for batch in windows.batches(256)])

    def _power(self, batch: np.ndarray, sfreq: float) -> np.ndarray:
        segment = min(round(self.segment_seconds * sfreq), batch.shape[-1])
        frequencies, density = welch(batch.astype(float), sfreq, nperseg=segment)
        _check_resolution(frequencies, sfreq, segment / sfreq)
        powers = np.stack(
            [
                trapezoid(density[..., inside], frequencies[inside])
                for low, high in BANDS.values()
                for inside in [(frequencies >= low) & (frequencies <= high)]
            ],
            axis=-1,
        )  # (n_windows, n_chans, n_bands)
        if self.relative:
            # A flat channel has no power; all its bands get the same relative power.
            total = powers.sum(axis=-1, keepdims=True)
            powers = np.divide(
                powers, total, out=np.full_like(powers, 1 / len(BANDS)), where=total > 0
            )
        # The smallest float32 avoids log(0).
        return np.log(np.maximum(powers, np.finfo(np.float32).tiny)).reshape(len(batch), -1)


def _check_resolution(frequencies: np.ndarray, sfreq: float, seconds: float) -> None:
    """Check that each band below the Nyquist frequency has two frequencies to integrate over."""
    for name, (low, high) in BANDS.items():
        inside = (frequencies >= low) & (frequencies <= high)
        if high <= sfreq / 2 and inside.sum() < 2:
            raise ValueError(
                f"Segments of {seconds:g} s resolve {1 / seconds:.3g} Hz, too little for {name} "
                f"({low:g} to {high:g} Hz); use windows and segment_seconds of 2 s or more."
            )
