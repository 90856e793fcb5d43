"""Conversion between volts and stored numbers, and the memory-mapped file of the numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

__all__ = ["DTYPES", "NotFiniteError", "SampleFile", "encode"]

#: Types of stored samples; in the file they are little-endian.
DTYPES = {"int16": np.dtype("<i2"), "float16": np.dtype("<f2"), "float32": np.dtype("<f4")}

_LARGEST = 32767  # of int16; -32768 is not used, so that the range is symmetric

#: Number of samples that are scaled together. They fit into the cache of a CPU core.
_CACHED = 100_000


class NotFiniteError(ValueError):
    """A recording contains NaN or infinite samples, or values too large for single precision."""


def encode(
    signals: np.ndarray, ch_names: list[str], dtype: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Encode each channel as ``value = offset + scale * stored``.

    With int16, the stored numbers span the range of the channel, and the error of a value is at
    most half of ``scale``. With float16, the stored numbers have mean 0 and standard deviation 1,
    because values in volts would underflow. With float32, the stored numbers are the values.

    Parameters
    ----------
    signals : ndarray of float64, shape (n_chans, n_times)
        Signals in volts.
    ch_names : list of str
        Names of the channels, for the error message.
    dtype : "int16" | "float16" | "float32"
        Type of the stored numbers.

    Returns
    -------
    stored : ndarray of ``dtype``, shape (n_chans, n_times)
        Numbers to store.
    scale, offset : ndarray of float32, shape (n_chans,)
        Scale and offset of each channel. The scale of a constant channel is 0.

    Raises
    ------
    NotFiniteError
        When a channel contains NaN or infinite samples. The message names the channels.
    """
    # The sum overflows to inf if the values do not fit into single precision.
    low, high = signals.min(axis=1), signals.max(axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        bad = ~np.isfinite((high - low).astype(np.float32) + low.astype(np.float32))
    if bad.any():
        names = [name for name, is_bad in zip(ch_names, bad, strict=True) if is_bad]
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        raise NotFiniteError(
            f"channel{'s' if len(names) > 1 else ''} {', '.join(names[:5])}{more} "
            f"contain{'' if len(names) > 1 else 's'} NaN or infinite samples."
        )
    # Encode channel by channel, because a whole night in float64 takes much memory.
    scale, offset = _scale_and_offset(signals, low, high, dtype)
    stored = np.empty(signals.shape, DTYPES[dtype])
    for channel, values in enumerate(signals):
        unit = float(scale[channel]) or 1.0
        numbers = (values - float(offset[channel])) / unit
        if dtype == "int16":
            numbers = np.rint(numbers).clip(-_LARGEST, _LARGEST)
        stored[channel] = numbers
    return stored, scale, offset


def _scale_and_offset(
    signals: np.ndarray, low: np.ndarray, high: np.ndarray, dtype: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return scale and offset of each channel, in the precision in which they are applied."""
    constant = low == high
    if dtype == "float32":
        return np.ones(len(signals), np.float32), np.zeros(len(signals), np.float32)
    if dtype == "float16":
        offset = np.where(constant, low, signals.mean(axis=1)).astype(np.float32)
        scale = signals.std(axis=1).astype(np.float32)
    else:
        # The offset is rounded, so the range is measured from the rounded offset.
        offset = np.where(constant, low, low + (high - low) / 2).astype(np.float32)
        scale = (np.maximum(high - offset, offset - low) / _LARGEST).astype(np.float32)
    return np.where(constant, np.float32(0), scale), offset


class SampleFile:
    """Flat file of samples, mapped into memory by each process that reads it.

    The file is mapped when it is first read. The map is not pickled: every worker process, with
    any start method, maps the same file, and all processes share one copy in the page cache.

    Parameters
    ----------
    file : Path
        Path of the file.
    dtype : "int16" | "float16" | "float32"
        Type of the stored samples.
    n_samples : int
        Number of samples to map. The file may be longer.
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
        """Return crops as float32 values in volts, shape (n_crops, n_times).

        Parameters
        ----------
        firsts : ndarray of int, shape (n_crops,)
            Position of the first sample of each crop in the file.
        n_times : int
            Length of a crop in samples.
        scale, offset : ndarray of float32, shape (n_crops,)
            Scale and offset of each crop.
        """
        # A view of all possible crops, shape (n_samples - n_times + 1, n_times); nothing is read.
        all_crops = sliding_window_view(self.flat, n_times)
        if self.dtype == "float32":
            return all_crops[firsts]
        # Read and scale in blocks that fit into the cache.
        values = np.empty((len(firsts), n_times), np.float32)
        n_crops = max(1, _CACHED // n_times)
        for start in range(0, len(firsts), n_crops):
            rows = slice(start, start + n_crops)
            block = values[rows]
            block[...] = all_crops[firsts[rows]]
            block *= scale[rows, None]
            block += offset[rows, None]
        return values
