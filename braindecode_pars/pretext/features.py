"""Classical features of EEG signals: trend, band powers, aperiodic exponent, alpha, Hjorth, shape.

Each is a function of normalised signals, shape (batch, n_times), and their sampling rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor

__all__ = ["FEATURES", "alpha", "aperiodic", "bands", "hjorth", "shape", "trend"]

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
    :math:`c`, in the unit of the signal: standard deviations, for a normalised signal.

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
    frequencies, density = _spectra(x, sfreq)
    features = []
    for low, high in (band for band in BANDS if band[1] <= sfreq / 2):
        inside = (frequencies >= low) & (frequencies < high)
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
    return _line(x, sfreq)[2]


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
    Klimesch 1999, Brain Research Reviews 29, 169, for the centre of gravity of alpha. Donoghue et
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
    frequencies, rest, _ = _line(x, sfreq)
    inside = (frequencies >= _ALPHA[0]) & (frequencies <= _ALPHA[1])
    rest = rest[:, inside]
    peak = (torch.softmax(2 * rest, dim=-1) * frequencies[inside]).sum(-1)
    return torch.stack([peak, rest.amax(-1)], dim=-1)


def hjorth(x: Tensor, sfreq: float) -> Tensor:
    r"""Return the logarithms of Hjorth's mobility and complexity.

    With the differences :math:`x'` and :math:`x''` of neighbouring samples, and
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
    centred = x - x.mean(-1, keepdim=True)
    second, third, fourth = (centred.pow(power).mean(-1) for power in (2, 3, 4))
    # No distribution has a kurtosis below 1.
    kurtosis = torch.log((fourth / (second.square() + _TINY)).clamp(min=1))
    skewness = torch.tanh(third / (second.pow(1.5) + _TINY))
    length = torch.log(sfreq * x.diff().abs().mean(-1) + _TINY)
    return torch.stack([kurtosis, skewness, length], dim=-1)


#: The features of :class:`~braindecode_pars.pretext.SignalFeatures` by name.
FEATURES: dict[str, Callable[[Tensor, float], Tensor]] = {
    function.__name__: function for function in (trend, bands, aperiodic, alpha, hjorth, shape)
}


def _spectra(x: Tensor, sfreq: float) -> tuple[Tensor, Tensor]:
    """Return frequencies, and densities of shape (batch, n_segments, n_frequencies)."""
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
    frequencies = torch.arange(density.shape[-1], dtype=x.dtype, device=x.device)
    return frequencies * (sfreq / n_samples), density


def _line(x: Tensor, sfreq: float) -> tuple[Tensor, Tensor, Tensor]:
    """Fit a line to the log-log spectrum, and return frequencies, residuals and exponents."""
    frequencies, density = _spectra(x, sfreq)
    fitted = (frequencies >= _LINE[0]) & (frequencies <= _LINE[1]) & (frequencies < sfreq / 2)
    frequencies = frequencies[fitted]
    log_f, log_p = frequencies.log(), torch.log(density[..., fitted].mean(1) + _FLOOR)
    one, other = torch.triu_indices(len(log_f), len(log_f), offset=1, device=x.device)
    slope = _median((log_p[:, other] - log_p[:, one]) / (log_f[other] - log_f[one]))
    rest = log_p - slope[:, None] * log_f
    return frequencies, rest - _median(rest)[:, None], -slope


def _median(values: Tensor) -> Tensor:
    """Return the median of each row; the mean of the two middle values of an even number."""
    ranks = {(values.shape[1] + 1) // 2, values.shape[1] // 2 + 1}
    middle = [values.kthvalue(rank, dim=-1).values for rank in ranks]
    return torch.stack(middle).mean(0)
