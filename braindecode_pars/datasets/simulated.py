"""Simulated overnight sleep EEG with sleep stages.

The simulation takes seconds, its output can be shared without restrictions, and its stages are
neither trivial nor impossible to classify. It is not a model of the brain. It simulates:

- Hypnograms: a Markov chain whose transition probabilities change within 90-minute cycles, and over
  the night.
- Spectra: pink noise plus the rhythms that define the stages. These are alpha in wake, theta in
  N1, spindles and K-complexes in N2, slow waves in N3, and theta and sawtooth waves in REM.
- Infraslow fluctuations: the amplitude of the rhythms fluctuates over tens of seconds, as in the
  cyclic alternating pattern of real sleep.
- Differences between subjects: in gain, alpha and spindle frequency, spectral slope, and the
  amplitudes of alpha, spindles and slow waves.
- Electrodes: two sources are projected to the electrodes by a mixing matrix. Electrodes have
  low-frequency drifts, and occasionally record an artifact or a flat signal.
"""

from typing import Any

import mne
import numpy as np
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset
from numpy.random import Generator
from scipy import signal

from braindecode_pars._common.checks import check_parameters, integer, number, optional, positive
from braindecode_pars.recordings.cutting import fixed_windows, name_classes

__all__ = ["CARD", "STAGES", "sleep", "stages_of_a_night"]

#: Names of the sleep stages. The target of a window is the index of its stage in this tuple.
STAGES = ("W", "N1", "N2", "N3", "R")

#: Description of the simulated corpus.
CARD: dict[str, Any] = dict(
    name="simulated sleep",
    version="1",
    license="BSD-3-Clause (made by this package)",
    address=None,
    subjects="any number",
    channels="1 to 13, named as in the 10-20 system",
    sfreq="at least 64 Hz",
    classes=STAGES,
    reference=None,
)

#: Length of a window in seconds.
WINDOW_SECONDS = 30
#: Names of the channels; the first ``n_chans`` channels are simulated.
CHANNELS = ("C3", "C4", "F3", "F4", "O1", "O2", "Fz", "Cz", "Pz", "P3", "P4", "Fp1", "Fp2")

# Transition probabilities from the stage of a window (row) to the stage of the next window
# (column), in the order of STAGES. N3 is more likely early in the night, and REM late in the night.
_EARLY = np.array(
    [
        [0.85, 0.15, 0.00, 0.00, 0.00],
        [0.08, 0.62, 0.28, 0.00, 0.02],
        [0.02, 0.03, 0.86, 0.08, 0.01],
        [0.01, 0.01, 0.06, 0.92, 0.00],
        [0.05, 0.08, 0.05, 0.00, 0.82],
    ]
)
_LATE = np.array(
    [
        [0.85, 0.15, 0.00, 0.00, 0.00],
        [0.08, 0.60, 0.22, 0.00, 0.10],
        [0.02, 0.05, 0.86, 0.02, 0.05],
        [0.02, 0.04, 0.30, 0.64, 0.00],
        [0.03, 0.05, 0.02, 0.00, 0.90],
    ]
)


def stages_of_a_night(n_windows: int, rng: Generator) -> np.ndarray:
    """Simulate the sleep stages of one overnight recording by a Markov chain.

    The first stage is wake. Within each 90-minute cycle, and over the whole recording, N3 becomes
    less likely and REM more likely.

    Parameters
    ----------
    n_windows : int
        Number of 30-second windows.
    rng : numpy.random.Generator
        Random number generator.

    Returns
    -------
    ndarray of int, shape (n_windows,)
        Stage of each window, as an index into :data:`STAGES`.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.datasets.simulated import STAGES, stages_of_a_night
    >>> stages = stages_of_a_night(960, np.random.default_rng(0))  # eight hours
    >>> STAGES[stages[0]], sorted({STAGES[stage] for stage in stages})
    ('W', ['N1', 'N2', 'N3', 'R', 'W'])
    """
    stages = np.zeros(n_windows, dtype=int)
    cycle = 90 * 60 / WINDOW_SECONDS
    for i in range(1, n_windows):
        # Weight of the late probabilities, from 0 to 1: mean of the relative time in the cycle and
        # the relative time in the recording.
        late = 0.5 * (i % cycle) / cycle + 0.5 * i / n_windows
        transition = (1 - late) * _EARLY[stages[i - 1]] + late * _LATE[stages[i - 1]]
        stages[i] = rng.choice(len(STAGES), p=transition / transition.sum())
    return stages


def sleep(
    n_subjects: int = 8,
    hours: float = 2.0,
    n_chans: int = 4,
    sfreq: float = 100.0,
    random_state: int | None = 0,
) -> BaseConcatDataset:
    """Simulate sleep EEG in 30-second windows.

    Parameters
    ----------
    n_subjects : int
        Number of subjects, with one recording per subject. Subjects are numbered from 1.
    hours : float
        Duration of each recording in hours, rounded to a whole number of windows (at least one).
    n_chans : int
        Number of channels, from 1 to 13. The channels have names of the 10-20 system.
    sfreq : float
        Sampling rate in Hz, at least 64, so that spindles can be represented.
    random_state : int | None
        Seed of the random number generator. If None, each call returns different data. With the
        same seed, the recording of a subject does not depend on ``n_subjects``.

    Returns
    -------
    BaseConcatDataset of EEGWindowsDataset
        Windows with signals in volts. Targets are indices into :data:`STAGES`. The description of
        each recording contains ``subject``.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    :mod:`~braindecode_pars.datasets.simulated` describes the simulation. The simulation is not a
    model of the brain, so a method may have different scores on real sleep recordings.

    Examples
    --------
    >>> from braindecode_pars import datasets
    >>> windows = datasets.simulated.sleep(n_subjects=2, hours=0.5, n_chans=2)
    >>> len(windows), windows[0][0].shape
    (120, (2, 3000))
    """
    check_parameters(
        locals(),
        dict(
            n_subjects=integer(1),
            n_chans=integer(1),
            hours=positive(),
            sfreq=number("of at least 64 Hz", lambda x: x >= 64),
            random_state=optional(integer(0)),
        ),
        "sleep",
    )
    if n_chans > len(CHANNELS):
        raise ValueError(f"n_chans must be between 1 and {len(CHANNELS)}, got {n_chans}.")
    n_windows = max(round(hours * 3600 / WINDOW_SECONDS), 1)
    # One seed per subject, so that the recording of a subject does not depend on n_subjects.
    recordings = []
    seeds = np.random.SeedSequence(random_state).spawn(n_subjects)
    for subject, seed in enumerate(seeds, start=1):
        rng = np.random.default_rng(seed)
        recordings.append(_recording(subject, n_windows, n_chans, sfreq, rng))
    return BaseConcatDataset(recordings)


def _recording(
    subject: int, n_windows: int, n_chans: int, sfreq: float, rng: Generator
) -> EEGWindowsDataset:
    stages = stages_of_a_night(n_windows, rng)
    window_size = round(WINDOW_SECONDS * sfreq)

    # Project the sources to the electrodes. Multiply by a gain of the subject and a gain of each
    # channel, in volts.
    sources = _sources(stages, sfreq, rng)  # (2, n_times)
    noise = rng.normal(size=(n_chans, sources.shape[1]))
    front_to_back = np.linspace(0.9, 0.3, n_chans)
    mixing = np.stack([front_to_back, 1.2 - front_to_back], 1) * rng.uniform(0.8, 1.2, (n_chans, 2))
    samples = mixing @ sources + 0.35 * _pink(noise, sfreq, slope=0.8)
    samples *= 12e-6 * np.exp(rng.normal(0, 0.35)) * np.exp(rng.normal(0, 0.25, (n_chans, 1)))
    # Add low-frequency drifts, as remain after high-pass filtering of the effects of sweat or
    # settling electrodes.
    n = samples.shape[1]
    steps = rng.normal(size=(n_chans, n // round(2 * sfreq) + 2))
    walk = signal.lfilter([1], [1, -0.9], steps)
    knots, times = np.linspace(0, n, walk.shape[1]), np.arange(n)
    scales = samples.std(axis=1) * rng.uniform(0.05, 0.15, n_chans)
    for row, drift, scale in zip(samples, walk, scales, strict=True):
        row += scale * np.interp(times, knots, drift)
    _add_artifacts(samples, window_size, rng)

    # Create windows in the format of braindecode.
    info = mne.create_info(list(CHANNELS[:n_chans]), sfreq, "eeg")
    raw = mne.io.RawArray(samples.astype(np.float32), info, verbose="error")
    windows = fixed_windows(raw, WINDOW_SECONDS, stages)
    assert windows is not None  # there is at least one window
    return name_classes(EEGWindowsDataset(raw, windows.metadata, {"subject": subject}), STAGES)


def _sources(stages: np.ndarray, sfreq: float, rng: Generator) -> np.ndarray:
    """Simulate two sources of a subject with a standard deviation near 1, shape (2, n_times)."""
    alpha_hz, spindle_hz = rng.uniform(8.5, 11.5), rng.uniform(11.8, 14.2)
    slope = rng.uniform(0.9, 1.5)
    # Amplitudes vary between subjects: some subjects have almost no alpha, or weak spindles.
    alpha, spindles, slow = np.exp(rng.normal(0, [0.6, 0.35, 0.3]))
    length = round(WINDOW_SECONDS * sfreq)
    n = length * len(stages)
    total = _pink(rng.normal(size=(2, n)), sfreq, slope)

    # Alpha, theta, slow waves and muscle activity: limits of the frequency band in Hz, and
    # amplitudes in the order of STAGES.
    rhythms = (
        (alpha_hz - 1, alpha_hz + 1, (0.9 * alpha, 0.25 * alpha, 0.05, 0.02, 0.12 * alpha)),
        (4, 7.5, (0.15, 0.55, 0.35, 0.2, 0.5)),
        (0.5, 2.0, (0.1, 0.2, 0.55 * slow, 1.7 * slow, 0.2)),
        (20, min(45, 0.45 * sfreq), (0.45, 0.25, 0.15, 0.12, 0.06)),
    )
    seconds = np.arange(0, n / sfreq + 1)
    for low, high, amplitudes in rhythms:
        rhythm = _band_noise(rng.normal(size=(2, n)), low, high, sfreq)
        # The amplitude varies within a stage, and stages may change at any time within a window.
        per_window = np.asarray(amplitudes)[stages] * np.exp(rng.normal(0, 0.35, len(stages)))
        centers = np.arange(len(stages)) + 0.5 + rng.uniform(-0.3, 0.3, len(stages))
        amplitude = np.interp(np.arange(n) / length, centers, per_window)
        # The amplitude also fluctuates over tens of seconds.
        course = _band_noise(rng.normal(size=len(seconds)), 0.01, 0.05, sfreq=1.0)
        amplitude *= np.interp(np.arange(n) / sfreq, seconds, np.exp(0.6 * course))
        total = total + amplitude * rhythm

    def starts(stage: str, per_minute: float) -> np.ndarray:
        # First samples of events in the windows of a stage, shape (n_events,). The number of events
        # per window is Poisson-distributed.
        counts = rng.poisson(per_minute * WINDOW_SECONDS / 60, len(stages))
        counts[stages != STAGES.index(stage)] = 0
        windows = np.repeat(np.arange(len(stages)), counts)
        return windows * length + rng.integers(0, length, len(windows))

    events = np.zeros((2, n))
    # Spindles: one second at the spindle frequency of the subject.
    t = np.arange(round(1.0 * sfreq)) / sfreq
    for start in starts("N2", 5.0):
        hz = spindle_hz + rng.normal(0, 0.3)
        spindle = np.sin(2 * np.pi * hz * t) * np.hanning(len(t)) * 1.6 * spindles
        _add(events, start, spindle, rng.uniform(0.6, 1.0, 2))
    # K-complexes: a sharp negative wave, followed by a slow positive wave.
    t = np.arange(round(1.2 * sfreq)) / sfreq
    k_complex = -np.exp(-(((t - 0.25) / 0.09) ** 2)) + 0.6 * np.exp(-(((t - 0.62) / 0.2) ** 2))
    for start in starts("N2", 1.6):
        _add(events, start, 5.0 * k_complex, rng.uniform(0.6, 1.0, 2))
    total, events = total + events, np.zeros((2, n))
    # Sawtooth waves
    t = np.arange(round(3.0 * sfreq)) / sfreq
    for start in starts("R", 1.5):
        hz = rng.uniform(2.0, 4.0)
        wave = signal.sawtooth(2 * np.pi * hz * t, width=0.8) * np.hanning(len(t)) * 1.3
        _add(events, start, wave, rng.uniform(0.5, 1.0, 2))
    return total + events


def _add(total: np.ndarray, start: int, wave: np.ndarray, gains: np.ndarray) -> None:
    # An event near the end of the recording is shortened.
    stop = min(start + len(wave), total.shape[1])
    total[:, start:stop] += gains[:, None] * wave[: stop - start]


def _pink(white: np.ndarray, sfreq: float, slope: float) -> np.ndarray:
    """Return noise of unit variance with a 1/f**slope spectrum above 0.3 Hz."""
    spectrum = np.fft.rfft(white)
    frequencies = np.fft.rfftfreq(white.shape[-1], 1 / sfreq)
    spectrum *= np.where(frequencies < 0.3, 0.0, np.maximum(frequencies, 0.3) ** (-slope / 2))
    shaped = np.fft.irfft(spectrum, n=white.shape[-1])
    return shaped / shaped.std(axis=-1, keepdims=True)


def _band_noise(white: np.ndarray, low: float, high: float, sfreq: float) -> np.ndarray:
    """Return band-pass filtered noise of unit variance."""
    sos = signal.butter(2, (low, high), "bandpass", fs=sfreq, output="sos")
    filtered = signal.sosfilt(sos, white)
    return filtered / filtered.std(axis=-1, keepdims=True)


def _add_artifacts(samples: np.ndarray, window_size: int, rng: Generator) -> None:
    """Add movement artifacts and flat channels in place."""
    n_chans, n = samples.shape
    for start in range(0, n, window_size):
        # A movement in 4 % of windows: a random walk that starts and ends at zero.
        if rng.random() < 0.04:
            length = rng.integers(window_size // 20, window_size // 4)
            begin = start + rng.integers(0, window_size - length)
            burst = np.cumsum(rng.normal(size=(n_chans, length)), axis=1)
            burst -= np.linspace(burst[:, 0], burst[:, -1], length).T
            scale = samples.std() * rng.uniform(1, 4) / burst.std()
            samples[:, begin : begin + length] += scale * burst
        # One channel is flat for one to three windows.
        if rng.random() < 0.004:
            samples[rng.integers(n_chans), start : start + window_size * rng.integers(1, 4)] = 0.0
