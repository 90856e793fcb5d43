"""Resampling of one long signal as MNE does it by default, in less than half of the memory."""

from __future__ import annotations

import math

import numpy as np
from scipy import fft

__all__ = ["resampled"]


def resampled(signal: np.ndarray, sfreq: float, old_sfreq: float) -> np.ndarray:
    """Resample a signal in the frequency domain, as :func:`mne.filter.resample` with "auto".

    The Fourier transforms are in single precision, without the mean of the signal; those of MNE are
    in double precision.

    Parameters
    ----------
    signal : ndarray of float64, shape (n_times,)
        Signal without gaps.
    sfreq, old_sfreq : float
        New and old sampling rate in Hz.

    Returns
    -------
    ndarray of float64, shape (n_new,)
        The signal at the new rate; ``n_new`` is ``n_times * sfreq / old_sfreq``, rounded. As in
        MNE, the first sample and the length of the padded signal are rounded to half a sample each.
        A signal whose length stays the same is returned as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from braindecode_pars.recordings._resampling import resampled
    >>> sine = np.sin(2 * np.pi * 4 * np.arange(256) / 256)
    >>> expected = np.sin(2 * np.pi * 4 * np.arange(100) / 100)
    >>> bool(np.abs(resampled(sine, 100.0, 256.0) - expected).max() < 0.02)
    True
    """
    ratio = sfreq / old_sfreq
    n_times, n_final = len(signal), max(round(ratio * len(signal)), 1)
    if n_times == n_final:
        return signal
    # Pad to a power of two, at least a hundred samples on both sides of a long signal.
    n_padded = 2 ** math.ceil(math.log2(n_times + 2 * min(n_times // 8, 100)))
    before, n_new = (n_padded - n_times) // 2, max(round(ratio * n_padded), 1)
    mean = signal.mean()
    padded = _padded(signal, mean, before, n_padded)
    del signal  # it may be the largest array
    spectrum = fft.rfft(padded)
    # The highest frequency that both rates have is once in one spectrum, and twice in the other.
    shared = min(n_padded, n_new)
    if shared % 2 == 0:
        spectrum[shared // 2] *= 2 if n_new < n_padded else 0.5
    first = round(ratio * before)
    new = fft.irfft(spectrum[: n_new // 2 + 1], n_new)[first : first + n_final]
    return new.astype(np.float64) * (n_new / n_padded) + mean


def _padded(signal: np.ndarray, mean: float, before: int, n_padded: int) -> np.ndarray:
    """Reflect a signal at its first and last point, once, with zeros beyond, less its mean."""
    limit = len(signal) - 1
    padded = np.full(n_padded, -mean, np.float32)
    end = before + len(signal)
    first, last = min(before, limit), min(n_padded - end, limit)
    single = dict(casting="same_kind")
    np.subtract(signal, mean, out=padded[before:end], **single)
    start, stop = 2 * signal[0] - mean, 2 * signal[-1] - mean
    np.subtract(start, signal[first:0:-1], out=padded[before - first : before], **single)
    np.subtract(stop, signal[-2 : -2 - last : -1], out=padded[end : end + last], **single)
    return padded
