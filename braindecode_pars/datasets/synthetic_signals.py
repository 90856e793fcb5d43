"""Signals without recordings: noise with the spectra of EEG, drawn anew whenever they are read.

A pretext task on signals of one channel can be trained on them. What it learns is to measure such
signals; there is nothing of a brain in them. A signal is noise with a random spectrum that falls
with frequency.
"""

import math
from dataclasses import KW_ONLY, dataclass
from numbers import Real

import mne
import numpy as np
import torch
from numpy.random import Generator

from braindecode_pars._common import checks, subjects
from braindecode_pars.windows.door import windows_of
from braindecode_pars.windows.preprocessing import Preprocessing
from braindecode_pars.windows.table import Montage, SignalReader, Windows

__all__ = ["SyntheticSignals", "noise"]

#: Standard deviation of the noise in volts: usual EEG.
VOLTS = 1e-5
#: Lowest edge and least width of a band in Hz: signals are drawn for a period of either.
LEAST = 0.01


def _range(least: float, most: float, unit: str = "") -> checks.Rule:
    """Return a rule for a pair of numbers that do not fall, within these limits."""

    def holds(pair: tuple) -> bool:
        are_numbers = all(isinstance(x, Real) and not isinstance(x, bool) for x in pair)
        return len(pair) == 2 and are_numbers and least <= pair[0] <= pair[1] <= most

    text = f"a lower and an upper number{unit} from {least:g} to {most:g}"
    return checks.Rule(text, (tuple, list, np.ndarray), holds)


_RULES = dict(
    sfreq=checks.positive(1e6),
    exponent=_range(0, 10),
    knee=_range(0, 1000, " in Hz"),
    band=_range(LEAST, 1e6, " in Hz"),
    n_windows=checks.integer(1),
)


@dataclass(frozen=True)
class SyntheticSignals:
    """An endless source of signals of one channel, for pretraining without recordings.

    Each signal is :func:`noise` with a random exponent and, in half of the signals, a random knee.

    :func:`~braindecode_pars.pretraining.pretrain_encoder` and
    :func:`runs.pretrain <braindecode_pars.runs.pretrain>` take it in the place of recordings;
    ``braindecode-pars pretrain --synthetic`` is the same. In a list of corpora it is one of them.
    No signal is drawn twice, and all draws follow the seed of the training. The encoder's card has
    no subjects.

    Parameters
    ----------
    sfreq : float
        Sampling rate in Hz.
    exponent : (float, float)
        Range of the exponent of the spectrum; 0 is white noise, 2 a random walk.
    knee : (float, float)
        Range in Hz of the knee, below which the spectrum is flat.
    band : (float, float)
        Lower and upper edge of the noise in Hz. Above half the sampling rate there is nothing.
    n_windows : int
        Number of signals in an epoch of training, which would not end otherwise.

    Raises
    ------
    TypeError, ValueError
        When an argument has the wrong type or is out of range, and when the band has no frequency
        below half the sampling rate.

    References
    ----------
    Donoghue et al. 2020, Nature Neuroscience 23, 1655: EEG as noise with exponent and knee.
    Grieger et al. 2024, arXiv:2403.08592: pretraining on random sums of sines.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.datasets import SyntheticSignals
    >>> source = SyntheticSignals(128)
    >>> signals = source.draw(4, 384, np.random.default_rng(0))
    >>> signals.shape, signals.dtype
    ((4, 384), dtype('float32'))

    >>> from braindecode_pars import PatchEncoder
    >>> from braindecode_pars.pretraining import PretrainingSettings, pretrain_encoder
    >>> encoder = PatchEncoder(patch_size=64, embed_dim=16, num_layers=1)
    >>> source = SyntheticSignals(128, n_windows=64)
    >>> settings = PretrainingSettings("features", epochs=2)
    >>> net = pretrain_encoder(encoder, source, settings, n_times=384, verbose=0)
    """

    sfreq: float = 128.0
    _: KW_ONLY
    exponent: tuple[float, float] = (0.0, 3.0)
    knee: tuple[float, float] = (0.0, 8.0)
    band: tuple[float, float] = (0.5, 45.0)
    n_windows: int = 6400

    def __post_init__(self) -> None:
        checks.check_parameters(vars(self), _RULES, type(self).__name__)
        for name, value in vars(self).items():  # as JSON takes them: no numbers of NumPy
            plain = int if name == "n_windows" else float
            is_pair = isinstance(value, tuple | list | np.ndarray)
            object.__setattr__(self, name, tuple(map(float, value)) if is_pair else plain(value))
        low, high = self.band
        if min(high, self.sfreq / 2) - low < LEAST:
            raise ValueError(
                f"The band {low:g} to {high:g} Hz has less than {LEAST:g} Hz below "
                f"{self.sfreq / 2:g} Hz, half the sampling rate; pass a wider one."
            )

    @property
    def preprocessing(self) -> Preprocessing:
        """Sampling rate and band of the signals; there is no reference."""
        high = self.band[1] if self.band[1] < self.sfreq / 2 else None
        return Preprocessing(sfreq=self.sfreq, band=(self.band[0], high))

    def draw(self, n: int, n_times: int, rng: Generator) -> np.ndarray:
        """Draw signals.

        Parameters
        ----------
        n, n_times : int
            Number of signals, and their length in samples.
        rng : numpy.random.Generator
            Random number generator. The same state gives the same signals.

        Returns
        -------
        ndarray of float32, shape (n, n_times)
            Signals in volts. The noise has a standard deviation of 10 microvolts.
        """
        checks.check_parameters(
            locals(), dict(n=checks.integer(0), n_times=checks.integer(1)), "draw"
        )
        exponent = rng.uniform(*self.exponent, n)
        knee = rng.uniform(*self.knee, n) * (rng.random(n) < 0.5)
        x = noise(n_times, self.sfreq, exponent, knee, self.band, rng)
        return (VOLTS * x).astype(np.float32)

    def windows(self, n_times: int) -> Windows:
        """Return windows of one channel, whose samples are drawn whenever they are read.

        They are the crops of this source in a list of corpora. The draws follow torch's global
        generator, as random crops of recordings do.

        Parameters
        ----------
        n_times : int
            Length of a window in samples.

        Returns
        -------
        Windows
            ``n_windows`` windows, float32 in volts.
        """
        checks.integer(1).check("n_times", n_times)
        info = mne.create_info(["synthetic"], self.sfreq, "eeg")
        recording = dict(
            subject=subjects.NO_SUBJECT,
            sfreq=self.sfreq,
            channels=Montage.of(info["chs"]),
            preprocessing=self.preprocessing,
            reader=SignalReader(self._drawn),
            base=0,
        )
        starts = np.arange(self.n_windows) * n_times
        return windows_of([recording], item=starts, start=starts, stop=starts + n_times)

    def _drawn(self, signals: np.ndarray, starts: np.ndarray, n_times: int) -> np.ndarray:
        """Draw a signal in the place of each crop of a store."""
        seed = int(torch.randint(2**63 - 1, ()))
        return self.draw(len(signals), n_times, np.random.default_rng(seed))


def noise(
    n_times: int,
    sfreq: float,
    exponent: np.ndarray,
    knee: np.ndarray,
    band: tuple[float, float],
    rng: Generator,
) -> np.ndarray:
    r"""Return noise whose power falls with frequency.

    The power of the frequency :math:`f` is

    .. math:: P(f) = \frac{1}{f^\chi + k^\chi}

    within the band, and 0 outside: the aperiodic part of spectra of EEG, with the exponent
    :math:`\chi` and the knee :math:`k`. At the knee the power is half of that without it. Each
    Fourier coefficient is a complex normal number times :math:`\sqrt{P(f)}`. The noise is periodic:
    its period is the signal, or longer where that is too short for the lower edge of the band.

    Parameters
    ----------
    n_times : int
        Length of the signals in samples.
    sfreq : float
        Sampling rate in Hz.
    exponent, knee : ndarray, shape (n,)
        Exponent, and knee in Hz, of each signal; 0 is no knee.
    band : (float, float)
        Lower and upper edge in Hz.
    rng : numpy.random.Generator
        Random number generator of the coefficients.

    Returns
    -------
    ndarray of float64, shape (n, n_times)
        Signals with a standard deviation of 1 over a period.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.datasets.synthetic_signals import noise
    >>> rng = np.random.default_rng(0)
    >>> x = noise(1280, 128, np.array([0.0, 2.0]), np.zeros(2), (0.5, 45), rng)
    >>> np.allclose(x.std(axis=1), 1), np.abs(np.diff(x)).mean(axis=1).round(1)
    (True, array([0.9, 0.2]))
    """
    low, high = band
    # A band has a frequency if these are no further apart than its edges, and than 0 and the lower.
    period = max(n_times, math.ceil(sfreq / min(low, min(high, sfreq / 2) - low)))
    f = np.fft.rfftfreq(period, 1 / sfreq)
    inside = (f >= low) & (f <= high)
    chi, k = exponent[:, None], knee[:, None]
    amplitude = inside / np.sqrt(np.maximum(f, low) ** chi + k**chi)
    shape = len(exponent), len(f)
    coefficients = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    x = np.fft.irfft(coefficients * amplitude, period)
    return x[:, :n_times] / x.std(axis=1, keepdims=True)
