"""Window features for baselines: band power, covariance, amplitude, hand-crafted features.

The scikit-learn transformers in this module compute log band power, log amplitudes, low-frequency
amplitudes, spatial covariances for Riemannian classifiers, and the hand-crafted features that the
pretext task :class:`~braindecode_pars.pretext.SignalFeatures` predicts.
"""

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import torch
from scipy.integrate import trapezoid
from scipy.signal import butter, sosfiltfilt, welch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from braindecode_pars._common import channel_names, checks
from braindecode_pars._common.names import extra_module
from braindecode_pars.estimators import windows_estimator
from braindecode_pars.pretext import features as classical
from braindecode_pars.tokens import instance_norm
from braindecode_pars.windows import Windows, amplitudes, convert, picking

#: Lower and upper edges of the frequency bands of
#: :class:`~braindecode_pars.evaluation.LogBandPower`, in Hz. Sigma is the band of sleep spindles.
#: Alpha is also the band of the sensorimotor rhythm.
BANDS = {
    "delta": (0.5, 4.0),
    "theta": (4.0, 8.0),
    "alpha": (8.0, 12.0),
    "sigma": (12.0, 16.0),
    "low beta": (16.0, 20.0),
    "high beta": (20.0, 30.0),
    "gamma": (30.0, 45.0),
}


@dataclass(eq=False, repr=False)
class WindowFeatures(TransformerMixin, BaseEstimator):
    """Base class of transformers that compute the features of each window independently.

    A subclass implements ``measure``, which computes the features of a batch of windows. A subclass
    may have additional parameters.
    """

    sfreq: float | None = None
    _: KW_ONLY
    channels: list[str] | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Store the channels of the windows. Nothing else is fitted.

        Parameters
        ----------
        X : windows
            Windows with the channels that :meth:`transform` will use. At most one window is read.
        y : Any
            Not used, present for API consistency.

        Returns
        -------
        estimator
            The fitted transformer itself.

        Raises
        ------
        TypeError, ValueError
            If a parameter has the wrong type or is out of range, there is no EEG channel, or a
            channel in ``channels`` is missing.
        """
        windows_estimator.check_estimator(self)
        windows = convert.as_windows(X, sfreq=self.sfreq)
        windows.check_not_empty()
        self._remember(windows)
        # Arrays have no channel names, so the first window determines the number of channels.
        n_chans, self.n_times_ = windows[0].shape
        self.n_chans_ = n_chans if self.chs_info_ is None else len(self.chs_info_)
        return self

    def _remember(self, windows: Windows) -> None:
        """Store the attributes of the windows of ``fit`` that ``transform`` requires."""
        self.chs_info_ = picking.pick_for_fit(windows, self.channels).chs_info

    def transform(self, X: Any) -> np.ndarray:
        """Compute the features of each window.

        Parameters
        ----------
        X : windows
            Windows, all with the same shape. Channels are matched by name to the channels of
            :meth:`fit`. If the windows have no channel names, as in arrays, :meth:`fit` need not be
            called before.

        Returns
        -------
        ndarray, shape (n_windows, n_features)
            Features of each window. SpatialCovariance returns covariance matrices, shape
            (n_windows, n_chans, n_chans).

        Raises
        ------
        NotFittedError
            If the windows have channel names and :meth:`fit` was not called.
        TypeError
            If a parameter has the wrong type.
        ValueError
            If a parameter is out of range, if there are no windows, if the sampling rate is
            required but unknown, if windows differ in shape, are too short or contain NaN, or if a
            channel of :meth:`fit` is missing.
        """
        windows_estimator.check_estimator(self)
        windows = convert.as_windows(X, sfreq=self.sfreq)
        windows.check_not_empty()
        if windows.chs_info is not None or self.channels is not None:
            check_is_fitted(self)  # without fit, each call would pick different channels
            windows = picking.pick_as_fitted(windows, self.chs_info_)
        if hasattr(self, "n_times_"):  # set by fit, which is optional for arrays
            n_chans, n_times = windows[0].shape
            windows_estimator.check_n_chans(self, n_chans)
            windows_estimator.warn_of_length(self, n_times)
        # The key contains everything, except for the window, that determines the features of a
        # window.
        names = tuple(ch["ch_name"] for ch in windows.chs_info or ())
        key = (type(self), repr(sorted(self.get_params().items())), names, windows.sfreq)
        measured = windows_estimator.computed_once(lambda: key, windows, self._measure_windows)
        amplitudes.warn_of_flat_channels(dict(enumerate(measured["flat"])))
        return measured["features"]

    def _measure_windows(self, windows: Windows) -> dict[str, np.ndarray]:
        features: list[np.ndarray] = []
        flat: list[np.ndarray] = []
        for batch in windows.batches(256):
            features.append(self.measure(batch.astype(float), windows.sfreq))
            flat += [*amplitudes.flat_channels(batch)]
        return {"features": np.concatenate(features), "flat": np.stack(flat)}

    @abstractmethod
    def measure(self, batch: np.ndarray, sfreq: float | None) -> np.ndarray:
        """Compute the features of windows: (n_windows, n_chans, n_times) -> (n_windows, ...)."""


def known_rate(sfreq: float | None) -> float:
    """Return the sampling rate in Hz, and check that it is known.

    Raises
    ------
    ValueError
        If ``sfreq`` is None.
    """
    if sfreq is None:
        raise ValueError("The sampling rate of the windows is unknown. Pass it as sfreq, in Hz.")
    return sfreq


class NamedFeatures(WindowFeatures):
    """Base class of features of single channels, whose names are in ``features_``."""

    features_: list[str]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns that ``transform`` returns, such as ``C3_slope``.

        Channels without names are called ``channel0``, ``channel1``, ...

        Parameters
        ----------
        input_features : Any
            Not used, present for API consistency.

        Returns
        -------
        ndarray of str, shape (n_features,)
            One name per column.
        """
        check_is_fitted(self)
        names = [ch["ch_name"] for ch in self.chs_info_ or ()]
        names = names or [f"channel{i}" for i in range(self.n_chans_)]
        return np.array(
            [f"{name}_{feature}" for name in names for feature in self.features_], object
        )


@dataclass(eq=False, repr=False)
class LogBandPower(NamedFeatures):
    """Log band power: absolute and relative power of each channel in seven frequency bands.

    The power is estimated with Welch's method. With a linear classifier, as in
    ``make_pipeline(LogBandPower(), StandardScaler(), LogisticRegression())``, these features are a
    standard baseline for pretrained encoders. Relative power does not depend on the gain of a
    channel or a recording. (The input of the PARS encoder does not depend on the gain either,
    because the signals are normalized.) The frequency bands, from 0.5 to 45 Hz, are in
    :data:`~braindecode_pars.baselines.window_features.BANDS`. Bands with an upper edge above half
    the sampling rate are excluded.

    Parameters
    ----------
    sfreq : float | None
        Sampling rate in Hz. Required if the windows do not contain the sampling rate.
    segment_seconds : float
        Length in seconds of the segments in Welch's method.
    power : "both" | "absolute" | "relative"
        Which powers are computed. ``"absolute"``: power in each band, in the squared unit of the
        signal. ``"relative"``: absolute power divided by the sum of the absolute powers of all
        bands. ``"both"``: absolute and relative power.
    channels : list of str | None
        Names of the channels to use, in this order. If None, all EEG channels that are not marked
        as bad are used. If recordings have different channels, the channels shared by all
        recordings are used.

    Attributes
    ----------
    chs_info_ : list of dict | None
        Channels seen in ``fit``, as in ``mne.Info["chs"]``. :meth:`transform` picks these channels
        by name. None if the channels are unknown.
    bands_ : dict of str to tuple
        Lower and upper edge in Hz of each frequency band that is used, by name. These are the bands
        up to half the sampling rate of the windows of ``fit``.

    Notes
    -----
    The features are natural logarithms of the powers. The columns are ordered by channel. The
    columns of a channel are the absolute powers, then the relative powers, both in the order of the
    bands. In a flat channel, the absolute power is replaced with the smallest positive float32, and
    the relative power is the same in all bands.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation import LogBandPower
    >>> features = LogBandPower(sfreq=100)
    >>> features.fit_transform(np.random.randn(4, 2, 3000)).shape  # 2 channels, 7 bands, 2 powers
    (4, 28)
    """

    segment_seconds: float = 2.0
    power: str = "both"

    def _remember(self, windows: Windows) -> None:
        super()._remember(windows)
        sfreq = known_rate(windows.sfreq)
        self.bands_ = _bands_at(sfreq)
        kinds = ("absolute", "relative") if self.power == "both" else (self.power,)
        self.features_ = [f"{kind}_{name}" for kind in kinds for name in self.bands_]
        _warn_of_bands(self, [name for name in BANDS if name not in self.bands_], sfreq)

    def measure(self, batch: np.ndarray, sfreq: float | None) -> np.ndarray:
        sfreq = known_rate(sfreq)
        bands = _bands_at(sfreq)
        _check_bands(self, bands, getattr(self, "bands_", bands), sfreq)
        segment = min(round(self.segment_seconds * sfreq), batch.shape[-1])
        frequencies, density = welch(batch, sfreq, nperseg=segment)
        powers_of_bands = []
        for name, (low, high) in bands.items():
            inside = (frequencies >= low) & (frequencies <= high)
            if inside.sum() < 2:  # the integral requires two frequencies
                raise ValueError(
                    f"With segments of {segment / sfreq:g} s, the frequency resolution is too low "
                    f"for the band {name} ({low:g} to {high:g} Hz). Use windows of at least 2 s, "
                    "and segment_seconds of at least 2."
                )
            powers_of_bands.append(trapezoid(density[..., inside], frequencies[inside]))
        absolute = np.stack(powers_of_bands, axis=-1)  # (n_windows, n_chans, n_bands)
        # A flat channel has no power. Set its relative power to the same value in all bands.
        total = absolute.sum(axis=-1, keepdims=True)
        equal = np.full_like(absolute, 1 / len(bands))
        relative = np.divide(absolute, total, out=equal, where=total > 0)
        powers = {"absolute": [absolute], "relative": [relative], "both": [absolute, relative]}
        chosen = np.concatenate(powers[self.power], axis=-1)
        # The smallest positive float32 avoids log(0).
        return np.log(np.maximum(chosen, np.finfo(np.float32).tiny)).reshape(len(batch), -1)


def _bands_at(sfreq: float) -> dict[str, tuple[float, float]]:
    """Return the bands with an upper edge of at most half the sampling rate in Hz."""
    return {name: edges for name, edges in BANDS.items() if edges[1] <= sfreq / 2}


def _warn_of_bands(owner: NamedFeatures, excluded: list[str], sfreq: float) -> None:
    """Warn of bands that are excluded because of the sampling rate in Hz."""
    if excluded:
        checks.warn_user(
            f"{type(owner).__name__} excludes some frequency bands "
            f"({checks.format_list(excluded)}), because windows sampled at {sfreq:g} Hz contain no "
            f"frequencies above {sfreq / 2:g} Hz. To include these bands, use a higher sampling "
            "rate."
        )


def _check_bands(owner: NamedFeatures, bands: Any, fitted: Any, sfreq: float) -> None:
    """Check that the bands at the sampling rate in Hz are the same as the bands in ``fit``."""
    if bands != fitted:
        raise ValueError(
            f"X is sampled at {sfreq:g} Hz. At this rate, {type(owner).__name__} uses different "
            "frequency bands than in fit. Resample all recordings to the same sampling rate."
        )


@dataclass(eq=False, repr=False)
class SpatialCovariance(WindowFeatures):
    """Spatial covariance of the channels of each window, with shrinkage.

    With the Riemannian tangent space of pyRiemann, as in ``make_pipeline(SpatialCovariance(),
    pyriemann.tangentspace.TangentSpace(), LogisticRegression())``, the spatial covariance is a
    strong baseline in many benchmarks of brain-computer interfaces (Barachant et al. 2012). In
    contrast to :class:`LogBandPower`, the covariance determines the power of every linear
    combination of channels, but only in a single frequency band.

    The covariance is shrunk toward a multiple of the identity with oracle approximating shrinkage
    (OAS; Chen et al. 2010). It is therefore positive definite even with fewer samples than
    channels, with an average reference, or with a flat channel.

    Parameters
    ----------
    sfreq : float | None
        Sampling rate in Hz. Required only if ``band`` is set and the windows do not contain the
        sampling rate.
    band : tuple of float | None
        Lower and upper edge in Hz of a band-pass filter (Butterworth of order 4, forward and
        backward), such as (8, 30) for motor imagery. Each window is filtered separately, which
        distorts the signal at both ends of the window: a quarter of a second at each end with the
        band (8, 30). If possible, set ``band=None`` and filter the recordings before creating
        windows. If None, the windows are not filtered.
    channels : list of str | None
        As in :class:`LogBandPower`.

    Attributes
    ----------
    chs_info_ : list of dict | None
        As in :class:`LogBandPower`.

    Notes
    -----
    The identity matrix, multiplied by the smallest positive float32, is added to every covariance,
    so that the covariance of a window of zeros is also positive definite.

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

    band: tuple[float, float] | None = None

    def measure(self, batch: np.ndarray, sfreq: float | None) -> np.ndarray:
        estimation = extra_module("pyriemann.estimation")

        if self.band is not None:
            sections = butter(4, self.band, btype="bandpass", fs=known_rate(sfreq), output="sos")
            batch = sosfiltfilt(sections, batch, axis=-1)
        covariances = estimation.Covariances("oas").transform(batch)
        # (n_windows, n_chans, n_chans)
        return covariances + np.finfo(np.float32).tiny * np.eye(batch.shape[1])


@dataclass(eq=False, repr=False)
class LogAmplitude(NamedFeatures):
    r"""Log amplitude (standard deviation) of each channel, absolute and relative.

    Let :math:`s_c` be the standard deviation of channel c over the window. The two features of
    each of the C channels are

    .. math::
        \log s_c \quad\text{and}\quad \log s_c - \frac1C \sum_{k=1}^C \log s_k .

    The features do not depend on the waveform or on the frequencies of the signal. If a method does
    not score higher than a linear classifier on these features, the scores of the method may be
    explained by amplitude alone.

    Parameters
    ----------
    sfreq : float | None
        Sampling rate in Hz. Not required.
    channels : list of str | None
        As in :class:`LogBandPower`.

    Attributes
    ----------
    chs_info_ : list of dict | None
        As in :class:`LogBandPower`.

    Notes
    -----
    The columns are ordered by channel, with two features per channel. The standard deviation of a
    flat channel is replaced with the smallest positive float32.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation import LogAmplitude
    >>> LogAmplitude().fit_transform(np.random.randn(4, 2, 3000)).shape  # 2 channels, 2 features
    (4, 4)
    """

    features_ = ["absolute_amplitude", "relative_amplitude"]  # noqa: RUF012

    def measure(self, batch: np.ndarray, sfreq: float | None) -> np.ndarray:
        log_std = np.log(np.maximum(batch.std(axis=-1), np.finfo(np.float32).tiny))
        relative = log_std - log_std.mean(axis=1, keepdims=True)  # (n_windows, n_chans)
        return np.stack([log_std, relative], axis=-1).reshape(len(batch), -1)


#: Default channels of :class:`~braindecode_pars.evaluation.LowFrequencyAmplitude`: frontal
#: electrodes, at which eye movements have a large amplitude.
FRONTAL = ("Fp1", "Fp2", "F7", "F8")


@dataclass(eq=False, repr=False)
class LowFrequencyAmplitude(NamedFeatures):
    """Low-frequency amplitude: mean voltage of frontal channels in segments of 0.25 s.

    Eye movements, sweat and electrode drift cause slow changes of the voltage, which are largest
    at frontal electrodes. With linear discriminant analysis
    (``LinearProbe(LowFrequencyAmplitude(), classifier="lda")``), these features indicate how well
    the classes can be distinguished by low-frequency activity alone. If a method does not score
    higher than this classifier, the scores of the method may be explained by low-frequency activity
    alone.

    Parameters
    ----------
    sfreq : float | None
        Sampling rate in Hz. Required if the windows do not contain the sampling rate.
    segment_seconds : float
        Length of the segments in seconds. An incomplete segment at the end of a window is not
        used. A window that is shorter than a segment is a single segment.
    channels : list of str | None
        Names of the channels to use, in this order. If None, the frontal channels (Fp1, Fp2, F7 and
        F8) that are shared by all recordings are used. Other spellings, such as ``Fp1.`` or ``EEG
        FP1-REF``, are recognized. If the windows have no channel names, all channels are used.

    Attributes
    ----------
    chs_info_ : list of dict | None
        As in :class:`LogBandPower`.

    Notes
    -----
    The columns are ordered by channel, and by time within a channel. The features have the unit of
    the signal and include the constant offset of the window. High-pass filtering of the recordings
    attenuates these features.

    Examples
    --------
    >>> from braindecode_pars import as_sklearn, datasets
    >>> from braindecode_pars.evaluation import LowFrequencyAmplitude
    >>> X, y, groups = as_sklearn(datasets.mental_arithmetic(["Subject00"]))
    >>> features = LowFrequencyAmplitude(channels=["F3", "F4"])
    >>> features.fit_transform(X).shape  # 2 channels, 40 segments
    (12, 80)
    """

    segment_seconds: float = 0.25

    def _remember(self, windows: Windows) -> None:
        channels = self.channels
        if channels is None:
            with checks.quiet():  # recordings may differ in channels that are not used here
                shared = picking.pick_for_fit(windows).chs_info or []
            names = [ch["ch_name"] for ch in shared]
            positions = channel_names.match_channels(FRONTAL, names)
            channels = [names[i] for i in positions if i is not None] or None
            if names and not channels:
                raise ValueError(
                    "LowFrequencyAmplitude requires at least one of the frontal channels "
                    f"{', '.join(FRONTAL)} that is present in all recordings and not marked as "
                    "bad, but the channels shared by all recordings are "
                    f"{checks.format_list(names)}. Pass the channels to use with channels=[...]."
                )
        self.chs_info_ = picking.pick_for_fit(windows, channels).chs_info
        n_times, sfreq = windows[0].shape[-1], known_rate(windows.sfreq)
        segment = self._segment(n_times, sfreq)
        starts = np.arange(n_times // segment) * segment / sfreq
        self.features_ = [f"mean_from_{start:g}s" for start in starts]

    def _segment(self, n_times: int, sfreq: float | None) -> int:
        """Return the number of samples of a segment."""
        return min(max(1, round(self.segment_seconds * known_rate(sfreq))), n_times)

    def measure(self, batch: np.ndarray, sfreq: float | None) -> np.ndarray:
        n_times = batch.shape[-1]
        segment = self._segment(n_times, sfreq)
        whole = batch[..., : n_times - n_times % segment]
        means = whole.reshape(*batch.shape[:2], -1, segment).mean(axis=-1)
        return means.reshape(len(batch), -1)


#: Names of the features that the functions in ``pretext.features.FEATURES`` return, except for the
#: function that computes the features of frequency bands.
_NAMES = {
    "trend": ("slope", "curvature"),
    "aperiodic": ("exponent",),
    "alpha": ("alpha_frequency", "alpha_height"),
    "hjorth": ("mobility", "complexity"),
    "shape": ("kurtosis", "skewness", "line_length"),
}

#: Number of signals (channels of windows) per batch, which limits the memory for the spectra.
_BATCH_SIZE = 1024


@dataclass(eq=False, repr=False)
class ChannelFeatures(NamedFeatures):
    """Hand-crafted features of each channel: 31 common descriptors of normalized EEG signals.

    The features of a channel are

    - slope and curvature of the signal over the window (trend);
    - log power in seven frequency bands: mean and standard deviation over one-second segments of
      the window, and change from the first to the second half of the window;
    - aperiodic exponent;
    - frequency and height of the alpha peak;
    - Hjorth mobility and complexity;
    - kurtosis, skewness and line length.

    In the pretext task :class:`~braindecode_pars.pretext.SignalFeatures`, an encoder learns to
    predict these features (:data:`~braindecode_pars.pretext.features.FEATURES`). With a linear
    classifier, these features are therefore the baseline for an encoder that was pretrained with
    this task.

    Each channel of a window is first normalized to mean 0 and variance 1, like the input of an
    encoder. The features therefore do not depend on the gain or the amplitude.

    Parameters
    ----------
    sfreq : float | None
        Sampling rate in Hz, which must be at least 30. Required if the windows do not contain the
        sampling rate. At sampling rates below 90 Hz, frequency bands with an upper edge above half
        the sampling rate are excluded.
    channels : list of str | None
        As in :class:`LogBandPower`.

    Attributes
    ----------
    chs_info_ : list of dict | None
        As in :class:`LogBandPower`.
    n_chans_ : int
        Number of channels in the windows of ``fit``.
    features_ : list of str
        Names of the features of a channel.

    Notes
    -----
    The columns are ordered by channel. Windows must be at least two seconds long. The features of a
    flat channel are finite.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation import ChannelFeatures
    >>> features = ChannelFeatures(sfreq=100)
    >>> features.fit_transform(np.random.randn(4, 2, 3000)).shape  # 2 channels, 31 features
    (4, 62)
    >>> features.get_feature_names_out()[:3].tolist()
    ['channel0_slope', 'channel0_curvature', 'channel0_power_0.5-4Hz']
    """

    def _remember(self, windows: Windows) -> None:
        super()._remember(windows)
        sfreq = known_rate(windows.sfreq)
        self.features_ = _features_at(sfreq)
        excluded = [f"{low:g} to {high:g} Hz" for low, high in classical.BANDS if high > sfreq / 2]
        _warn_of_bands(self, excluded, sfreq)

    def measure(self, batch: np.ndarray, sfreq: float | None) -> np.ndarray:
        sfreq = known_rate(sfreq)
        features = _features_at(sfreq)
        _check_bands(self, features, getattr(self, "features_", features), sfreq)
        signals = torch.from_numpy(batch).flatten(0, 1)  # (n_windows * n_chans, n_times)
        measured = []
        for part in instance_norm(signals).split(_BATCH_SIZE):
            tensors = [function(part, sfreq) for function in classical.FEATURES.values()]
            measured.append(torch.cat([tensor.reshape(len(part), -1) for tensor in tensors], dim=1))
        return torch.cat(measured).reshape(len(batch), -1).numpy()


def _features_at(sfreq: float) -> list[str]:
    """Return the names of the features of a channel at a sampling rate in Hz."""
    bands = [f"{low:g}-{high:g}Hz" for low, high in classical.BANDS if high <= sfreq / 2]
    parts = ("power", "power_sd", "power_change")
    names = {**_NAMES, "bands": [f"{part}_{band}" for band in bands for part in parts]}
    return [name for function in classical.FEATURES for name in names[function]]
