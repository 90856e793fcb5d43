"""Functions that remove one thing from windows: slow voltages, drifts, eyes, phases, ...

The arrays have the shape (n, n_chans, n_times).
:class:`~braindecode_pars.evaluation.ChangedSignals` applies the functions to windows of any source.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
from scipy import signal

from braindecode_pars.windows.table import divided

#: Order of the Butterworth filter, which is applied forwards and backwards.
ORDER = 4
#: Standard deviation of every channel of a window without amplitudes, in volts.
AMPLITUDE = 1e-5


def high_passed(X: np.ndarray, sfreq: float, edge: float = 7.0) -> np.ndarray:
    r"""Remove slow voltages with a Butterworth high-pass filter without phase shift.

    The filter of order :math:`n = 4` is applied forwards and backwards, so that a sine of frequency
    :math:`f` keeps the share

    .. math::
        |H(f)|^2 = \left(1 + \left(\frac{\tan(\pi f_c / f_s)}{\tan(\pi f / f_s)}\right)^{2n}
        \right)^{-1}

    of its amplitude: a half at the edge :math:`f_c`, 0.0002 at a third of it. At both ends the
    signal is continued by at most one second of its odd reflection. Near the ends of a short window
    slow voltages are therefore not removed completely, over about one period of the edge; filter
    the recording before it is cut where you can.

    Parameters
    ----------
    X : ndarray, shape (n, n_chans, n_times)
        Windows, or whole recordings.
    sfreq : float
        Sampling rate :math:`f_s` in Hz.
    edge : float
        Edge :math:`f_c` in Hz, below half of the sampling rate.

    Returns
    -------
    ndarray, shape (n, n_chans, n_times)

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.changed_signals import high_passed
    >>> times = np.arange(1000) / 100
    >>> sines = np.sin(2 * np.pi * np.outer([2, 20], times))[None]  # 2 Hz and 20 Hz
    >>> high_passed(sines, sfreq=100)[0, :, 300:700].std(axis=1).round(2).tolist()
    [0.0, 0.71]
    """
    sections = signal.butter(ORDER, edge, "highpass", fs=sfreq, output="sos")
    padding = min(round(sfreq), X.shape[-1] - 1)
    return signal.sosfiltfilt(sections, X, axis=-1, padlen=padding)


def detrended(X: np.ndarray, patch_size: int | None = None) -> np.ndarray:
    r"""Subtract from each channel of each patch the line that fits it best.

    The samples :math:`x_t` of a patch become :math:`x_t - a - b t`, where :math:`a` and :math:`b`
    minimise :math:`\sum_t (x_t - a - b t)^2`.

    Parameters
    ----------
    X : ndarray, shape (n, n_chans, n_times)
        Windows.
    patch_size : int | None
        Length of a patch in samples; the last one is shorter where it has to be. None subtracts one
        line from the whole window.

    Returns
    -------
    ndarray, shape (n, n_chans, n_times)

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.changed_signals import detrended
    >>> detrended(np.array([[[0.0, 1.0, 2.0, 6.0]]]), patch_size=3).round(6).tolist()
    [[[0.0, 0.0, 0.0, 0.0]]]
    """
    n_times = X.shape[-1]
    breaks = np.arange(patch_size or n_times, n_times, patch_size or n_times)
    return signal.detrend(X, axis=-1, bp=breaks)


def eye_coefficients(X: np.ndarray, eyes: np.ndarray) -> np.ndarray:
    r"""Return how much of each eye signal is in each channel, by least squares.

    With the deviations :math:`\tilde x` and :math:`\tilde e` from the means over all windows,

    .. math::
        B = \Big(\sum_{i,t} \tilde x_{it} \tilde e_{it}^\top\Big)
            \Big(\sum_{i,t} \tilde e_{it} \tilde e_{it}^\top\Big)^{-1} .

    For one recording these are the coefficients of :class:`mne.preprocessing.EOGRegression`.

    Parameters
    ----------
    X : ndarray, shape (n, n_chans, n_times)
        Windows or recordings of one subject.
    eyes : ndarray, shape (n, n_eyes, n_times)
        Signals of the eyes at the same times.

    Returns
    -------
    ndarray, shape (n_chans, n_eyes)

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.changed_signals import eye_coefficients
    >>> eyes = np.random.default_rng(0).normal(size=(1, 1, 500))
    >>> eye_coefficients(0.3 * eyes, eyes).round(6).tolist()
    [[0.3]]
    """
    flat = [np.moveaxis(each, 1, 0).reshape(each.shape[1], -1) for each in (X, eyes)]
    x, e = (each - each.mean(axis=1, keepdims=True) for each in flat)
    # The pseudo-inverse serves where a signal of the eyes is flat, or equal to another one.
    return x @ e.T @ np.linalg.pinv(e @ e.T, hermitian=True)


def without_eyes(
    X: np.ndarray,
    eyes: np.ndarray,
    coefficients: np.ndarray | None = None,
    mean: np.ndarray | None = None,
) -> np.ndarray:
    r"""Subtract what signals of the eyes predict: :math:`x_{it} - B (e_{it} - \bar e)`.

    The coefficients are those of a subject, not of a window: how eye movements spread over the
    scalp is a property of head and electrodes. Coefficients of a short window would also fit what
    the brain has in common with the frontal channels in these seconds.

    Parameters
    ----------
    X : ndarray, shape (n, n_chans, n_times)
        Windows.
    eyes : ndarray, shape (n, n_eyes, n_times)
        Signals of the eyes at the same times.
    coefficients : ndarray, shape (n_chans, n_eyes) | None
        Matrix :math:`B`; None takes that of these windows, see :func:`eye_coefficients`.
    mean : ndarray, shape (n_eyes, 1) | None
        Mean :math:`\bar e`; None takes that over these windows.

    Returns
    -------
    ndarray, shape (n, n_chans, n_times)

    References
    ----------
    Gratton et al. 1983, A new method for off-line removal of ocular artifact,
    Electroencephalography and Clinical Neurophysiology 55(4).

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.changed_signals import without_eyes
    >>> brain, eyes = np.random.default_rng(0).normal(size=(2, 1, 1, 5000))
    >>> mixed = brain + 3 * eyes
    >>> bool(np.abs(without_eyes(mixed, eyes) - brain).max() < 0.2)
    True
    """
    if coefficients is None:
        coefficients = eye_coefficients(X, eyes)
    if mean is None:
        mean = eyes.mean(axis=(0, 2))[:, None]
    return X - coefficients @ (eyes - mean)


def random_phases(X: np.ndarray, random_state: int = 0) -> np.ndarray:
    r"""Add random phases to the Fourier coefficients of each window, and keep their amplitudes.

    .. math::
        \hat x_{ck} \mapsto e^{\mathrm{i} \varphi_k} \hat x_{ck}, \qquad
        \varphi_k \sim \mathcal U(0, 2 \pi)

    The phase is the same for all channels :math:`c` of a window. Spectra, cross-spectra and the
    covariance of the channels are therefore kept exactly; waveform, timing and the sign of a slow
    shift are lost. Coefficients that are real, at zero and at half of the sampling rate, get a
    random sign. The random numbers depend on the samples of the window and on ``random_state``, not
    on the other windows.

    Parameters
    ----------
    X : ndarray, shape (n, n_chans, n_times)
        Windows.
    random_state : int
        Seed.

    Returns
    -------
    ndarray, shape (n, n_chans, n_times)

    References
    ----------
    Prichard and Theiler 1994, Generating surrogate data for time series with several simultaneously
    measured variables, Physical Review Letters 73.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.changed_signals import random_phases
    >>> X = np.random.default_rng(0).normal(size=(1, 2, 100))
    >>> changed = random_phases(X)
    >>> bool(np.allclose(changed[0] @ changed[0].T, X[0] @ X[0].T)), bool(np.allclose(changed, X))
    (True, False)
    """
    n_times = X.shape[-1]
    spectra = np.fft.rfft(X, axis=-1)
    are_real = [0, *([n_times // 2] if n_times % 2 == 0 else [])]
    for spectrum, rng in zip(spectra, _generators(X, random_state), strict=True):
        factors = np.exp(1j * rng.uniform(0, 2 * np.pi, spectrum.shape[-1]))
        factors[are_real] = np.where(factors[are_real].imag > 0, 1, -1)
        spectrum *= factors
    return np.fft.irfft(spectra, n_times, axis=-1)


def equal_amplitudes(X: np.ndarray, amplitude: float = AMPLITUDE) -> np.ndarray:
    r"""Give each channel of each window the same standard deviation: :math:`x_{ct} a / s_c`.

    The power of a window and of its channels is lost. The shares of frequencies in a channel, such
    as relative band power, are kept.

    Parameters
    ----------
    X : ndarray, shape (n, n_chans, n_times)
        Windows.
    amplitude : float
        Standard deviation :math:`a` of all channels, by default 10 microvolts.

    Returns
    -------
    ndarray, shape (n, n_chans, n_times)
        Channels without any change become zero.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.changed_signals import equal_amplitudes
    >>> equal_amplitudes(np.array([[[1.0, -1.0], [5.0, -5.0], [2.0, 2.0]]]), amplitude=1.0).tolist()
    [[[1.0, -1.0], [1.0, -1.0], [0.0, 0.0]]]
    """
    spread = X.std(axis=-1, keepdims=True)
    return X * np.divide(amplitude, spread, out=np.zeros_like(spread), where=spread > 0)


def shuffled_patches(X: np.ndarray, patch_size: int, random_state: int = 0) -> np.ndarray:
    r"""Put the patches of each window in a random order, the same for all its channels.

    Patch :math:`p` of a window becomes its patch :math:`\pi(p)`, where all permutations
    :math:`\pi` are equally likely. What is left after the last whole patch stays at the end. Where
    patches meet there are steps, which add power at all frequencies. The random numbers are those
    of :func:`random_phases`: they depend on the window itself.

    Parameters
    ----------
    X : ndarray, shape (n, n_chans, n_times)
        Windows of at least two patches.
    patch_size : int
        Length of a patch in samples.
    random_state : int
        Seed.

    Returns
    -------
    ndarray, shape (n, n_chans, n_times)

    Raises
    ------
    ValueError
        When a window is shorter than two patches.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.changed_signals import shuffled_patches
    >>> shuffled_patches(np.arange(7.0)[None, None], patch_size=2).tolist()
    [[[4.0, 5.0, 2.0, 3.0, 0.0, 1.0, 6.0]]]
    """
    _, n_chans, n_times = X.shape
    n_patches = n_times // patch_size
    if n_patches < 2:
        raise ValueError(
            f"Windows of {n_times} samples have no two patches of {patch_size} samples to put in "
            "another order; use shorter patches (patch_seconds)."
        )
    shuffled, whole = X.copy(), n_patches * patch_size
    for window, rng in zip(shuffled, _generators(X, random_state), strict=True):
        patches = window[:, :whole].reshape(n_chans, n_patches, patch_size)
        window[:, :whole] = patches[:, rng.permutation(n_patches)].reshape(n_chans, whole)
    return shuffled


def permuted_labels(y: np.ndarray, subjects: np.ndarray, random_state: int = 0) -> np.ndarray:
    r"""Permute the labels of each subject: :math:`y_i` becomes :math:`y_{\pi_{s(i)}(i)}`.

    Each subject keeps the number of windows of each class, and no signal tells them apart any more.
    A score that is not at chance level then shows a leak.

    Parameters
    ----------
    y, subjects : ndarray, shape (n,)
        Labels and subjects.
    random_state : int
        Seed.

    Returns
    -------
    ndarray, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.evaluation.changed_signals import permuted_labels
    >>> permuted_labels(np.array([0, 0, 1, 1, 2, 3]), np.array([1, 1, 1, 1, 2, 2])).tolist()
    [1, 0, 0, 1, 3, 2]
    """
    rng = np.random.default_rng(random_state)
    permuted = np.asarray(y).copy()
    for number in range(max(of_subject := divided([np.asarray(subjects)])[0]) + 1):
        own = np.flatnonzero(of_subject == number)
        permuted[own] = permuted[rng.permutation(own)]
    return permuted


def _generators(X: np.ndarray, random_state: int) -> Iterator[np.random.Generator]:
    """Yield the random numbers of each window, which depend on its samples and on the seed."""
    for window in X:
        samples = np.ascontiguousarray(window, dtype=np.float32)
        digest = hashlib.blake2b(samples.tobytes(), digest_size=8).digest()
        yield np.random.default_rng([random_state, int.from_bytes(digest)])
