"""Pretrain an encoder without recordings: on 1/f noise with spectra similar to EEG.

    python docs/experiments/synthetic_signals.py ENCODERS/noise
    python docs/experiments/synthetic_signals.py ENCODERS/noise-1 --seed 1

Such an encoder learns to measure signal properties that are not specific to the brain. Its settings
are the same as for the encoder ``small``: features and spectra of hidden patches in crops of 10 s
and 3 s, 3,000 steps of 128 crops, which take 13 minutes on one core. The folder contains a run,
which the other experiments load as an encoder. An interrupted command resumes with ``--resume``.

The stored scores of ``noise`` are from encoders that were pretrained on 2026-11-25 with the same
settings, on other draws of these signals. :func:`pretrain_on` also accepts other sources.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from braindecode_pars import runs
from braindecode_pars._common.files import checksum_of
from braindecode_pars.pretrained import load_encoder, save_encoder
from braindecode_pars.runs import RunConfig
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.signal_store.index import Index, StoredRecording
from braindecode_pars.windows.preprocessing import Preprocessing

__all__ = ["NOISE", "SignalSource", "SyntheticSignals", "noise", "pretrain_on"]

#: Standard deviation of the noise in volts: usual EEG.
VOLTS = 1e-5
#: Settings of the encoder.
NOISE = RunConfig(
    task="joint",
    task_params={"tasks": {"features": 1.0, "spectral": 1.0}},
    epochs=12,
    steps_per_epoch=250,
    batch_size=128,
    lr=1e-3,
    weight_decay=1e-4,
    warmup=0.05,
    precision="float32",
    window_seconds=(10.0, 3.0),
    patch_seconds=1.0,
    embed_dim=128,
    num_layers=4,
    num_heads=8,
    mlp_dim=256,
    drop_prob=0.0,
    tokenizer="spectral",
)
#: Entries of the encoder card.
ABOUT: dict[str, Any] = {
    "description": "Pretrained on synthetic signals: without recordings, and without subjects.",
    "corpora": ["synthetic signals"],
    "reference": "none",
}


class SignalSource(Protocol):
    """Signals of one channel that are simulated when they are read.

    Attributes
    ----------
    sfreq : float
        Sampling rate in Hz.
    n_windows : int
        Number of signals in a pass.
    preprocessing : Preprocessing
        Sampling rate and band of the signals.
    """

    sfreq: float
    n_windows: int

    @property
    def preprocessing(self) -> Preprocessing: ...

    def draw(self, n: int, n_times: int, rng: np.random.Generator) -> np.ndarray:
        """Return signals in volts, float32 (n, n_times), that depend only on the generator."""


@dataclass(frozen=True)
class SyntheticSignals:
    """Noise with a random exponent and, in half of the signals, a random knee.

    Parameters
    ----------
    sfreq : float
        Sampling rate in Hz.
    exponent : (float, float)
        Range of the exponent of the spectrum; 0 is white noise, 2 a random walk.
    knee : (float, float)
        Range in Hz of the knee, below which the spectrum is flat.
    band : (float, float)
        Lower and upper edge of the noise in Hz.
    n_windows : int
        Number of signals in a pass.

    References
    ----------
    Donoghue et al. 2020, Nature Neuroscience 23, 1655: EEG as noise with exponent and knee.
    Grieger et al. 2024, arXiv:2403.08592: pretraining on random sums of sines.
    """

    sfreq: float = 128.0
    exponent: tuple[float, float] = (0.0, 3.0)
    knee: tuple[float, float] = (0.0, 8.0)
    band: tuple[float, float] = (0.5, 45.0)
    n_windows: int = 6400

    @property
    def preprocessing(self) -> Preprocessing:
        """Sampling rate and band of the signals; there is no reference."""
        high = self.band[1] if self.band[1] < self.sfreq / 2 else None
        return Preprocessing(sfreq=self.sfreq, band=(self.band[0], high))

    def draw(self, n: int, n_times: int, rng: np.random.Generator) -> np.ndarray:
        """Return signals in volts, float32 (n, n_times), with an SD of 10 microvolts."""
        exponent = rng.uniform(*self.exponent, n)
        knee = rng.uniform(*self.knee, n) * (rng.random(n) < 0.5)
        x = noise(n_times, self.sfreq, exponent, knee, self.band, rng)
        return (VOLTS * x).astype(np.float32)


def noise(
    n_times: int,
    sfreq: float,
    exponent: np.ndarray,
    knee: np.ndarray,
    band: tuple[float, float],
    rng: np.random.Generator,
) -> np.ndarray:
    r"""Return noise whose power decreases with frequency.

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
    """
    low, high = band
    # The frequency resolution must not exceed the width of the band, or its lower edge.
    period = max(n_times, math.ceil(sfreq / min(low, min(high, sfreq / 2) - low)))
    f = np.fft.rfftfreq(period, 1 / sfreq)
    inside = (f >= low) & (f <= high)
    chi, k = exponent[:, None], knee[:, None]
    amplitude = inside / np.sqrt(np.maximum(f, low) ** chi + k**chi)
    shape = len(exponent), len(f)
    coefficients = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    x = np.fft.irfft(coefficients * amplitude, period)
    return x[:, :n_times] / x.std(axis=1, keepdims=True)


def pretrain_on(
    source: SignalSource, out: str | Path, config: RunConfig, *, resume: bool = False
) -> Path:
    """Pretrain an encoder on signals that are simulated when they are read.

    Parameters
    ----------
    source : SignalSource
        Source of the signals.
    out : path
        Folder of the run, as in :func:`braindecode_pars.runs.pretrain`.
    config : RunConfig
        Settings of the run.
    resume : bool
        Whether to resume the run in ``out``.

    Returns
    -------
    Path
        The folder ``out``. The encoder's card has no subjects.
    """
    store = drawn_store(source, max(config.in_samples(source.sfreq)))
    run = runs.pretrain(store, out, config, resume=resume)
    encoder, card, _ = load_encoder(run)
    return save_encoder(encoder, replace(card, subjects=[], about=ABOUT), run)


def drawn_store(source: SignalSource, n_times: int) -> SignalStore:
    """Return a store of one recording with ``n_windows`` windows, whose crops are simulated."""
    known = source.preprocessing.known()
    recording = StoredRecording(
        name="synthetic signals",
        description={},
        ch_names=["synthetic"],
        n_times=source.n_windows * n_times,
        first_sample=0,
        scale=[1.0],
        offset=[0.0],
        checksum=checksum_of(repr(source).encode()),  # a run resumes on the same source only
        source={},
        preprocessing=known,
    )
    index = Index(complete=True, settings={"dtype": "float32"}, sfreq=source.sfreq)
    return SignalStore(Path("synthetic signals"), index, _DrawnSamples(source), (recording,))  # type: ignore[arg-type]


@dataclass(frozen=True)
class _DrawnSamples:
    """Samples of a store that are simulated, seeded by the positions of the crops."""

    source: SignalSource

    def crops(
        self, firsts: np.ndarray, n_times: int, scale: np.ndarray, offset: np.ndarray
    ) -> np.ndarray:
        return self.source.draw(len(firsts), n_times, np.random.default_rng([n_times, *firsts]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="folder of the run and its encoder")
    parser.add_argument("--seed", type=int, default=0, help="seed of weights and signals")
    parser.add_argument("--resume", action="store_true", help="resume an interrupted run")
    arguments = parser.parse_args()
    config = replace(NOISE, seed=arguments.seed)
    pretrain_on(SyntheticSignals(), arguments.out, config, resume=arguments.resume)
