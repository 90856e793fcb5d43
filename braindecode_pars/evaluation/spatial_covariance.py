"""Baseline features: covariances of the channels, for classifiers of Riemannian geometry."""

from __future__ import annotations

from numbers import Real
from types import NoneType
from typing import ClassVar

import numpy as np
from scipy.signal import butter, sosfiltfilt

from braindecode_pars._parameters import Rule
from braindecode_pars.evaluation._window_features import WindowFeatures, check_rate

__all__ = ["SpatialCovariance"]


def _is_band(band: tuple[float, float] | list[float] | None) -> bool:
    if band is None:
        return True
    are_numbers = all(isinstance(edge, Real) and not isinstance(edge, bool) for edge in band)
    return len(band) == 2 and are_numbers and 0 < band[0] < band[1] < float("inf")


class SpatialCovariance(WindowFeatures):
    """Covariance of the channels of each window, with shrinkage.

    With the tangent space of pyriemann, as in ``make_pipeline(SpatialCovariance(),
    pyriemann.tangentspace.TangentSpace(), LogisticRegression())``, this is the strongest classical
    method in many benchmarks of brain-computer interfaces (Barachant et al. 2012). It sees the
    power of every mixture of channels, which :class:`LogBandPower` does not, but one band only.

    The covariance is shrunk towards a multiple of the identity by the amount that oracle
    approximating shrinkage estimates (OAS; Chen et al. 2010). It is therefore positive definite
    for fewer samples than channels, for an average reference and with a flat channel.

    Parameters
    ----------
    sfreq : float | None
        Sampling rate in Hz, for a ``band`` of windows that do not contain it.
    band : tuple of float | None
        Lower and upper edge in Hz of a band-pass filter (Butterworth of order 4, forward and
        backward), such as (8, 30) for motor imagery. It runs over each window by itself, so
        filtering the recordings is better where that is possible. None does not filter.
    channels : list of str | None
        As in :class:`LogBandPower`.

    Attributes
    ----------
    chs_info_ : list of dict | None
        As in :class:`LogBandPower`.

    Notes
    -----
    A window that is zero everywhere has a covariance of the smallest float32 times the identity,
    which is added to every covariance.

    References
    ----------
    Barachant, A., Bonnet, S., Congedo, M., and Jutten, C. (2012). Multiclass brain-computer
    interface classification by Riemannian geometry. IEEE Transactions on Biomedical Engineering 59.
    Chen, Y., Wiesel, A., Eldar, Y. C., and Hero, A. O. (2010). Shrinkage algorithms for MMSE
    covariance estimation. IEEE Transactions on Signal Processing 58.

    Examples
    --------
    >>> from pyriemann.tangentspace import TangentSpace
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from braindecode_pars import as_sklearn, datasets
    >>> from braindecode_pars.evaluation import SpatialCovariance
    >>> X, y, groups = as_sklearn(datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=3))
    >>> SpatialCovariance().fit_transform(X).shape
    (24, 3, 3)
    >>> clf = make_pipeline(SpatialCovariance(), TangentSpace(), LogisticRegression(max_iter=1000))
    >>> clf.fit(X, y).predict(X).shape
    (24,)
    """

    _rules: ClassVar = dict(
        WindowFeatures._rules,
        band=Rule("two increasing frequencies in Hz, or None", (tuple, list, NoneType), _is_band),
    )

    def __init__(
        self,
        sfreq: float | None = None,
        band: tuple[float, float] | None = None,
        channels: list[str] | None = None,
    ):
        self.sfreq = sfreq
        self.band = band
        self.channels = channels

    def _features(self, batch: np.ndarray, sfreq: float | None) -> np.ndarray:
        from pyriemann.estimation import Covariances  # takes seconds to import

        n_chans, n_times = batch.shape[1:]
        if n_times < 2:
            raise ValueError("Windows of one sample have no covariance; use longer windows.")
        if self.band is not None:
            check_rate(sfreq)
            batch = _band_pass(batch, self.band, sfreq)
        covariances = Covariances("oas").transform(batch)  # (n_windows, n_chans, n_chans)
        return covariances + np.finfo(np.float32).tiny * np.eye(n_chans)


def _band_pass(batch: np.ndarray, band: tuple[float, float], sfreq: float) -> np.ndarray:
    """Filter each window by itself."""
    if band[1] >= sfreq / 2:
        raise ValueError(
            f"SpatialCovariance: band={band} reaches beyond {sfreq / 2:g} Hz, half the sampling "
            "rate; use a lower band."
        )
    sections = butter(4, band, btype="bandpass", fs=sfreq, output="sos")
    # SciPy's own padding, or less for short windows.
    padding = min(3 * (2 * len(sections) + 1), batch.shape[-1] - 1)
    return sosfiltfilt(sections, batch, axis=-1, padlen=padding)
