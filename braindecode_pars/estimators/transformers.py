"""Transformers of windows: subject centring, Euclidean alignment, and features for baselines.

The features are log power in frequency bands, and covariances of the channels for classifiers of
Riemannian geometry. Both are computed batch by batch.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import trapezoid
from scipy.signal import butter, sosfiltfilt, welch
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from braindecode_pars._common.checks import warn_user
from braindecode_pars.estimators.parameters import check_parameters
from braindecode_pars.estimators.recentring import MIN_WINDOWS, subject_numbers
from braindecode_pars.estimators.windows_estimator import WindowsEstimator, fresh_fit
from braindecode_pars.windows.door import as_windows
from braindecode_pars.windows.picking import pick_as_fitted, pick_for_fit
from braindecode_pars.windows.table import Windows


class SubjectCentering(TransformerMixin, WindowsEstimator):
    r"""Subtract each subject's own mean from the features of a transformer (transductive).

    A feature :math:`f` of a window :math:`i` of subject :math:`s(i)` becomes

    .. math::
        f_i - \frac{1}{|\{j : s(j) = s(i)\}|} \sum_{j : s(j) = s(i)} f_j ,

    where the sum is over the windows of one call of :meth:`transform`. People differ more from each
    other than one person's states do, so this often helps much.

    **It is transductive.** A prediction uses the other windows of the test subject, without their
    labels: a whole recording must be there before its first window is classified. Report it as
    such, and compare it only with methods that are given the same. The mean also contains the
    shares of the classes. Where these differ between subjects, a part of what tells the classes
    apart is removed, and all of it in a subject whose windows are of one class.

    Parameters
    ----------
    transformer : transformer
        Required: a transformer of windows, such as
        :class:`~braindecode_pars.evaluation.LogBandPower`,
        :class:`~braindecode_pars.PARSEmbedder` or a pipeline. A clone of it is fitted. The windows
        know their subjects and the features do not, so this class wraps the transformer instead of
        following it in a pipeline. It then works in scikit-learn's cross-validation and in the
        protocols of :mod:`braindecode_pars.evaluation`, which pass only windows to ``predict``.
    min_windows : int
        Smallest number of windows of a subject. The mean of n windows adds 1/n of the variance
        within a subject to every feature, a tenth for the default.

    Attributes
    ----------
    transformer_ : transformer
        Fitted transformer.

    References
    ----------
    Relatives are adaptive batch normalisation (Li et al. 2016, arXiv:1603.04779), Riemannian
    re-centring (Zanini et al. 2018, IEEE Transactions on Biomedical Engineering 65) and Euclidean
    alignment (He and Wu 2020, IEEE Transactions on Biomedical Engineering 67).

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import LeaveOneGroupOut, cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from braindecode_pars import SubjectCentering, as_sklearn, datasets
    >>> from braindecode_pars.evaluation import LogBandPower
    >>> windows = datasets.simulated.sleep(n_subjects=3, hours=0.2, n_chans=2)
    >>> X, y, groups = as_sklearn(windows)
    >>> features = SubjectCentering(LogBandPower())
    >>> bool(abs(features.fit_transform(X)[groups == 1].mean(axis=0)).max() < 1e-9)
    True
    >>> clf = make_pipeline(features, StandardScaler(), LogisticRegression(max_iter=1000))
    >>> cross_val_score(clf, X, y, groups=groups, cv=LeaveOneGroupOut()).shape
    (3,)
    """

    def __init__(self, transformer: Any = None, *, min_windows: int = MIN_WINDOWS):
        self.transformer = transformer
        self.min_windows = min_windows

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> SubjectCentering:
        """Fit the transformer. No mean is learned: each call of :meth:`transform` takes its own.

        Parameters
        ----------
        X : windows
            Windows of any type that the transformer accepts.
        y : array-like, shape (n_windows,) | None
            Labels for the transformer.
        groups : array-like, shape (n_windows,) | None
            Subjects, for windows that do not contain them, such as arrays.

        Returns
        -------
        SubjectCentering
            The fitted transformer itself.

        Raises
        ------
        TypeError
            When ``transformer`` is not a transformer, or ``min_windows`` is not an integer.
        ValueError
            When the subject of a window is unknown, or a subject has fewer windows than
            ``min_windows``. Also all errors of the transformer.
        """
        check_parameters(self)
        can_transform = hasattr(self.transformer, "fit") and hasattr(self.transformer, "transform")
        if not can_transform or isinstance(self.transformer, type):
            raise TypeError(
                f"transformer={self.transformer!r} is no transformer, whose features can be "
                "centred; pass one, as in SubjectCentering(LogBandPower())."
            )
        self._subjects(X, groups)
        # PARSEmbedder, for example, notes the subjects in its card.
        takes_groups = groups is not None and has_fit_parameter(self.transformer, "groups")
        with fresh_fit(self):
            self.transformer_ = clone(self.transformer)
            self.transformer_.fit(X, y, **({"groups": groups} if takes_groups else {}))
        return self

    def transform(self, X: Any, *, groups: Any = None) -> np.ndarray:
        """Return the features of the transformer, minus the mean of each subject.

        Parameters
        ----------
        X : windows
            All windows of each subject: the result depends on which windows are passed together.
        groups : array-like, shape (n_windows,) | None
            As in :meth:`fit`.

        Returns
        -------
        ndarray, shape (n_windows, n_features)
            Features whose mean over the windows of a subject is zero.

        Raises
        ------
        NotFittedError
            Before :meth:`fit`.
        ValueError
            As in :meth:`fit`.
        """
        check_is_fitted(self)
        subjects = self._subjects(X, groups)
        features = np.asarray(self.transformer_.transform(X))
        features = features.astype(np.result_type(features, np.float32))  # a copy, no integers
        for subject in range(subjects.max() + 1):
            mine = subjects == subject
            features[mine] -= features[mine].mean(axis=0, dtype=float)
        return features

    def fit_transform(self, X: Any, y: Any = None, *, groups: Any = None) -> np.ndarray:
        """Fit the transformer and return its features, minus the mean of each subject.

        Parameters
        ----------
        X, y, groups
            As in :meth:`fit`.

        Returns
        -------
        ndarray, shape (n_windows, n_features)
            As in :meth:`transform`.
        """
        return self.fit(X, y, groups=groups).transform(X, groups=groups)

    @available_if(lambda self: hasattr(self.transformer, "get_feature_names_out"))
    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the features, which are those of the transformer.

        Parameters
        ----------
        input_features : Any
            Passed to the transformer.

        Returns
        -------
        ndarray of str, shape (n_features,)
            One name per column.
        """
        check_is_fitted(self)
        return self.transformer_.get_feature_names_out(input_features)

    def _subjects(self, X: Any, groups: Any) -> np.ndarray:
        windows = as_windows(X, groups=groups)
        return subject_numbers(windows, self.min_windows, type(self).__name__)


#: Directions with a smaller share of the largest variance are noise of rounding, and set to zero.
_SMALLEST = 1e-7


class EuclideanAlignment(TransformerMixin, WindowsEstimator):
    r"""Give the windows of each subject the same mean covariance (transductive).

    With the windows :math:`X_i` of a subject (channels by samples, T samples), each becomes

    .. math::
        \bar R^{-1/2} X_i, \qquad \bar R = \frac1n \sum_{i=1}^n \frac{X_i X_i^\top}{T}.

    This is to signals what :class:`~braindecode_pars.SubjectCentering` is to features, for models
    that learn from signals, such as :class:`~braindecode_pars.estimators.NetworkClassifier`.

    **It is transductive.** A prediction uses the other windows of the test subject, without their
    labels; see :class:`~braindecode_pars.SubjectCentering` for what that means.

    Parameters
    ----------
    channels : list of str | None
        As in :class:`~braindecode_pars.PARSClassifier`. Recordings with different channels are
        aligned on their common channels.
    min_windows : int
        Smallest number of windows of a subject.

    Attributes
    ----------
    chs_info_ : list of dict | None
        Channels of ``fit``, as in ``mne.Info["chs"]``; None when unknown.

    Notes
    -----
    The aligned signals have no unit. Directions without variance, of which an average reference
    leaves one, stay without it.

    References
    ----------
    He, H., and Wu, D. (2020). Transfer learning for brain-computer interfaces: a Euclidean space
    data alignment approach. IEEE Transactions on Biomedical Engineering 67.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from braindecode_pars import as_sklearn, datasets
    >>> from braindecode_pars.estimators import EuclideanAlignment, NetworkClassifier
    >>> X, y, groups = as_sklearn(datasets.simulated.sleep(n_subjects=3, hours=0.2, n_chans=2))
    >>> network = NetworkClassifier("EEGNet", finetune_epochs=1, verbose=0)
    >>> make_pipeline(EuclideanAlignment(), network).fit(X, y).predict(X).shape
    (72,)
    """

    def __init__(self, *, channels: list[str] | None = None, min_windows: int = MIN_WINDOWS):
        self.channels = channels
        self.min_windows = min_windows

    def fit(self, X: Any, y: Any = None) -> EuclideanAlignment:
        """Remember the channels. Each call of :meth:`transform` takes its own covariances.

        Parameters
        ----------
        X : windows
            Windows whose channels :meth:`transform` will use. No signal is read.
        y : Any
            Not used; scikit-learn passes it.

        Returns
        -------
        EuclideanAlignment
            The fitted transformer itself.

        Raises
        ------
        TypeError, ValueError
            When a parameter has the wrong type or is out of range, there is no EEG channel, or a
            channel in ``channels`` is missing.
        """
        check_parameters(self)
        self.chs_info_ = pick_for_fit(as_windows(X), self.channels).chs_info
        return self

    def transform(self, X: Any, *, groups: Any = None) -> Windows:
        """Return the aligned windows, for any estimator of this package.

        Parameters
        ----------
        X : windows
            All windows of each subject: the result depends on which windows are passed together.
        groups : array-like, shape (n_windows,) | None
            Subjects, for windows that do not contain them, such as arrays.

        Returns
        -------
        Windows
            View of the windows with their labels and subjects. A window is aligned when it is read.

        Raises
        ------
        NotFittedError
            Before :meth:`fit`.
        ValueError
            When the subject of a window is unknown, a subject has fewer windows than
            ``min_windows``, or a channel of :meth:`fit` is missing.
        """
        check_is_fitted(self)
        windows = pick_as_fitted(as_windows(X, groups=groups), self.chs_info_)
        subjects = subject_numbers(windows, self.min_windows, type(self).__name__)
        return windows.read_by(_Aligned(windows, subjects))

    def fit_transform(self, X: Any, y: Any = None, *, groups: Any = None) -> Windows:
        """Remember the channels and return the aligned windows.

        Parameters
        ----------
        X, y, groups
            As in :meth:`fit` and :meth:`transform`.

        Returns
        -------
        Windows
            As in :meth:`transform`.
        """
        return self.fit(X, y).transform(X, groups=groups)


class _Aligned:
    """Source of aligned windows.

    Parameters
    ----------
    windows : Windows
        Windows of any subjects.
    subjects : ndarray of int, shape (n_windows,)
        Number of each window's subject.
    """

    def __init__(self, windows: Windows, subjects: np.ndarray):
        self.windows = windows
        self.subjects = subjects
        self.filters = [_whitening(windows.take(subjects == s)) for s in range(max(subjects) + 1)]

    def __getitem__(self, i: int) -> np.ndarray:
        return self.filters[self.subjects[i]] @ self.windows[i]


def _whitening(windows: Windows) -> np.ndarray:
    """Return the inverse square root of the mean covariance, shape (n_chans, n_chans)."""
    covariance = np.mean(
        [x @ x.T / x.shape[1] for batch in windows.batches(64) for x in batch.astype(float)], axis=0
    )
    variances, directions = np.linalg.eigh(covariance)
    kept = variances > _SMALLEST * variances.max()
    inverse = np.zeros_like(variances)
    inverse[kept] = variances[kept] ** -0.5
    return (directions * inverse) @ directions.T


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


class WindowFeatures(TransformerMixin, BaseEstimator):
    """A transformer of windows that computes the features of each window by itself.

    A subclass has the parameters ``sfreq`` and ``channels``, and computes the features of a batch.
    """

    def fit(self, X: Any, y: Any = None) -> WindowFeatures:
        """Remember the channels of the windows; there is nothing else to learn.

        Parameters
        ----------
        X : windows
            Windows whose channels :meth:`transform` will use. No signal is read.
        y : Any
            Not used; scikit-learn passes it.

        Returns
        -------
        estimator
            The transformer itself.

        Raises
        ------
        TypeError, ValueError
            When a parameter has the wrong type or is out of range, there is no EEG channel, or a
            channel in ``channels`` is missing.
        """
        check_parameters(self)
        self._remember(as_windows(X, sfreq=self.sfreq))
        return self

    def _remember(self, windows: Windows) -> None:
        """Keep what ``transform`` needs to know of the windows of ``fit``."""
        self.chs_info_ = pick_for_fit(windows, self.channels).chs_info

    def transform(self, X: Any) -> np.ndarray:
        """Compute the features of each window.

        Parameters
        ----------
        X : windows
            Windows of the same shape. Channels are matched to those of :meth:`fit` by name. Only
            windows without channel names, such as arrays, can be transformed without :meth:`fit`.

        Returns
        -------
        ndarray, shape (n_windows, ...)
            Features of each window.

        Raises
        ------
        NotFittedError
            When the windows have channel names and :meth:`fit` was not called.
        TypeError
            When a parameter has the wrong type.
        ValueError
            When a parameter is out of range, there are no windows, the sampling rate is needed and
            unknown, windows differ in shape or are too short, a window contains NaN, or a channel
            of :meth:`fit` is missing.
        """
        check_parameters(self)
        windows = as_windows(X, sfreq=self.sfreq)
        windows.check_not_empty()
        if windows.chs_info is not None or self.channels is not None:
            check_is_fitted(self)  # otherwise each call would pick its own channels
            windows = pick_as_fitted(windows, self.chs_info_)
        batches = (batch.astype(float) for batch in windows.batches(256))
        return np.concatenate([self._features(batch, windows.sfreq) for batch in batches])

    @abstractmethod
    def _features(self, batch: np.ndarray, sfreq: float | None) -> np.ndarray:
        """Return the features of windows: (n_windows, n_chans, n_times) -> (n_windows, ...)."""


def known_rate(sfreq: float | None) -> float:
    """Return the sampling rate in Hz.

    Raises
    ------
    ValueError
        When it is None.
    """
    if sfreq is None:
        raise ValueError("The sampling rate of the windows is unknown; pass sfreq (Hz).")
    return sfreq


@dataclass(eq=False, repr=False)
class LogBandPower(WindowFeatures):
    """Logarithm of the power in seven frequency bands, absolute and relative, for each channel.

    The power is estimated with Welch's method. With a linear classifier, as in
    ``make_pipeline(LogBandPower(), StandardScaler(), LogisticRegression())``, these features are
    the baseline for every pretrained encoder. Relative power does not depend on the gain of a
    channel or subject; neither does the input of PARS, because of its instance norm. The bands are
    :data:`~braindecode_pars.estimators.transformers.BANDS`, from 0.5 to 45 Hz. Those that reach
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

    sfreq: float | None = None
    segment_seconds: float = 2.0
    power: str = "both"
    channels: list[str] | None = None

    def _remember(self, windows: Windows) -> None:
        super()._remember(windows)
        rate = windows.sfreq
        self.bands_ = None if rate is None else _bands_below(rate / 2)
        left_out = [name for name in BANDS if self.bands_ and name not in self.bands_]
        if rate is not None and left_out:
            warn_user(
                f"LogBandPower leaves out {' and '.join(left_out)}, because windows at "
                f"{rate:g} Hz have no frequencies above {rate / 2:g} Hz."
            )

    def _features(self, batch: np.ndarray, sfreq: float | None) -> np.ndarray:
        sfreq = known_rate(sfreq)
        # The bands of fit; arrays may be transformed without one.
        bands = getattr(self, "bands_", None) or _bands_below(sfreq / 2)
        segment = min(round(self.segment_seconds * sfreq), batch.shape[-1])
        frequencies, density = welch(batch, sfreq, nperseg=segment)
        powers_of_bands = []
        for name, (low, high) in bands.items():
            if high > sfreq / 2:
                raise ValueError(
                    f"The windows are at {sfreq:g} Hz, too low for {name} ({low:g} to {high:g} "
                    "Hz), which the windows of fit have; resample them to one rate."
                )
            inside = (frequencies >= low) & (frequencies <= high)
            if inside.sum() < 2:  # to integrate over
                raise ValueError(
                    f"Segments of {segment / sfreq:g} s resolve too little for {name} ({low:g} to "
                    f"{high:g} Hz); use windows and segment_seconds of 2 s or more."
                )
            powers_of_bands.append(trapezoid(density[..., inside], frequencies[inside]))
        absolute = np.stack(powers_of_bands, axis=-1)  # (n_windows, n_chans, n_bands)
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


@dataclass(eq=False, repr=False)
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

    sfreq: float | None = None
    band: tuple[float, float] | None = None
    channels: list[str] | None = None

    def _features(self, batch: np.ndarray, sfreq: float | None) -> np.ndarray:
        from pyriemann.estimation import Covariances  # takes seconds to import

        n_chans, n_times = batch.shape[1:]
        if n_times < 2:
            raise ValueError("Windows of one sample have no covariance; use longer windows.")
        if self.band is not None:
            sections = butter(4, self.band, btype="bandpass", fs=known_rate(sfreq), output="sos")
            # SciPy's own padding, or less for short windows.
            padding = min(3 * (2 * len(sections) + 1), n_times - 1)
            batch = sosfiltfilt(sections, batch, axis=-1, padlen=padding)
        covariances = Covariances("oas").transform(batch)  # (n_windows, n_chans, n_chans)
        return covariances + np.finfo(np.float32).tiny * np.eye(n_chans)
