"""Baseline features: log power in frequency bands."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import trapezoid
from scipy.signal import welch
from sklearn.base import BaseEstimator, TransformerMixin

from braindecode_pars._parameters import boolean, check_parameters, optional, positive
from braindecode_pars.windows._window_set import as_window_set

__all__ = ["BANDS", "LogBandPower"]

_RULES = dict(sfreq=optional(positive()), segment_seconds=positive(), relative=boolean())

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
    segment_seconds : float
        Length of Welch's segments in seconds.
    relative : bool
        Whether to divide the power in each band by the sum over the bands. False gives the
        logarithm of the power itself, in the squared unit of the signal.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation import LogBandPower
    >>> LogBandPower(sfreq=100).fit_transform(np.random.randn(4, 2, 3000)).shape
    (4, 10)
    """

    def __init__(
        self, sfreq: float | None = None, segment_seconds: float = 2.0, relative: bool = True
    ):
        self.sfreq = sfreq
        self.segment_seconds = segment_seconds
        self.relative = relative

    def fit(self, X: Any, y: Any = None) -> LogBandPower:
        """Return the transformer unchanged; it has nothing to learn.

        Parameters
        ----------
        X, y
            Windows and labels; not used.

        Returns
        -------
        LogBandPower
            The transformer itself.
        """
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def transform(self, X: Any) -> np.ndarray:
        """Compute the log band power of each window.

        Parameters
        ----------
        X : windows
            Windows of the same shape.

        Returns
        -------
        ndarray, shape (n_windows, n_chans * 5)
            Natural logarithms: the five bands of the first channel, then those of the second, and
            so on. A flat channel has the same relative power in each band.

        Raises
        ------
        TypeError
            When a parameter has the wrong type.
        ValueError
            When a parameter is out of range, the sampling rate is unknown, windows differ in shape,
            or a window contains NaN.
        """
        check_parameters(vars(self), _RULES, type(self).__name__)
        windows = as_window_set(X, sfreq=self.sfreq)
        if windows.sfreq is None:
            raise ValueError("The sampling rate of the windows is unknown; pass sfreq (Hz).")
        return np.concatenate([self._power(batch, windows.sfreq) for batch in windows.batches(256)])

    def _power(self, batch: np.ndarray, sfreq: float) -> np.ndarray:
        segment = min(round(self.segment_seconds * sfreq), batch.shape[-1])
        frequencies, density = welch(batch.astype(float), sfreq, nperseg=segment)
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
