"""Features of windows for baselines and votes: power, covariances, voltages, classical features.

Log power in frequency bands, amplitudes alone, slow voltages alone, covariances of the channels for
classifiers of Riemannian geometry, and the classical features that
:class:`~braindecode_pars.pretext.SignalFeatures` predicts. All are computed batch by batch.
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


@dataclass(eq=False, repr=False)
class WindowFeatures(TransformerMixin, BaseEstimator):
    """A transformer of windows that computes the features of each window by itself.

    A subclass computes the features of a batch, and may have further parameters.
    """

    sfreq: float | None = None
    _: KW_ONLY
    channels: list[str] | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Remember the channels of the windows; there is nothing else to learn.

        Parameters
        ----------
        X : windows
            Windows whose channels :meth:`transform` will use. At most one of them is read.
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
        windows_estimator.check_estimator(self)
        windows = convert.as_windows(X, sfreq=self.sfreq)
        windows.check_not_empty()
        self._remember(windows)
        # Arrays have no names of channels; one window tells their number.
        n_chans, self.n_times_ = windows[0].shape
        self.n_chans_ = n_chans if self.chs_info_ is None else len(self.chs_info_)
        return self

    def _remember(self, windows: Windows) -> None:
        """Keep what ``transform`` needs to know of the windows of ``fit``."""
        self.chs_info_ = picking.pick_for_fit(windows, self.channels).chs_info

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
        windows_estimator.check_estimator(self)
        windows = convert.as_windows(X, sfreq=self.sfreq)
        windows.check_not_empty()
        if windows.chs_info is not None or self.channels is not None:
            check_is_fitted(self)  # otherwise each call would pick its own channels
            windows = picking.pick_as_fitted(windows, self.chs_info_)
        if hasattr(self, "n_times_"):  # a pipeline reads no other words
            n_chans, n_times = windows[0].shape
            windows_estimator.check_n_chans(self, n_chans)
            windows_estimator.warn_of_length(self, n_times)
        # What the features of a window depend on, apart from the window
        names = tuple(ch["ch_name"] for ch in windows.chs_info or ())
        learned = repr((sorted(self.get_params().items()), getattr(self, "bands_", None)))
        measured = windows_estimator.computed_once(
            lambda: (type(self), learned, names, windows.sfreq), windows, self._measure_windows
        )
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


class NamedFeatures(WindowFeatures):
    """Features of which each channel has the same ones, with names in ``features_`` after fit."""

    features_: list[str]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the column names of ``transform``, such as ``C3_slope``.

        Channels without names are ``channel0``, ``channel1``, ...

        Parameters
        ----------
        input_features : Any
            Not used; scikit-learn passes it.

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
    """Logarithm of the power in seven frequency bands, absolute and relative, for each channel.

    The power is estimated with Welch's method. With a linear classifier, as in
    ``make_pipeline(LogBandPower(), StandardScaler(), LogisticRegression())``, these features are
    the baseline for every pretrained encoder. Relative power does not depend on the gain of a
    channel or subject; neither does the input of PARS, because of its instance norm. The bands are
    :data:`~braindecode_pars.baselines.window_features.BANDS`, from 0.5 to 45 Hz. Those that reach
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

    segment_seconds: float = 2.0
    power: str = "both"

    def _remember(self, windows: Windows) -> None:
        super()._remember(windows)
        rate = windows.sfreq
        self.bands_ = None if rate is None else _bands_below(rate / 2)
        kinds = ("absolute", "relative") if self.power == "both" else (self.power,)
        self.features_ = [f"{kind}_{name}" for kind in kinds for name in self.bands_ or ()]
        _warn_of_bands(self, [name for name in BANDS if name not in (self.bands_ or BANDS)], rate)

    def measure(self, batch: np.ndarray, sfreq: float | None) -> np.ndarray:
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


def _warn_of_bands(owner: NamedFeatures, left_out: list[str], sfreq: float | None) -> None:
    """Warn of bands that a sampling rate in Hz does not allow."""
    if left_out:
        checks.warn_user(
            f"{type(owner).__name__} leaves out the bands {checks.format_list(left_out)}: there are no "
            f"frequencies above {known_rate(sfreq) / 2:g} Hz in windows at {sfreq:g} Hz."
        )


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
        backward), such as (8, 30) for motor imagery. It runs over each window by itself, which for
        this band distorts the first and the last quarter of a second. Filter the recordings before
        cutting where that is possible. None does not filter.
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

    band: tuple[float, float] | None = None

    def measure(self, batch: np.ndarray, sfreq: float | None) -> np.ndarray:
        estimation = extra_module("pyriemann.estimation")

        n_chans, n_times = batch.shape[1:]
        if n_times < 2:
            raise ValueError("Windows of one sample have no covariance; use longer windows.")
        if self.band is not None:
            sections = butter(4, self.band, btype="bandpass", fs=known_rate(sfreq), output="sos")
            # SciPy's own padding, or less for short windows.
            padding = min(3 * (2 * len(sections) + 1), n_times - 1)
            batch = sosfiltfilt(sections, batch, axis=-1, padlen=padding)
        covariances = estimation.Covariances("oas").transform(
            batch
        )  # (n_windows, n_chans, n_chans)
        return covariances + np.finfo(np.float32).tiny * np.eye(n_chans)


@dataclass(eq=False, repr=False)
class LogAmplitude(NamedFeatures):
    r"""Logarithm of the standard deviation of each channel, absolute and relative: amplitudes only.

    With :math:`s_c` the standard deviation of channel c over the window, the features of one of C
    channels are

    .. math::
        \log s_c \quad\text{and}\quad \log s_c - \frac1C \sum_{k=1}^C \log s_k .

    They hold nothing of the waveform or of frequencies. A method that is not better than a linear
    classifier on them has not shown that it uses more than amplitudes.

    Parameters
    ----------
    sfreq : float | None
        Sampling rate in Hz, which is not needed.
    channels : list of str | None
        As in :class:`LogBandPower`.

    Attributes
    ----------
    chs_info_ : list of dict | None
        As in :class:`LogBandPower`.

    Notes
    -----
    The columns are the two features of the first channel, then those of the second, and so on. A
    flat channel has the smallest float32 as its standard deviation.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation import LogAmplitude
    >>> LogAmplitude().fit_transform(np.random.randn(4, 2, 3000)).shape
    (4, 4)
    """

    features_ = ["absolute_amplitude", "relative_amplitude"]  # noqa: RUF012

    def measure(self, batch: np.ndarray, sfreq: float | None) -> np.ndarray:
        log_std = np.log(np.maximum(batch.std(axis=-1), np.finfo(np.float32).tiny))
        relative = log_std - log_std.mean(axis=1, keepdims=True)  # (n_windows, n_chans)
        return np.stack([log_std, relative], axis=-1).reshape(len(batch), -1)


#: Frontal electrodes, where eye movements are large, of
#: :class:`~braindecode_pars.evaluation.LowFrequencyAmplitude`.
FRONTAL = ("Fp1", "Fp2", "F7", "F8")


@dataclass(eq=False, repr=False)
class LowFrequencyAmplitude(NamedFeatures):
    """Mean voltage of frontal channels in each quarter of a second: slow voltages only.

    Eye movements, sweat and electrode drift change the voltage slowly, and most at the forehead.
    With linear discriminant analysis (``LinearProbe(LowFrequencyAmplitude(), classifier="lda")``), these
    features show how well such signals alone tell the classes apart. A method that is not better
    may use the same signals, whatever its task is meant to measure.

    Parameters
    ----------
    sfreq : float | None
        Sampling rate in Hz; required when the windows do not contain it.
    segment_seconds : float
        Length of the segments in seconds. The rest at the end of a window that is shorter is left
        out. A window that is shorter than a segment is one segment.
    channels : list of str | None
        Names of the channels to use, in this order. None uses those of Fp1, Fp2, F7 and F8 that all
        recordings have, in whatever spelling (``Fp1.``, ``EEG FP1-REF``); of windows without
        channel names, all channels.

    Attributes
    ----------
    chs_info_ : list of dict | None
        As in :class:`LogBandPower`.

    Notes
    -----
    The columns are the means of the first channel in the order of time, in the unit of the signal,
    then those of the second channel, and so on. They contain the constant offset of a window. A
    high-pass filter of the recordings removes a part of what they measure.

    Examples
    --------
    >>> from braindecode_pars import as_sklearn, datasets
    >>> from braindecode_pars.evaluation import LowFrequencyAmplitude
    >>> X, y, groups = as_sklearn(datasets.mental_arithmetic(["Subject00"]))
    >>> LowFrequencyAmplitude(channels=["F3", "F4"]).fit_transform(X).shape  # 2 channels, 40 segments
    (12, 80)
    """

    segment_seconds: float = 0.25

    def _remember(self, windows: Windows) -> None:
        channels, montages = self.channels, windows.montages
        has_names = windows.chs_info is not None and all(chans.chs_info for chans in montages)
        if channels is None and has_names:
            good = [[name for name in chans.names if name not in chans.bads] for chans in montages]
            places = [channel_names.match_channels(FRONTAL, names) for names in good]
            channels = [n for n, *place in zip(FRONTAL, *places, strict=True) if None not in place]
            if not channels:
                names = checks.format_list(channel_names.odd_first(montages[0].names))
                raise ValueError(
                    f"LowFrequencyAmplitude uses {checks.format_list(FRONTAL)}, but none of them is a good "
                    f"channel of all recordings; the first has {names}. List the channels to use "
                    "in channels=."
                )
        self.chs_info_ = picking.pick_for_fit(windows, channels).chs_info
        n_times, rate = windows[0].shape[-1], windows.sfreq
        segment = self._segment(n_times, rate or 1.0)
        starts = np.arange(n_times // segment) * segment / (rate or 1.0)
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


#: Names of what the functions in ``pretext.features.FEATURES`` return, but for the bands.
_NAMES = {
    "trend": ("slope", "curvature"),
    "aperiodic": ("exponent",),
    "alpha": ("alpha_frequency", "alpha_height"),
    "hjorth": ("mobility", "complexity"),
    "shape": ("kurtosis", "skewness", "line_length"),
}

#: Number of signals that are measured at once, since a spectrum takes more memory than its signal.
_AT_ONCE = 1024


@dataclass(eq=False, repr=False)
class ChannelFeatures(NamedFeatures):
    """Classical features of each channel, normalized: 31 numbers that people measure in EEG.

    They are those of :data:`~braindecode_pars.pretext.features.FEATURES`, which
    :class:`~braindecode_pars.pretext.SignalFeatures` teaches an encoder: slope and curvature;
    mean, standard deviation and change of the log power in seven bands; aperiodic exponent;
    frequency and height of alpha; Hjorth's mobility and complexity; kurtosis, skewness and line
    length. With a linear classifier they are the baseline of such an encoder.

    Each channel of a window is normalized to mean 0 and variance 1 first, as the signals of an
    encoder are. The features do not depend on the gain, and know nothing of amplitudes.

    Parameters
    ----------
    sfreq : float | None
        Sampling rate in Hz; required when the windows do not contain it. It is at least 30. Below
        90 Hz, bands that reach beyond half of it are left out.
    channels : list of str | None
        As in :class:`LogBandPower`.

    Attributes
    ----------
    chs_info_ : list of dict | None
        As in :class:`LogBandPower`.
    n_chans_ : int
        Number of channels of the windows of ``fit``.
    features_ : list of str
        Names of the features of a channel.

    Notes
    -----
    The columns are those of the first channel, then of the second, and so on. Windows have two
    seconds or more. A flat channel has finite features.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation import ChannelFeatures
    >>> features = ChannelFeatures(sfreq=100)
    >>> features.fit_transform(np.random.randn(4, 2, 3000)).shape
    (4, 62)
    >>> features.get_feature_names_out()[:3].tolist()
    ['channel0_slope', 'channel0_curvature', 'channel0_power_0.5-4Hz']
    """

    def _remember(self, windows: Windows) -> None:
        super()._remember(windows)
        sfreq = known_rate(windows.sfreq)
        self.features_ = _features_at(sfreq)
        left_out = [f"{low:g} to {high:g} Hz" for low, high in classical.BANDS if high > sfreq / 2]
        _warn_of_bands(self, left_out, sfreq)

    def measure(self, batch: np.ndarray, sfreq: float | None) -> np.ndarray:
        sfreq = known_rate(sfreq)
        features = _features_at(sfreq)
        if getattr(self, "features_", features) != features:  # arrays need no fit
            raise ValueError(
                f"The windows are at {sfreq:g} Hz, which allows other bands than the sampling rate "
                "of fit; resample them to one rate."
            )
        signals = torch.from_numpy(batch).flatten(0, 1)  # (n_windows * n_chans, n_times)
        measured = []
        for part in instance_norm(signals).split(_AT_ONCE):
            tensors = [function(part, sfreq) for function in classical.FEATURES.values()]
            measured.append(torch.cat([tensor.reshape(len(part), -1) for tensor in tensors], dim=1))
        return torch.cat(measured).reshape(len(batch), -1).numpy()


def _features_at(sfreq: float) -> list[str]:
    """Return the names of the features of a channel, with the bands that a rate in Hz allows."""
    if sfreq < 30:  # the features of alpha reach up to 14 Hz
        raise ValueError(
            f"ChannelFeatures needs a sampling rate of 30 Hz or more, not {sfreq:g} Hz."
        )
    bands = [f"{low:g}-{high:g}Hz" for low, high in classical.BANDS if high <= sfreq / 2]
    parts = ("power", "power_sd", "power_change")
    names = {**_NAMES, "bands": [f"{part}_{band}" for band in bands for part in parts]}
    return [name for function in classical.FEATURES for name in names[function]]
