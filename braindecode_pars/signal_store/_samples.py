"""Volts to stored numbers and back; the flat file of them, mapped into memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

__all__ = ["DTYPES", "NotFiniteError", "SampleFile", "encode"]

#: What samples may be stored as; in the file they are little-endian.
DTYPES = {"int16": np.dtype("<i2"), "float16": np.dtype("<f2"), "float32": np.dtype("<f4")}

_LARGEST = 32767  # of int16, the same on both sides of zero

#: Samples that are worked on together; they stay in a core's cache.
_CACHED = 100_000


class NotFiniteError(ValueError):
    """A recording holds NaN, or what single precision cannot hold."""


def encode(
    signals: np.ndarray, ch_names: list[str], dtype: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Store signals as ``value = offset + scale * stored``, each channel for itself.

    As int16 the stored numbers span the channel's range, and no value is off by more than half of
    ``scale``; as float16 they have mean 0 and standard deviation 1, since volts would underflow;
    as float32 they are the values.

    Parameters
    ----------
    signals : ndarray of float64, shape (n_chans, n_times)
    ch_names : list of str
        For the message.
    dtype : "int16" | "float16" | "float32"

    Returns
    -------
    stored : ndarray of ``dtype``, shape (n_chans, n_times)
    scale, offset : ndarray of float32, shape (n_chans,)
        Scale 0 marks a channel of one value only.

    Raises
    ------
    NotFiniteError
        Naming the channels that hold NaN or infinite samples.
    """
    low, high = signals.min(axis=1), signals.max(axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        bad = ~np.isfinite((high - low).astype(np.float32) + low.astype(np.float32))
    if bad.any():
        names = [name for name, is_bad in zip(ch_names, bad, strict=True) if is_bad]
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        raise NotFiniteError(
            f"channel{'s' if len(names) > 1 else ''} {', '.join(names[:5])}{more} "
            f"hold{'' if len(names) > 1 else 's'} NaN or infinite samples."
        )
    scale, offset = _line(signals, low, high, dtype)
    stored = np.empty(signals.shape, DTYPES[dtype])
    for channel, values in enumerate(signals):  # one at a time: nights are long
        unit = float(scale[channel]) or 1.0
        numbers = (values - float(offset[channel])) / unit
        if dtype == "int16":
            numbers = np.rint(numbers).clip(-_LARGEST, _LARGEST)
        stored[channel] = numbers
    return stored, scale, offset


def _line(
    signals: np.ndarray, low: np.ndarray, high: np.ndarray, dtype: str
) -> tuple[np.ndarray, np.ndarray]:
    """Scale and offset, in the single precision in which they will be applied."""
    constant = low == high
    if dtype == "float32":
        return np.ones(len(signals), np.float32), np.zeros(len(signals), np.float32)
    if dtype == "float16":
        offset = np.where(constant, low, signals.mean(axis=1)).astype(np.float32)
        scale = signals.std(axis=1).astype(np.float32)
    else:
        offset = np.where(constant, low, low + (high - low) / 2).astype(np.float32)
        scale = (np.maximum(high - offset, offset - low) / _LARGEST).astype(np.float32)
    return np.where(constant, np.float32(0), scale), offset


class SampleFile:
    """One flat file of samples, mapped into memory by each process that reads from it.

    The map is made at the first reading and does not travel with a pickle: worker processes of
    any start method map the same file, and so share one copy in the page cache.

    Parameters
    ----------
    file : Path
    dtype : "int16" | "float16" | "float32"
    n_samples : int
        What lies behind them in the file is not seen.
    """

    def __init__(self, file: Path, dtype: str, n_samples: int):
        self.file = file
        self.dtype = dtype
        self.n_samples = n_samples
        self._map: np.ndarray | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_map": None}

    @property
    def flat(self) -> np.ndarray:
        """All samples, shape (n_samples,), read-only."""
        if self._map is None:
            mapped = np.memmap(self.file, DTYPES[self.dtype], "r", shape=(self.n_samples,))
            self._map = mapped.view(np.ndarray)
        return self._map

    def crops(
        self, firsts: np.ndarray, n_times: int, scale: np.ndarray, offset: np.ndarray
    ) -> np.ndarray:
        """Values of stretches that begin at ``firsts``: float32, shape (n_crops, n_times).

        Parameters
        ----------
        firsts : ndarray of int, shape (n_crops,)
        n_times : int
        scale, offset : ndarray of float32, shape (n_crops,)
        """
        stretches = sliding_window_view(self.flat, n_times)
        if self.dtype == "float32":
            return stretches[firsts]
        values = np.empty((len(firsts), n_times), np.float32)
        n_crops = max(1, _CACHED // n_times)
        for start in range(0, len(firsts), n_crops):
            some = slice(start, start + n_crops)
            block = values[some]
            block[...] = stretches[firsts[some]]
            block *= scale[some, None]
            block += offset[some, None]
        return values
