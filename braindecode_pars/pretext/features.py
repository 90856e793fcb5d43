"""Hand-crafted features of EEG signals, and pretext tasks that predict these features.

The features are trend, log band power, aperiodic exponent, alpha peak, Hjorth parameters, and shape
of the amplitude distribution. Each of these is computed by one function, which accepts normalized
signals, shape (batch, n_times), and their sampling rate.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from braindecode_pars._common import checks
from braindecode_pars.encoder import PatchEncoder
from braindecode_pars.models.space_time import SpaceTimeEncoder
from braindecode_pars.pretext.base import AllChannelTask, channel_weights, register
from braindecode_pars.pretext.grid import GridTask, take
from braindecode_pars.tokens import grid_patches, instance_norm

__all__ = [
    *("FEATURES", "SignalFeatures", "SpaceTimeFeatures"),
    *("alpha", "aperiodic", "bands", "hjorth", "shape", "trend"),
]

#: Lower and upper edges of the frequency bands in Hz. The lower edge is included in the band, and
#: the upper edge is excluded.
BANDS = ((0.5, 4), (4, 8), (8, 10), (10, 13), (13, 20), (20, 30), (30, 45))

#: Frequency range of the linear fit to the log-log spectrum, in Hz.
_FIT_RANGE = (2, 40)

#: Frequency range of the alpha peak, in Hz.
_ALPHA_RANGE = (7, 14)

#: Constant added to power spectral densities, in 1/Hz, so that their logarithms are finite. For
#: comparison, in signals of variance 1 that are sampled at 128 Hz, white noise has a density of
#: 0.016, and EEG has a density of about 1e-4 at 40 Hz.
_DENSITY_FLOOR = 1e-8

#: Constant added to moments and to the line length, so that logarithms and ratios are finite.
_MOMENT_FLOOR = 1e-10


def trend(x: Tensor, sfreq: float) -> Tensor:
    r"""Return the slope and the curvature of signals, from a least-squares fit of a parabola.

    The parabola :math:`x(t) \approx a + b\,t + c\,t^2` is fitted to each signal. The time :math:`t`
    is -1 at the first sample and 1 at the last sample. The features are the slope :math:`b` and the
    curvature :math:`c`, in the unit of the signal. For a normalized signal, this unit is the
    standard deviation of the original signal.

    Parameters
    ----------
    x : Tensor of float32 or float64, shape (batch, n_times)
        Signals.
    sfreq : float
        Sampling rate in Hz. It is not used, but all functions that compute features have this
        argument.

    Returns
    -------
    Tensor, shape (batch, 2)
        Slope and curvature.

    References
    ----------
    Savitzky and Golay 1964, Analytical Chemistry 36, 1627: polynomials fitted to samples.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext.features import trend
    >>> t = torch.linspace(-1, 1, 300)
    >>> trend((2 * t + 3 * t**2)[None], 100).round(decimals=3)
    tensor([[2., 3.]])
    """
    t = torch.linspace(-1, 1, x.shape[-1], dtype=x.dtype, device=x.device)
    # The three terms of the parabola are orthogonal, so they can be fitted separately.
    parts = (t, t.square() - t.square().mean())
    return torch.stack([(x * part).sum(-1) / part.square().sum() for part in parts], dim=-1)


def bands(x: Tensor, sfreq: float) -> Tensor:
    r"""Return the log band power in seven bands: mean, standard deviation and change over time.

    The signal is cut into segments of one second with an overlap of 50 %. The mean of each segment
    is subtracted, and the segment is multiplied by a Hann window :math:`w`. The power spectral
    density of segment :math:`s` is

    .. math::
        P_{s}(f) = \frac{2}{\texttt{sfreq} \sum_n w_n^2} \Bigl| \sum_n w_n (x_{sn} - \bar x_s)
        e^{-2 \pi i f n / \texttt{sfreq}} \Bigr|^2 ,

    as in Welch's method. The bands are 0.5 to 4, 4 to 8, 8 to 10, 10 to 13, 13 to 20, 20 to 30 and
    30 to 45 Hz; the lower edge is included, and the upper edge is excluded. In each band, the log
    band power :math:`L_s` is the natural logarithm of the mean of :math:`P_s + 10^{-8}` over the
    frequencies of the band. The three features of a band are the mean of :math:`L_s` over all
    segments, the standard deviation of :math:`L_s`, and the change of :math:`L_s` over time: the
    mean in the second half of the segments minus the mean in the first half. For normalized
    signals, whose variance is 1, densities are in 1/Hz, and the log band power is relative to the
    variance of the original signal.

    Bands that end above half the sampling rate are excluded.

    Parameters
    ----------
    x : Tensor of float32 or float64, shape (batch, n_times)
        Signals of at least two seconds.
    sfreq : float
        Sampling rate in Hz, at least 30.

    Returns
    -------
    Tensor, shape (batch, 3 * n_bands)
        Mean, standard deviation and change for each band. At sampling rates of 90 Hz or more, there
        are seven bands and 21 features.

    Raises
    ------
    ValueError
        If the signals are shorter than two seconds, or the sampling rate is below 30 Hz.

    References
    ----------
    Welch 1967, IEEE Transactions on Audio and Electroacoustics 15, 70.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext.features import bands
    >>> rhythm = torch.sin(2 * torch.pi * 9 * torch.arange(384) / 128)
    >>> means = bands(rhythm[None], 128)[0, ::3]
    >>> means.argmax().item()  # the third band, 8 to 10 Hz
    2
    """
    frequencies, density = _spectra(x, sfreq)
    features = []
    for low, high in (band for band in BANDS if band[1] <= sfreq / 2):
        in_band = _indices((frequencies >= low) & (frequencies < high), x)
        power = torch.log(density[..., in_band].mean(-1) + _DENSITY_FLOOR)  # (batch, n_segments)
        half = power.shape[1] // 2
        change = power[:, -half:].mean(1) - power[:, :half].mean(1)
        features += [power.mean(1), power.std(1, correction=0), change]
    return torch.stack(features, dim=-1)


def aperiodic(x: Tensor, sfreq: float) -> Tensor:
    r"""Return the aperiodic exponent: the negative slope of the log-log power spectrum.

    The power spectral densities of segments of one second, computed as in :func:`bands`, are
    averaged over segments. The logarithm of this mean density :math:`P(f)` is approximated by a
    linear function of the logarithm of the frequency,

    .. math::
        \log\bigl(P(f) + 10^{-8}\bigr) \approx c - \chi \log f , \qquad
        2 \le f \le 40 \text{ Hz and below half the sampling rate,}

    where the exponent :math:`\chi` has no unit. It is estimated as the negative median of the
    slopes between all pairs of frequencies (Theil-Sen estimator). This estimator is robust: an
    oscillation, or any other change of the power at up to 29 % of the frequencies, has only a
    limited effect on the exponent.

    Parameters
    ----------
    x, sfreq
        As in :func:`bands`.

    Returns
    -------
    Tensor, shape (batch,)
        Aperiodic exponent of each signal.

    Raises
    ------
    ValueError
        As in :func:`bands`.

    References
    ----------
    Donoghue et al. 2020, Nature Neuroscience 23, 1655. Sen 1968, Journal of the American
    Statistical Association 63, 1379.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext.features import aperiodic
    >>> _ = torch.manual_seed(0)
    >>> white = torch.randn(1, 12800)
    >>> brown = white.cumsum(dim=1)
    >>> [round(aperiodic(x, 128).item()) for x in (white, brown)]  # spectra 1 and 1 / f^2
    [0, 2]
    """
    return _fit_aperiodic(x, sfreq)[-1]


def alpha(x: Tensor, sfreq: float) -> Tensor:
    r"""Return the frequency of the alpha peak in Hz, and its height above the aperiodic component.

    The residual :math:`r(f)` is the natural log power minus the linear fit of :func:`aperiodic`,
    shifted so that the median of :math:`r(f)` over frequencies is zero. The peak frequency is the
    mean of the frequencies from 7 to 14 Hz, weighted by :math:`e^{2 r(f)}`. The peak height is the
    maximum of the residuals in this range:

    .. math::
        \frac{\sum_f f\, e^{2 r(f)}}{\sum_f e^{2 r(f)}} \qquad \text{and} \qquad \max_f r(f) .

    Parameters
    ----------
    x, sfreq
        As in :func:`bands`.

    Returns
    -------
    Tensor, shape (batch, 2)
        Peak frequency in Hz, and peak height (a difference of natural logarithms, without unit).

    Raises
    ------
    ValueError
        As in :func:`bands`.

    References
    ----------
    Klimesch 1999, Brain Research Reviews 29, 169, for the frequency as a center of gravity.
    Donoghue et al. 2020, Nature Neuroscience 23, 1655, for the height above the aperiodic
    component.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext.features import alpha
    >>> _ = torch.manual_seed(0)
    >>> rhythm = torch.sin(2 * torch.pi * 11 * torch.arange(1280) / 128)
    >>> alpha((rhythm + torch.randn(1280))[None], 128)[0, 0].round(decimals=1)  # in Hz
    tensor(11.)
    """
    numpy_frequencies, frequencies, residuals, _ = _fit_aperiodic(x, sfreq)
    low, high = _ALPHA_RANGE
    in_range = _indices((numpy_frequencies >= low) & (numpy_frequencies <= high), x)
    residuals = residuals[:, in_range]
    peak = (torch.softmax(2 * residuals, dim=-1) * frequencies[in_range]).sum(-1)
    return torch.stack([peak, residuals.amax(-1)], dim=-1)


def hjorth(x: Tensor, sfreq: float) -> Tensor:
    r"""Return the logarithms of the Hjorth parameters mobility and complexity.

    Let :math:`x'` and :math:`x''` be the first and second differences of the samples, and
    :math:`m(x) = \sqrt{\operatorname{var} x' / \operatorname{var} x}`. The features are

    .. math::
        \log\bigl(\texttt{sfreq}\; m(x)\bigr) \qquad \text{and} \qquad \log \frac{m(x')}{m(x)} .

    Mobility is in 1/s, and complexity has no unit.

    Parameters
    ----------
    x : Tensor of float32 or float64, shape (batch, n_times)
        Signals.
    sfreq : float
        Sampling rate in Hz.

    Returns
    -------
    Tensor, shape (batch, 2)
        Logarithms of mobility and complexity.

    References
    ----------
    Hjorth 1970, Electroencephalography and Clinical Neurophysiology 29, 306.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext.features import hjorth
    >>> rhythm = torch.sin(2 * torch.pi * 5 * torch.arange(2000) / 1000)
    >>> hjorth(rhythm[None], 1000).exp().round(decimals=1)  # mobility 2 * pi * 5, complexity 1
    tensor([[31.4000,  1.0000]])
    """
    first = x.diff()
    variances = [y.var(-1, correction=0) + _MOMENT_FLOOR for y in (x, first, first.diff())]
    log_m, log_m_of_difference = (torch.log(b / a) / 2 for a, b in pairwise(variances))
    return torch.stack([log_m + math.log(sfreq), log_m_of_difference - log_m], dim=-1)


def shape(x: Tensor, sfreq: float) -> Tensor:
    r"""Return features of the shape of signals: log kurtosis, tanh of skewness, log line length.

    The central moment :math:`m_k` is the mean of :math:`(x - \bar x)^k`. The features are

    .. math::
        \log \frac{m_4}{m_2^2} , \qquad \tanh \frac{m_3}{m_2^{3/2}} , \qquad
        \log \Bigl( \texttt{sfreq}\; \overline{|x_{n+1} - x_n|} \Bigr) .

    Kurtosis and skewness have no unit; a normal distribution has a kurtosis of 3. The last feature
    is the logarithm of the line length, which is in the unit of the signal per second.

    Parameters
    ----------
    x : Tensor of float32 or float64, shape (batch, n_times)
        Signals.
    sfreq : float
        Sampling rate in Hz.

    Returns
    -------
    Tensor, shape (batch, 3)
        Log kurtosis, tanh of skewness, and log line length. All three are finite, even for flat
        signals.

    References
    ----------
    Joanes and Gill 1998, The Statistician 47, 183, for the moments. Esteller et al. 2001,
    Proceedings of the 23rd Annual Conference of the IEEE EMBS, for the line length.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext.features import shape
    >>> square = torch.tensor([[-1.0, 1.0] * 100])
    >>> shape(square, 1).exp().round(decimals=2)  # kurtosis 1, exp(tanh(skewness 0)), line length 2
    tensor([[1., 1., 2.]])
    """
    centered = x - x.mean(-1, keepdim=True)
    second, third, fourth = (centered.pow(power).mean(-1) for power in (2, 3, 4))
    # No distribution has a kurtosis below 1.
    kurtosis = torch.log((fourth / (second.square() + _MOMENT_FLOOR)).clamp(min=1))
    skewness = torch.tanh(third / (second.pow(1.5) + _MOMENT_FLOOR))
    length = torch.log(sfreq * x.diff().abs().mean(-1) + _MOMENT_FLOOR)
    return torch.stack([kurtosis, skewness, length], dim=-1)


def _spectra(x: Tensor, sfreq: float) -> tuple[np.ndarray, Tensor]:
    """Return frequencies, and power spectral densities, (batch, n_segments, n_frequencies).

    The frequencies are a NumPy array, so that selecting frequencies does not make the CPU wait for
    the GPU.
    """
    if sfreq < 30:
        raise ValueError(
            "The features 'bands', 'aperiodic' and 'alpha' include frequencies up to 14 Hz, so "
            f"they require a sampling rate of at least 30 Hz, got {sfreq:g} Hz. Use a higher "
            "sampling rate. In a pretext task, you can instead omit these features, for example "
            "with features=['trend', 'hjorth', 'shape']."
        )
    if x.shape[-1] < round(2 * sfreq):
        raise ValueError(
            "The features 'bands', 'aperiodic' and 'alpha' require windows of at least two "
            f"seconds, got {x.shape[-1]} samples at {sfreq:g} Hz. Use longer windows. In a "
            "pretext task, you can instead omit these features, for example with "
            "features=['trend', 'hjorth', 'shape']."
        )
    n_samples = round(sfreq)
    segments = x.unfold(-1, n_samples, n_samples // 2)
    window = torch.hann_window(n_samples, dtype=x.dtype, device=x.device)
    segments = (segments - segments.mean(-1, keepdim=True)) * window
    density = torch.fft.rfft(segments).abs().square() / (sfreq * window.square().sum())
    density[..., 1 : (n_samples + 1) // 2] *= 2  # add the power at negative frequencies
    numbers = np.arange(density.shape[-1], dtype=np.float64 if x.dtype == torch.float64 else "f4")
    return numbers * (float(sfreq) / n_samples), density


def _indices(mask: np.ndarray, x: Tensor) -> Tensor:
    """Return the indices of True in a mask, which must be contiguous, on the device of ``x``."""
    first = int(mask.argmax())
    return torch.arange(first, first + int(mask.sum()), device=x.device)


def _fit_aperiodic(x: Tensor, sfreq: float) -> tuple[np.ndarray, Tensor, Tensor, Tensor]:
    """Fit a linear function to the log-log power spectrum of each signal.

    Returns
    -------
    numpy_frequencies : ndarray, shape (n_frequencies,)
        Frequencies of the fit in Hz.
    frequencies : Tensor, shape (n_frequencies,)
        The same frequencies, on the device of ``x``.
    residuals : Tensor, shape (batch, n_frequencies)
        Log power minus the fit.
    exponents : Tensor, shape (batch,)
        Aperiodic exponents: negative slopes of the fit.
    """
    numpy_frequencies, density = _spectra(x, sfreq)
    low, high = _FIT_RANGE
    is_fitted = (numpy_frequencies >= low) & (numpy_frequencies <= high)
    is_fitted &= numpy_frequencies < float(sfreq) / 2
    fitted = _indices(is_fitted, x)
    frequencies = fitted.to(x.dtype) * (sfreq / round(sfreq))
    log_f, log_p = frequencies.log(), torch.log(density[..., fitted].mean(1) + _DENSITY_FLOOR)
    first, second = torch.triu_indices(len(log_f), len(log_f), offset=1, device=x.device)
    slope = _median((log_p[:, second] - log_p[:, first]) / (log_f[second] - log_f[first]))
    offsets = log_p - slope[:, None] * log_f
    residuals = offsets - _median(offsets)[:, None]
    return numpy_frequencies[is_fitted], frequencies, residuals, -slope


def _median(values: Tensor) -> Tensor:
    """Return the median of each row; for rows of even length, the mean of the two middle values."""
    ranks = {(values.shape[1] + 1) // 2, values.shape[1] // 2 + 1}
    middle = [values.kthvalue(rank, dim=-1).values for rank in ranks]
    return torch.stack(middle).mean(0)


#: Features of :class:`~braindecode_pars.pretext.SignalFeatures`: name -> function.
FEATURES: dict[str, Callable[[Tensor, float], Tensor]] = {
    function.__name__: function for function in (trend, bands, aperiodic, alpha, hjorth, shape)
}

_RULES = dict(
    sfreq=checks.optional(checks.positive()),
    features=checks.optional(
        checks.instance(
            "a list of feature names, a dict that maps names to functions", list, tuple, Mapping
        )
    ),
)


@register("features")
class SignalFeatures(GridTask):
    r"""Pretext task that predicts hand-crafted EEG features of a single-channel crop.

    A crop is a random segment of one channel. The output of the encoder is averaged over time, and
    one linear layer predicts features of the whole crop. By default, there are 31 features, such as
    log band power, the aperiodic exponent and Hjorth mobility. The target features are computed
    from the normalized signal, standardized, and clipped to five standard deviations. The loss is
    the mean squared error. The training history also contains the loss of each entry of
    ``features``.

    The task can also be learned on noise, so a low loss does not show that the encoder has learned
    anything specific to brain activity. This task is not part of the PARS paper.

    Related work: PASE predicts features of speech, such as the log power spectrum and prosody, at
    each time point and in combination with contrastive tasks. In contrast, SignalFeatures predicts
    features of a whole crop. Frequency pretraining, a method for sleep staging, predicts the
    frequencies of synthetic signals, which are random sums of sines. In contrast, SignalFeatures
    can be trained on recorded EEG (or on any other signals), from which it computes its targets.

    Parameters
    ----------
    n_times : int
        Number of samples in a crop: at least two patches and, for the features ``bands``,
        ``aperiodic`` and ``alpha``, at least two seconds.
    patch_size : int
        Number of samples in a patch.
    sfreq : float | None
        Sampling rate in Hz; required. :func:`~braindecode_pars.pretraining.pretrain_encoder`, the
        estimators and the runs pass the sampling rate of the windows automatically.
    encoder : PatchEncoder | None
        Encoder to train in place. If None, a new encoder is built from ``encoder_arguments``.
    features : list of str | dict of str to callable | None
        List of names in :data:`~braindecode_pars.pretext.features.FEATURES`, or dict that maps
        names to functions, such as ``{**FEATURES, "range": function}``. A function accepts
        normalized signals, float32 of shape (batch, n_times), and ``sfreq``. It returns one or
        several numbers per signal, shape (batch,) or (batch, n), which should be of the order of 1.
        Functions are not saved with an encoder. If None, all entries of FEATURES are used.
    mask_ratio : float
        Fraction of the patches that are masked, in [0, 1); at least one patch is visible. If 0, the
        encoder processes the whole crop. If above 0, the features of the whole crop have to be
        predicted from the visible patches.
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.PatchEncoder`, used if ``encoder`` is None.

    Attributes
    ----------
    n_patches, n_masked : int
        Number of patches in a crop, and number of masked patches.
    mean, scale : Tensor, shape (n_features,)
        Mean and standard deviation of the features in the training signals, saved with the task.
        Before the call of :meth:`prepare`, they are 0 and 1.

    Raises
    ------
    ValueError
        If the sampling rate is missing or too low, the crops are too short, a feature is unknown
        or not finite, or another argument is out of range.
    TypeError
        If an argument, or the result of a function in ``features``, has the wrong type.

    Warns
    -----
    UserWarning
        If frequency bands are excluded because they end above half the sampling rate.

    References
    ----------
    Pascual et al. 2019, Learning problem-agnostic speech representations from multiple
    self-supervised tasks (PASE), arXiv:1904.03416. Grieger et al. 2024, Data-efficient sleep
    staging with synthetic time series pretraining, arXiv:2403.08592.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext import SignalFeatures
    >>> task = SignalFeatures(3000, 100, sfreq=100, embed_dim=32, num_layers=1)
    >>> task.prepare(lambda n: torch.randn(n, 3000))
    >>> prediction, target = task(torch.randn(2, 3000))
    >>> prediction.shape, target.shape
    (torch.Size([2, 31]), torch.Size([2, 31]))
    """

    criterion = nn.MSELoss

    #: Maximum absolute value of the targets, in standard deviations; larger values are clipped.
    LIMIT = 5.0

    #: Number of signals from which the mean and the standard deviation of features are computed.
    N_PREPARED = 2000

    def __init__(
        self,
        n_times: int,
        patch_size: int = 200,
        *,
        sfreq: float | None = None,
        encoder: PatchEncoder | None = None,
        features: Iterable[str] | Mapping[str, Callable[[Tensor, float], Tensor]] | None = None,
        mask_ratio: float = 0.0,
        **encoder_arguments: Any,
    ):
        checks.check_parameters(locals(), _RULES, type(self).__name__)
        params = dict(encoder=encoder, mask_ratio=mask_ratio, **encoder_arguments)
        super().__init__(n_times, patch_size, **params)
        if sfreq is None:
            raise ValueError(
                f"{type(self).__name__} requires the sampling rate of the signals, got sfreq=None. "
                'Pass sfreq in Hz, or pretext_params={"sfreq": ...} in an estimator.'
            )
        self.sfreq = float(sfreq)
        features = FEATURES if features is None else features
        if not features:
            raise ValueError(
                "features is empty. Pass at least one feature, or None for all features."
            )
        if not isinstance(features, Mapping):
            if unknown := [repr(name) for name in features if name not in [*FEATURES]]:
                raise ValueError(
                    f"features contains unknown names: {checks.format_list(unknown)}. The known "
                    f"names are {checks.format_list(list(FEATURES))}. To use your own features, "
                    "pass a dict that maps each name to its function."
                )
            features = {name: FEATURES[name] for name in features}
        self.features = dict(features)
        # Number of values that each function returns per signal
        noise = torch.randn(2, self.n_times, generator=torch.Generator().manual_seed(0))
        self._sizes = {name: part.shape[1] for name, part in self._parts(noise).items()}
        excluded = [f"{low:g} to {high:g} Hz" for low, high in BANDS if high > self.sfreq / 2]
        if bands in self.features.values() and excluded:
            checks.warn_user(
                f"{type(self).__name__} excludes some frequency bands "
                f"({checks.format_list(excluded)}), because signals sampled at {self.sfreq:g} Hz "
                f"contain no frequencies above {self.sfreq / 2:g} Hz. To include these bands, use "
                "a higher sampling rate."
            )
        n_features = sum(self._sizes.values())
        self.head = nn.Linear(self.encoder.embed_dim, n_features)
        self.mean: Tensor
        self.scale: Tensor
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("scale", torch.ones(n_features))

    def prepare(self, draw: Callable[[int], Tensor]) -> None:
        """Compute the mean and the standard deviation of features in random training signals.

        Parameters
        ----------
        draw : callable
            As in :meth:`PretextTask.prepare <braindecode_pars.pretext.PretextTask.prepare>`. The
            function is called once, to draw 2,000 signals.

        Raises
        ------
        ValueError
            If a feature is not finite in a signal. The message contains the name of the feature.
        """
        signals = draw(self.N_PREPARED).to(self.mean.device)
        # In batches, because a spectrum requires more memory than its signal.
        parts = [self.measured(self.normalized(part)) for part in signals.split(256)]
        features = torch.cat(parts).cpu().double()
        for name, values in zip(
            self._sizes, features.split(list(self._sizes.values()), 1), strict=True
        ):
            if not values.isfinite().all():
                raise ValueError(
                    f"The feature {name!r} is NaN or infinite in some training signals. Remove "
                    "it from features, or correct the function that computes it."
                )
        scale, mean = torch.std_mean(features, dim=0, correction=0)
        self.mean.copy_(mean)
        self.scale.copy_(scale + 1e-4)  # for features with zero variance

    def measured(self, x: Tensor) -> Tensor:
        """Compute the features of signals, without standardization.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            Normalized signals.

        Returns
        -------
        Tensor of float32 (float64 for float64 signals), shape (batch, n_features)
            Features in their original units, in the order of ``features``.
        """
        return torch.cat(list(self._parts(x).values()), dim=1)

    @torch.no_grad()
    def _parts(self, x: Tensor) -> dict[str, Tensor]:
        """Return the result of each function, as a tensor of shape (batch, n)."""
        x = x.to(torch.promote_types(x.dtype, torch.float32))
        parts = {}
        with torch.autocast(x.device.type, enabled=False):
            for name, function in self.features.items():
                part = function(x, self.sfreq)
                if not isinstance(part, Tensor) or part.ndim not in (1, 2) or len(part) != len(x):
                    actual = tuple(getattr(part, "shape", ())) or type(part).__name__
                    raise TypeError(
                        f"The function of the feature {name!r} must return a tensor of shape "
                        f"(batch,) or (batch, n), got {actual} for {len(x)} signals."
                    )
                parts[name] = part.to(x.dtype).reshape(len(x), -1)
        return parts

    def predict(self, patches: Tensor) -> Tensor:
        """Predict the standardized features from patches.

        Parameters
        ----------
        patches : Tensor, shape (batch, n_patches, patch_size)
            Normalized patches in chronological order. If ``mask_ratio`` is above 0, random patches
            of each crop are masked.

        Returns
        -------
        Tensor, shape (batch, n_features)
            Predicted standardized features.
        """
        if not self.n_masked:
            tokens = self.encoder.tokenize(patches)
            features = self.encoder(tokens + self.positions(tokens))
        else:
            visible = self.random_order(patches)[:, self.n_masked :]
            tokens = self.encoder.tokenize(take(patches, visible))
            features = self.encoder(tokens + self.positions(tokens)[visible])
        return self.head(features.mean(dim=1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the predicted and the true features.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            Single-channel crops, in any unit.

        Returns
        -------
        prediction, target : Tensor, shape (batch, n_features)
            Standardized features.
        """
        x = self.normalized(x)
        target = (self.measured(x) - self.mean) / self.scale
        prediction = self.predict(grid_patches(x, self.patch_size))
        return prediction.to(target.dtype), target.clamp(-self.LIMIT, self.LIMIT)

    def chance_loss(self) -> float:
        """Return 1, the loss of predicting the mean, because features are standardized.

        Values beyond five standard deviations are clipped, which makes the loss of predicting the
        mean slightly smaller than 1.
        """
        return 1.0

    def part_losses(self, prediction: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Return the relative loss of each entry of ``features`` (1 = chance level).

        Parameters
        ----------
        prediction, target
            Output of :meth:`forward`.

        Returns
        -------
        dict of str to Tensor
            Scalar relative loss of each entry, by name, such as ``"bands"``.
        """
        errors = (prediction - target).square().split(list(self._sizes.values()), dim=-1)
        return {name: part.mean() for name, part in zip(self._sizes, errors, strict=True)}


@register("features_space_time")
class SpaceTimeFeatures(AllChannelTask, SignalFeatures):
    """Pretext task that predicts hand-crafted features of each channel from all channels.

    The features and the loss are the same as in
    :class:`~braindecode_pars.pretext.SignalFeatures`, but the encoder processes all channels of a
    window jointly.

    Parameters
    ----------
    n_times, patch_size, sfreq, features
        As in :class:`~braindecode_pars.pretext.SignalFeatures`. No patches are masked.
    encoder : SpaceTimeEncoder | None
        Encoder to train in place. If None, a new encoder is built from ``encoder_arguments``.
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.models.SpaceTimeEncoder`, used if ``encoder`` is
        None.

    Raises
    ------
    TypeError, ValueError
        As in :class:`~braindecode_pars.pretext.SignalFeatures`, and when ``encoder`` is an encoder
        of single channels.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext import SpaceTimeFeatures
    >>> task = SpaceTimeFeatures(1000, 100, sfreq=100, embed_dim=32, num_layers=1)
    >>> prediction, target = task(torch.randn(2, 19, 1000), 0.1 * torch.rand(2, 19, 3))
    >>> prediction.shape  # 31 features of each of 19 channels
    torch.Size([2, 19, 31])
    """

    def __init__(
        self,
        n_times: int,
        patch_size: int = 200,
        *,
        sfreq: float | None = None,
        encoder: SpaceTimeEncoder | None = None,
        features: Iterable[str] | Mapping[str, Callable[[Tensor, float], Tensor]] | None = None,
        **encoder_arguments: Any,
    ):
        params: Any = dict(sfreq=sfreq, encoder=encoder, features=features, mask_ratio=0.0)
        super().__init__(n_times, patch_size, **params, **encoder_arguments)

    def forward(
        self, x: Tensor, positions: Tensor | None = None, keep: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the predicted and the true features of all channels.

        Parameters
        ----------
        x, positions, keep
            As in :meth:`SpaceTimePARS.forward <braindecode_pars.pretext.SpaceTimePARS.forward>`.

        Returns
        -------
        prediction, target : Tensor, shape (batch, n_chans, n_features)
            Standardized features, multiplied by the
            :func:`~braindecode_pars.pretext.base.channel_weights`, which exclude missing channels.
        """
        x, positions, keep = self.windows(x, positions, keep)
        measured = self.measured(instance_norm(x).flatten(0, 1)).unflatten(0, keep.shape)
        target = ((measured - self.mean) / self.scale).clamp(-self.LIMIT, self.LIMIT)
        features = self.encoder.embed(x, positions, keep)
        features = features.roll(1, dims=0) if self.is_sham else features
        prediction = self.head(features).to(target.dtype)
        weights = channel_weights(keep)[..., None]
        return prediction * weights, target * weights

    def sham_target(self, target: Tensor) -> Tensor:
        """Return the targets unchanged.

        In sham pretraining (a control in which nothing can be learned), targets are not exchanged
        between windows, because different channels may be missing in each window. Instead,
        :meth:`forward` predicts the targets of each window from the encoder output of another
        window.
        """
        return target
