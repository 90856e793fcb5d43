"""Preprocessed signals of a recording, one channel after another, so that no copy of it is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import mne
import numpy as np

from braindecode_pars.preprocessing import Preprocessing
from braindecode_pars.recordings._derivations import Derivation
from braindecode_pars.recordings._gaps import continuous_stretches
from braindecode_pars.recordings._resampling import resampled

__all__ = ["new_sample", "preprocessed_signals"]

#: Samples that are read at a time.
_BLOCK = 2**20


def preprocessed_signals(
    raw: mne.io.BaseRaw,
    derivations: Sequence[Derivation],
    sfreq: float,
    preprocessing: Preprocessing,
    *,
    shortest: int = 2,
) -> np.ndarray:
    """Compute channels of a recording, resampled, filtered (if they are EEG) and scaled.

    Each part between gaps is resampled and then filtered, as
    :func:`~braindecode_pars.recordings.preparation.filter_and_resample` does with a whole
    recording. The recording itself is not changed. Beside the returned array, the memory of a few
    copies of one channel is needed.

    Parameters
    ----------
    raw : Raw
        Continuous recording, in volts.
    derivations : sequence of Derivation
        Channels to compute.
    sfreq : float
        New sampling rate in Hz.
    preprocessing : Preprocessing
        The filters to apply (``band``, ``notch``) and the factor of the signals (``scale``); the
        reference is that of the derivations. Frequencies at or above the Nyquist frequency of the
        new rate need no filter.
    shortest : int
        Samples, at the new rate, of the shortest part between gaps that is used.

    Returns
    -------
    ndarray of float32, shape (n_chans, n_times)
        Signals; zeros in gaps and in shorter parts. Sample ``k`` is at ``k / sfreq`` seconds, up to
        one sample, and up to one and a half after a gap.

    Raises
    ------
    ValueError
        When samples are NaN or infinite. The message names the channel.

    Examples
    --------
    >>> import mne
    >>> import numpy as np
    >>> from braindecode_pars.preprocessing import Preprocessing
    >>> from braindecode_pars.recordings._derivations import Derivation
    >>> from braindecode_pars.recordings._signals import preprocessed_signals
    >>> info = mne.create_info(["C3", "M2"], 256.0, "eeg")
    >>> raw = mne.io.RawArray(np.ones((2, 2560)), info, verbose="error")
    >>> c3 = Derivation("C3-M2", (("C3", 1.0), ("M2", -1.0)))
    >>> preprocessed_signals(raw, [c3], 100.0, Preprocessing(band=(None, 35.0))).shape
    (1, 1000)
    """
    signals = np.zeros((len(derivations), new_sample(raw.n_times, raw, sfreq)), np.float32)
    for start, stop in continuous_stretches(raw):
        first, last = (new_sample(sample, raw, sfreq) for sample in (start, stop))
        if last - first < shortest:
            continue
        part = _Part(raw, start, stop)
        references = {
            names: part.weighted_sum([(name, 1 / len(names)) for name in names])
            for names in {derivation.reference for derivation in derivations}
            if names
        }
        for row, derivation in enumerate(derivations):
            part.prepare(derivation, references, sfreq, preprocessing, out=signals[row, first:])
    return signals


def new_sample(sample: int, raw: mne.io.BaseRaw, sfreq: float) -> int:
    """Return the sample at the same time after resampling, rounded as MNE rounds lengths."""
    return round(sample * sfreq / raw.info["sfreq"])


def _filtered(signal: np.ndarray, sfreq: float, preprocessing: Preprocessing) -> np.ndarray:
    """Filter a signal in place, shape (n_times,)."""
    low, high = preprocessing.band or (None, None)
    high = high if high is not None and high < sfreq / 2 else None
    if low is not None or high is not None:
        kind = dict(method=preprocessing.filter or "fir", copy=False, verbose="error")
        signal = mne.filter.filter_data(signal, sfreq, low, high, **kind)
    for mains in preprocessing.notch or ():
        if mains < sfreq / 2:
            signal = mne.filter.notch_filter(signal, sfreq, mains, copy=False, verbose="error")
    return signal


class _Part(NamedTuple):
    """A part of a recording without gaps."""

    raw: mne.io.BaseRaw
    start: int
    stop: int

    def prepare(
        self,
        derivation: Derivation,
        references: Mapping[tuple[str, ...], np.ndarray],
        sfreq: float,
        preprocessing: Preprocessing,
        out: np.ndarray,
    ) -> None:
        """Write a channel, resampled, filtered and scaled, to the beginning of ``out``."""
        # Nothing else refers to the signal at the old rate, so that its memory is soon free.
        signal = resampled(self.signal(derivation, references), sfreq, self.raw.info["sfreq"])
        if derivation.is_eeg:
            signal = _filtered(signal, sfreq, preprocessing)
        signal = signal[: len(out)]
        np.multiply(signal, preprocessing.scale or 1.0, out=out[: len(signal)], casting="same_kind")

    def signal(
        self, derivation: Derivation, references: Mapping[tuple[str, ...], np.ndarray]
    ) -> np.ndarray:
        """Return a channel as a new array of float64, shape (n_times,)."""
        signal = self.weighted_sum(derivation.weights)
        if derivation.reference:
            signal -= references[derivation.reference]
        return signal

    def weighted_sum(self, weights: Sequence[tuple[str, float]]) -> np.ndarray:
        """Return the sum of channels as a new array of float64, shape (n_times,)."""
        total = np.zeros(self.stop - self.start)
        for name, weight in weights:
            channel = self.raw.ch_names.index(name)
            for start in range(self.start, self.stop, _BLOCK):
                block = slice(start, min(start + _BLOCK, self.stop))
                # Not raw[channel, block], which makes an array of the times, too.
                samples = self.raw.get_data([channel], block.start, block.stop, verbose="error")[0]
                if not np.isfinite(samples).all():
                    raise ValueError(
                        f"channel {name} contains NaN or infinite samples; remove or repair it "
                        "first."
                    )
                samples *= weight
                total[block.start - self.start : block.stop - self.start] += samples
        return total
