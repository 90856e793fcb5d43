"""Classical features of EEG signals, and tasks that predict them from the encoder's output.

Trend, band powers, aperiodic exponent, alpha, Hjorth and shape: each is a function of normalized
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
from braindecode_pars.pretext.base import AllChannelTask, register, weights_of
from braindecode_pars.pretext.grid import GridTask, take
from braindecode_pars.tokens import grid_patches, instance_norm

__all__ = [
    *("FEATURES", "SignalFeatures", "SpaceTimeFeatures"),
    *("alpha", "aperiodic", "bands", "hjorth", "shape", "trend"),
]

#: Lower and upper edges of the bands in Hz; a band has its lower edge, but not its upper one.
BANDS = ((0.5, 4), (4, 8), (8, 10), (10, 13), (13, 20), (20, 30), (30, 45))

#: Range of the line through the spectrum, and of the peak of alpha, in Hz.
_LINE, _ALPHA = (2, 40), (7, 14)

#: Added to spectral densities, in 1/Hz, and to moments and lengths, so that their logarithms are
#: finite. White noise of variance 1 at 128 Hz has a density of 0.016, EEG at 40 Hz about 1e-4.
_FLOOR, _TINY = 1e-8, 1e-10


def trend(x: Tensor, sfreq: float) -> Tensor:
    r"""Return slope and curvature: the coefficients of a parabola.

    With the time :math:`t` from -1 at the first sample to 1 at the last one, the parabola
    :math:`x(t) \approx a + b\,t + c\,t^2` is fitted with least squares. The result is :math:`b` and
    :math:`c`, in the unit of the signal: standard deviations, for a normalized signal.

    Parameters
    ----------
    x : Tensor of float32 or float64, shape (batch, n_times)
        Signals.
    sfreq : float
        Sampling rate in Hz; it is not used.

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
    # The three parts of the parabola are orthogonal, so each is fitted alone.
    parts = (t, t.square() - t.square().mean())
    return torch.stack([(x * part).sum(-1) / part.square().sum() for part in parts], dim=-1)


def bands(x: Tensor, sfreq: float) -> Tensor:
    r"""Return the log power in seven bands: mean, standard deviation and change over time.

    The signal is cut into segments :math:`s` of one second that overlap by half. A segment without
    its mean, times a Hann window :math:`w`, has the power spectral density

    .. math::
        P_{s}(f) = \frac{2}{\texttt{sfreq} \sum_n w_n^2} \Bigl| \sum_n w_n (x_{sn} - \bar x_s)
        e^{-2 \pi i f n / \texttt{sfreq}} \Bigr|^2 ,

    as in Welch's method. For the bands from 0.5 to 4, 4 to 8, 8 to 10, 10 to 13, 13 to 20, 20 to 30
    and 30 to 45 Hz, :math:`L_s` is the natural logarithm of the mean of :math:`P_s + 10^{-8}` over
    the frequencies of the band, which has its lower edge, but not its upper one. The three features
    of a band are the mean of :math:`L_s` over segments, its standard deviation, and its mean in the
    second half of the segments minus that in the first. Densities are in 1/Hz for a signal of
    variance 1, so that their logarithms are relative to its variance.

    A band that ends above half the sampling rate is left out.

    Parameters
    ----------
    x : Tensor of float32 or float64, shape (batch, n_times)
        Signals of two seconds or more.
    sfreq : float
        Sampling rate in Hz, at least 30.

    Returns
    -------
    Tensor, shape (batch, 3 * n_bands)
        Mean, standard deviation and change of each band; 21 features at 90 Hz or more.

    Raises
    ------
    ValueError
        When the signals are shorter than two seconds, or the sampling rate is below 30 Hz.

    References
    ----------
    Welch 1967, IEEE Transactions on Audio and Electroacoustics 15, 70.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext.features import bands
    >>> rhythm = torch.sin(2 * torch.pi * 9 * torch.arange(384) / 128)
    >>> means = bands(rhythm[None], 128)[0, ::3]
    >>> means.argmax().item()  # 8 to 10 Hz
    2
    """
    known, density = _spectra(x, sfreq)
    features = []
    for low, high in (band for band in BANDS if band[1] <= sfreq / 2):
        inside = _places((known >= low) & (known < high), x)
        power = torch.log(density[..., inside].mean(-1) + _FLOOR)  # (batch, n_segments)
        half = power.shape[1] // 2
        change = power[:, -half:].mean(1) - power[:, :half].mean(1)
        features += [power.mean(1), power.std(1, correction=0), change]
    return torch.stack(features, dim=-1)


def aperiodic(x: Tensor, sfreq: float) -> Tensor:
    r"""Return the aperiodic exponent: how steeply the spectrum falls.

    The mean :math:`P(f)` of the densities of :func:`bands` over segments is described by a line,

    .. math::
        \log\bigl(P(f) + 10^{-8}\bigr) \approx c - \chi \log f , \qquad
        2 \le f \le 40 \text{ Hz and below half the sampling rate,}

    with the exponent :math:`\chi`, which has no unit. It is minus the median of the slopes between
    all pairs of frequencies (Theil and Sen): up to 29 percent of the frequencies, such as those of
    a rhythm, can have any power without moving it far.

    Parameters
    ----------
    x, sfreq
        As in :func:`bands`.

    Returns
    -------
    Tensor, shape (batch,)
        Exponents.

    Raises
    ------
    ValueError
        As :func:`bands`.

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
    >>> [round(aperiodic(x, 128).item()) for x in (white, brown)]
    [0, 2]
    """
    return _line(x, sfreq)[-1]


def alpha(x: Tensor, sfreq: float) -> Tensor:
    r"""Return the soft peak frequency of alpha in Hz, and its height over the aperiodic line.

    With :math:`r(f)`, the natural logarithm of the power minus the line of :func:`aperiodic` (whose
    intercept is the median), and sums over 7 to 14 Hz, they are

    .. math::
        \frac{\sum_f f\, e^{2 r(f)}}{\sum_f e^{2 r(f)}} \qquad \text{and} \qquad \max_f r(f) .

    Parameters
    ----------
    x, sfreq
        As in :func:`bands`.

    Returns
    -------
    Tensor, shape (batch, 2)
        Frequency in Hz, and height without a unit.

    Raises
    ------
    ValueError
        As :func:`bands`.

    References
    ----------
    Klimesch 1999, Brain Research Reviews 29, 169, for the center of gravity of alpha. Donoghue et
    al. 2020, Nature Neuroscience 23, 1655, for heights over the line.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext.features import alpha
    >>> _ = torch.manual_seed(0)
    >>> rhythm = torch.sin(2 * torch.pi * 11 * torch.arange(1280) / 128)
    >>> alpha((rhythm + torch.randn(1280))[None], 128)[0, 0].round(decimals=1)
    tensor(11.)
    """
    known, frequencies, rest, _ = _line(x, sfreq)
    inside = _places((known >= _ALPHA[0]) & (known <= _ALPHA[1]), x)
    rest = rest[:, inside]
    peak = (torch.softmax(2 * rest, dim=-1) * frequencies[inside]).sum(-1)
    return torch.stack([peak, rest.amax(-1)], dim=-1)


def hjorth(x: Tensor, sfreq: float) -> Tensor:
    r"""Return the logarithms of Hjorth's mobility and complexity.

    With the differences :math:`x'` and :math:`x''` of neighboring samples, and
    :math:`m(x) = \sqrt{\operatorname{var} x' / \operatorname{var} x}`, they are

    .. math::
        \log\bigl(\texttt{sfreq}\; m(x)\bigr) \qquad \text{and} \qquad \log \frac{m(x')}{m(x)} .

    Mobility is in 1/s, complexity has no unit.

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
    >>> hjorth(rhythm[None], 1000).exp().round(decimals=1)  # 2 pi 5, and 1 for a sine
    tensor([[31.4000,  1.0000]])
    """
    first = x.diff()
    variances = [y.var(-1, correction=0) + _TINY for y in (x, first, first.diff())]
    of_signal, of_change = (torch.log(b / a) / 2 for a, b in pairwise(variances))
    return torch.stack([of_signal + math.log(sfreq), of_change - of_signal], dim=-1)


def shape(x: Tensor, sfreq: float) -> Tensor:
    r"""Return log kurtosis, tanh of skewness, and log line length.

    With :math:`m_k`, the mean of :math:`(x - \bar x)^k`, they are

    .. math::
        \log \frac{m_4}{m_2^2} , \qquad \tanh \frac{m_3}{m_2^{3/2}} , \qquad
        \log \Bigl( \texttt{sfreq}\; \overline{|x_{n+1} - x_n|} \Bigr) .

    Kurtosis and skewness have no unit; a normal distribution has a kurtosis of 3. The line length
    is in the signal's unit per second.

    Parameters
    ----------
    x : Tensor of float32 or float64, shape (batch, n_times)
        Signals.
    sfreq : float
        Sampling rate in Hz.

    Returns
    -------
    Tensor, shape (batch, 3)
        Features. Those of a flat signal are finite.

    References
    ----------
    Joanes and Gill 1998, The Statistician 47, 183, for the moments. Esteller et al. 2001,
    Proceedings of the 23rd Annual Conference of the IEEE EMBS, for the line length.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext.features import shape
    >>> square = torch.tensor([[-1.0, 1.0] * 100])
    >>> shape(square, 1).exp().round(decimals=2)  # kurtosis 1, skewness 0, two units a second
    tensor([[1., 1., 2.]])
    """
    centered = x - x.mean(-1, keepdim=True)
    second, third, fourth = (centered.pow(power).mean(-1) for power in (2, 3, 4))
    # No distribution has a kurtosis below 1.
    kurtosis = torch.log((fourth / (second.square() + _TINY)).clamp(min=1))
    skewness = torch.tanh(third / (second.pow(1.5) + _TINY))
    length = torch.log(sfreq * x.diff().abs().mean(-1) + _TINY)
    return torch.stack([kurtosis, skewness, length], dim=-1)


def _spectra(x: Tensor, sfreq: float) -> tuple[np.ndarray, Tensor]:
    """Return frequencies, and densities of shape (batch, n_segments, n_frequencies).

    The frequencies are NumPy's, so that choices of some wait for no GPU.
    """
    if sfreq < 30:
        raise ValueError(
            "The features of the spectrum reach up to 14 Hz, so they need a sampling rate of 30 Hz "
            f"or more, not {sfreq:g} Hz; choose others with features=."
        )
    if x.shape[-1] < round(2 * sfreq):
        raise ValueError(
            f"A signal of {x.shape[-1]} samples at {sfreq:g} Hz is shorter than the two seconds "
            "that the features of its spectrum need; use longer windows."
        )
    n_samples = round(sfreq)
    segments = x.unfold(-1, n_samples, n_samples // 2)
    window = torch.hann_window(n_samples, dtype=x.dtype, device=x.device)
    segments = (segments - segments.mean(-1, keepdim=True)) * window
    density = torch.fft.rfft(segments).abs().square() / (sfreq * window.square().sum())
    density[..., 1 : (n_samples + 1) // 2] *= 2  # for the negative frequencies
    numbers = np.arange(density.shape[-1], dtype=np.float64 if x.dtype == torch.float64 else "f4")
    return numbers * (float(sfreq) / n_samples), density


def _places(chosen: np.ndarray, x: Tensor) -> Tensor:
    """Return the places of chosen neighbors, on the device of ``x``."""
    first = int(chosen.argmax())
    return torch.arange(first, first + int(chosen.sum()), device=x.device)


def _line(x: Tensor, sfreq: float) -> tuple[np.ndarray, Tensor, Tensor, Tensor]:
    """Fit a line to the log-log spectrum, and return frequencies, residuals and exponents.

    The frequencies come twice: as NumPy's, and on the device of ``x``.
    """
    known, density = _spectra(x, sfreq)
    on_line = (known >= _LINE[0]) & (known <= _LINE[1]) & (known < float(sfreq) / 2)
    fitted = _places(on_line, x)
    frequencies = fitted.to(x.dtype) * (sfreq / round(sfreq))
    log_f, log_p = frequencies.log(), torch.log(density[..., fitted].mean(1) + _FLOOR)
    first, second = torch.triu_indices(len(log_f), len(log_f), offset=1, device=x.device)
    slope = _median((log_p[:, second] - log_p[:, first]) / (log_f[second] - log_f[first]))
    rest = log_p - slope[:, None] * log_f
    return known[on_line], frequencies, rest - _median(rest)[:, None], -slope


def _median(values: Tensor) -> Tensor:
    """Return the median of each row; the mean of the two middle values of an even number."""
    ranks = {(values.shape[1] + 1) // 2, values.shape[1] // 2 + 1}
    middle = [values.kthvalue(rank, dim=-1).values for rank in ranks]
    return torch.stack(middle).mean(0)


#: The features of :class:`~braindecode_pars.pretext.SignalFeatures` by name.
FEATURES: dict[str, Callable[[Tensor, float], Tensor]] = {
    function.__name__: function for function in (trend, bands, aperiodic, alpha, hjorth, shape)
}

_RULES = dict(
    sfreq=checks.optional(checks.positive()),
    features=checks.optional(checks.instance("names or a dict of functions", list, tuple, Mapping)),
)


@register("features")
class SignalFeatures(GridTask):
    r"""Prediction of classical features of the signal from the pooled output of the encoder.

    The output of the encoder, averaged over time, goes through one linear layer to the features of
    the whole signal: 31 numbers that people measure in EEG, such as band powers, the aperiodic
    exponent and Hjorth's mobility. They are computed from the normalized signal, standardized, and
    limited to five standard deviations. The loss is the mean squared error. The log has the loss of
    each entry of :data:`~braindecode_pars.pretext.features.FEATURES`.

    An encoder that is trained so is a learned set of feature detectors: what it knows are these
    features and what is needed to compute them. It can learn them from noise, so a low loss says
    nothing about brains. The task is not in the paper. In speech, PASE predicts features such as
    the log power spectrum and prosody, of each moment and with contrastive tasks beside; here the
    features are those of EEG, and of a whole window. In sleep staging, frequency pretraining
    predicts which frequencies random sums of sines contain; here the signals are any, also EEG, and
    what is predicted is measured in them.

    Parameters
    ----------
    n_times : int
        Number of samples in a signal; at least two patches and, for the features of the spectrum,
        two seconds.
    patch_size : int
        Number of samples in a patch.
    sfreq : float | None
        Sampling rate in Hz. :func:`~braindecode_pars.pretraining.pretrain_encoder`, the estimators
        and the runs pass that of the windows. It is needed.
    encoder : PatchEncoder | None
        Encoder to train in place. None builds one.
    features : list of str | dict of str to callable | None
        Names in :data:`~braindecode_pars.pretext.features.FEATURES`, or functions by name, such as
        ``{**FEATURES, "range": function}``. A function takes normalized signals, float32 (batch,
        n_times), and ``sfreq``, and returns one or several numbers for each, (batch,) or (batch,
        n). They should be of the order of one. Functions are not saved with an encoder. None means
        all of FEATURES.
    mask_ratio : float
        Share of the patches that is hidden from the encoder, which then has to infer the features
        of the whole signal from the others. At least one patch is visible.
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.PatchEncoder` when no encoder is given.

    Attributes
    ----------
    n_patches, n_masked : int
        Number of patches in the grid, and number of hidden patches.
    mean, scale : Tensor, shape (n_features,)
        Mean and standard deviation of the features, from :meth:`prepare`; 0 and 1 before. They are
        saved with the task.

    Raises
    ------
    ValueError
        When the sampling rate is missing or too low, an argument is out of range, a feature is
        unknown or not finite, or the signals are too short.
    TypeError
        When an argument or what a function returns has the wrong type.

    Warns
    -----
    UserWarning
        When bands end above half the sampling rate, and are left out.

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

    #: Targets are limited to this number of standard deviations.
    LIMIT = 5.0

    #: Number of signals that mean and standard deviation are computed from.
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
                f"{type(self).__name__} needs the sampling rate of the signals, which is unknown; "
                'pass sfreq= in Hz, or pretext_params={"sfreq": ...} in an estimator.'
            )
        self.sfreq = float(sfreq)
        features = FEATURES if features is None else features
        if not features:
            raise ValueError("features is empty; name at least one, or None for all.")
        if not isinstance(features, Mapping):
            if unknown := [repr(name) for name in features if name not in [*FEATURES]]:
                raise ValueError(
                    f"Unknown features {checks.format_list(unknown)}; known are "
                    f"{checks.format_list(list(FEATURES))}. A dict of functions adds others."
                )
            features = {name: FEATURES[name] for name in features}
        self.features = dict(features)
        # Number of values that each function returns
        noise = torch.randn(2, self.n_times, generator=torch.Generator().manual_seed(0))
        self._sizes = {name: part.shape[1] for name, part in self._parts(noise).items()}
        left_out = [f"{low:g} to {high:g} Hz" for low, high in BANDS if high > self.sfreq / 2]
        if bands in self.features.values() and left_out:
            checks.warn_user(
                f"{type(self).__name__} leaves out the bands {checks.format_list(left_out)}: signals at "
                f"{self.sfreq:g} Hz have no frequencies above {self.sfreq / 2:g} Hz."
            )
        n_features = sum(self._sizes.values())
        self.head = nn.Linear(self.encoder.embed_dim, n_features)
        self.mean: Tensor
        self.scale: Tensor
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("scale", torch.ones(n_features))

    def prepare(self, draw: Callable[[int], Tensor]) -> None:
        """Set mean and standard deviation of the features to those of random signals.

        Parameters
        ----------
        draw : callable
            As in :meth:`PretextTask.prepare <braindecode_pars.pretext.PretextTask.prepare>`; 2,000
            signals are drawn.

        Raises
        ------
        ValueError
            When a feature is not finite in a signal. The message names the feature.
        """
        signals = draw(self.N_PREPARED).to(self.mean.device)
        # In parts, since a spectrum takes more memory than its signal.
        parts = [self.measured(self.normalized(part)) for part in signals.split(256)]
        features = torch.cat(parts).cpu().double()
        for name, values in zip(
            self._sizes, features.split(list(self._sizes.values()), 1), strict=True
        ):
            if not values.isfinite().all():
                raise ValueError(f"The feature {name!r} is NaN or infinite in some signals.")
        scale, mean = torch.std_mean(features, dim=0, correction=0)
        self.mean.copy_(mean)
        self.scale.copy_(scale + 1e-4)  # a feature that is always the same stays finite

    def measured(self, x: Tensor) -> Tensor:
        """Return the features as they are.

        Parameters
        ----------
        x : Tensor, shape (batch, n_times)
            Normalized signals.

        Returns
        -------
        Tensor of float32 (float64 for float64 signals), shape (batch, n_features)
            Features in their units, in the order of their names.
        """
        return torch.cat(list(self._parts(x).values()), dim=1)

    @torch.no_grad()
    def _parts(self, x: Tensor) -> dict[str, Tensor]:
        """Return what each function returns, shape (batch, n)."""
        x = x.to(torch.promote_types(x.dtype, torch.float32))
        parts = {}
        with torch.autocast(x.device.type, enabled=False):
            for name, function in self.features.items():
                part = function(x, self.sfreq)
                if not isinstance(part, Tensor) or part.ndim not in (1, 2) or len(part) != len(x):
                    what = tuple(part.shape) if isinstance(part, Tensor) else type(part).__name__
                    raise TypeError(
                        f"The feature {name!r} returned {what} for {len(x)} signals; a function "
                        "returns a tensor of shape (batch,) or (batch, n)."
                    )
                parts[name] = part.to(x.dtype).reshape(len(x), -1)
        return parts

    def predict(self, patches: Tensor) -> Tensor:
        """Return the predicted features, standardized.

        Parameters
        ----------
        patches : Tensor, shape (batch, n_patches, patch_size)
            Normalized patches in chronological order. With ``mask_ratio`` above 0, random ones of
            each signal are hidden.

        Returns
        -------
        Tensor, shape (batch, n_features)
            Predictions.
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
            Signals in any unit.

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
        """Return 1, the variance of a standardized feature: the loss of predicting its mean.

        Features with values beyond five standard deviations are limited, and have a little less.
        """
        return 1.0

    def part_losses(self, prediction: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Return the loss of each entry of the features, relative to chance.

        Parameters
        ----------
        prediction, target
            Output of :meth:`forward`.

        Returns
        -------
        dict of str to Tensor
            Scalar losses by name, such as ``"bands"``.
        """
        errors = (prediction - target).square().split(list(self._sizes.values()), dim=-1)
        return {name: part.mean() for name, part in zip(self._sizes, errors, strict=True)}


@register("features_space_time")
class SpaceTimeFeatures(AllChannelTask, SignalFeatures):
    """Prediction of the classical features of each channel of a window.

    The task is :class:`~braindecode_pars.pretext.SignalFeatures`, and each channel is encoded with
    its neighbors.

    Parameters
    ----------
    n_times, patch_size, sfreq, features
        As in :class:`~braindecode_pars.pretext.SignalFeatures`. No patch is hidden.
    encoder : SpaceTimeEncoder | None
        Encoder to train in place. None builds one.
    **encoder_arguments
        Arguments of :class:`~braindecode_pars.models.SpaceTimeEncoder` when no encoder is given.

    Raises
    ------
    TypeError, ValueError
        As :class:`~braindecode_pars.pretext.SignalFeatures`. Also for an encoder of single
        channels.

    Examples
    --------
    >>> import torch
    >>> from braindecode_pars.pretext import SpaceTimeFeatures
    >>> task = SpaceTimeFeatures(1000, 100, sfreq=100, embed_dim=32, num_layers=1)
    >>> prediction, target = task(torch.randn(2, 19, 1000), 0.1 * torch.rand(2, 19, 3))
    >>> prediction.shape
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
            Standardized features, times the :func:`weights_of
            <braindecode_pars.pretext.base.weights_of>` the channels.
        """
        x, positions, keep = self.windows(x, positions, keep)
        measured = self.measured(instance_norm(x).flatten(0, 1)).unflatten(0, keep.shape)
        target = ((measured - self.mean) / self.scale).clamp(-self.LIMIT, self.LIMIT)
        features = self.encoder.embed(x, positions, keep)
        features = features.roll(1, dims=0) if self.is_sham else features
        prediction = self.head(features).to(target.dtype)
        weights = weights_of(keep)[..., None]
        return prediction * weights, target * weights

    def sham_target(self, target: Tensor) -> Tensor:
        """Return the targets as they are: :meth:`forward` predicts from another window in a sham.

        Targets of another window may be of channels that are missing here.
        """
        return target
