"""Samples of a store: conversion between volts and stored numbers, and their memory-mapped file.

Recordings are read, prepared and encoded in parallel; results keep the order of the recordings.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import mne
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from braindecode_pars._common.files import checksum_of
from braindecode_pars.recordings.cutting import continuous_stretches, split_at_gaps
from braindecode_pars.recordings.preparation import channels_left_out
from braindecode_pars.recordings.preprocessing import Preprocessing
from braindecode_pars.signal_store.index import Labels
from braindecode_pars.signal_store.sources import NoWindowError, Preparation, Source
from braindecode_pars.windows.amplitudes import N_WINDOWS, amplitude_problem, spread_out

#: Types of stored samples; in the file they are little-endian.
DTYPES: dict[str, np.dtype] = {
    "int16": np.dtype("<i2"),
    "float16": np.dtype("<f2"),
    "float32": np.dtype("<f4"),
}

#: Largest stored number; -32768 of int16 is not used, so that the range is symmetric.
_LARGEST = {"int16": 32767, "float16": 65504}

#: Steps of int16 in a standard deviation of the signal, at least. A range that gives fewer is cut.
_STEPS = 20
#: The usual range of a channel may be this many times as wide before anything is cut off.
_MARGIN = 10
#: Spread and usual range are measured in blocks of samples; fewer blocks say nothing about them.
_BLOCK, _FEW_BLOCKS = 128, 16
#: Standard deviation of a channel, in usual ones, above which artefacts make it up.
_MOST_BY_ARTEFACTS = 100

#: Number of samples that are scaled together. They fit into the cache of a CPU core.
_CACHED = 100_000


class NotFiniteError(ValueError):
    """A recording contains NaN or infinite samples, or values too large for single precision."""


class EncodedSamples(NamedTuple):
    """Channels, encoded as ``value = offset + scale * stored``.

    Attributes
    ----------
    stored : ndarray, shape (n_chans, n_times)
        Numbers to store.
    scale, offset : ndarray of float32, shape (n_chans,)
        Scale and offset of each channel. The scale of a constant channel is 0.
    n_clipped : ndarray of int, shape (n_chans,)
        Number of samples that lay outside the range of the type and were moved to its ends.
    coarse : ndarray of bool, shape (n_chans,)
        Whether a step of int16 is larger than a twentieth of the channel's standard deviation.
    """

    stored: np.ndarray
    scale: np.ndarray
    offset: np.ndarray
    n_clipped: np.ndarray
    coarse: np.ndarray


def encode(signals: np.ndarray, ch_names: list[str], dtype: str) -> EncodedSamples:
    """Encode each channel as ``value = offset + scale * stored``.

    With int16, the stored numbers span the range of the channel, and the error of a value is at
    most half of ``scale``. With float16, the stored numbers have mean 0 and standard deviation 1,
    because values in volts would underflow; where artefacts make up the standard deviation, the
    usual one takes its place. With float32, the stored numbers are the values.

    One artefact of a volt would leave the EEG beside it with a few distinct int16 numbers. If a
    step were larger than a twentieth of the usual standard deviation, the range is therefore cut,
    and samples outside are clipped; :func:`_robust_range` describes the rule. The channel is not
    stored as float16 instead, because one file in memory has one type.

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
    EncodedSamples
        The stored numbers, in ``dtype``, and how to read them.

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
    # The range that int16 has to represent.
    n_chans = len(signals)
    coarse, spread = np.zeros(n_chans, bool), np.full(n_chans, np.inf)
    if dtype == "int16":
        for channel, values in enumerate(signals):
            ends = low[channel], high[channel]
            low[channel], high[channel], spread[channel] = _robust_range(values, *ends)
        coarse = high - low > 1.001 * _widest(spread)  # not by rounding
    # Encode channel by channel, because a whole night in float64 takes much memory.
    scale, offset = _scale_and_offset(signals, low, high, dtype)
    stored, n_clipped = np.empty(signals.shape, DTYPES[dtype]), np.zeros(n_chans, int)
    for channel, values in enumerate(signals):
        unit = float(scale[channel]) or 1.0
        numbers = (values - float(offset[channel])) / unit
        if dtype == "int16":
            numbers = np.rint(numbers)
        if dtype != "float32":
            n_clipped[channel] = (np.abs(numbers) > _LARGEST[dtype]).sum()
            numbers = numbers.clip(-_LARGEST[dtype], _LARGEST[dtype])
        stored[channel] = numbers
    return EncodedSamples(stored, scale, offset, n_clipped, coarse)


def _robust_range(values: np.ndarray, low: float, high: float) -> tuple[float, float, float]:
    """Return the range of a channel that int16 represents, and the channel's usual spread.

    The spread is the median standard deviation of blocks of the signal, without blocks that are
    flat, such as those of a saturated amplifier. The full range is kept while its 65,534 steps are
    smaller than a twentieth of the spread, as in every usual recording. Otherwise it is cut to the
    range with steps of that size, or to ten times the range of all but the 5 % lowest and highest
    blocks, whichever is wider. The slow drift of an amplifier without a filter is not cut off.

    Parameters
    ----------
    values : ndarray of float64, shape (n_times,)
        Signal of the channel.
    low, high : float
        Smallest and largest value.

    Returns
    -------
    low, high : float
        Ends of the range.
    spread : float
        Usual standard deviation; infinite if the signal is flat but for some blocks. A signal of
        few blocks is not cut, and its spread is that of :func:`_median_deviation`.
    """
    blocks = _live_blocks(values)
    if blocks is None:
        return low, high, _median_deviation(values)
    if not len(blocks):
        return low, high, np.inf
    spread = float(np.median(blocks.std(axis=1)))
    if high - low <= _widest(spread):
        return low, high, spread
    # Cut the range around the usual values.
    usual_low = np.quantile(blocks.min(axis=1), 0.05, method="higher")
    usual_high = np.quantile(blocks.max(axis=1), 0.95, method="lower")
    middle = usual_low + (usual_high - usual_low) / 2
    half = max(_widest(spread), _MARGIN * (usual_high - usual_low)) / 2
    return max(low, middle - half), min(high, middle + half), spread


def _live_blocks(values: np.ndarray) -> np.ndarray | None:
    """Return the blocks of a signal that are not flat, shape (n_blocks, 128).

    None if the signal has too few blocks, and no block if too few of them are not flat.
    """
    n_blocks = len(values) // _BLOCK
    if n_blocks < _FEW_BLOCKS:
        return None
    blocks = values[: n_blocks * _BLOCK].reshape(n_blocks, _BLOCK)
    # The standard deviation of a flat block is the rounding error of its mean.
    spreads = blocks.std(axis=1)
    alive = spreads > 1e-6 * np.quantile(spreads, 0.9)
    return blocks[alive] if alive.sum() >= _FEW_BLOCKS else blocks[:0]


def _median_deviation(values: np.ndarray) -> float:
    """Return the standard deviation, estimated by the median deviation; infinite if that is 0."""
    deviation = np.median(np.abs(values - np.median(values)))
    return 1.4826 * float(deviation) or np.inf


def _widest(spread: Any) -> Any:
    """Return the widest range whose steps are small enough for a signal of this spread."""
    return 2 * _LARGEST["int16"] * spread / _STEPS


def _scale_and_offset(
    signals: np.ndarray, low: np.ndarray, high: np.ndarray, dtype: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return scale and offset of each channel, in the precision in which they are applied."""
    constant = low == high
    if dtype == "float32":
        return np.ones(len(signals), np.float32), np.zeros(len(signals), np.float32)
    if dtype == "float16":
        mean, scale = signals.mean(axis=1), signals.std(axis=1)
        # Beside an artefact of a hundred thousand standard deviations, EEG would lose its digits.
        for channel, values in enumerate(signals):
            spread = _robust_range(values, low[channel], high[channel])[2]
            if scale[channel] > _MOST_BY_ARTEFACTS * spread:
                blocks = _live_blocks(values)
                usual = values if blocks is None else blocks
                mean[channel], scale[channel] = np.median(usual), spread
        offset = np.where(constant, low, mean).astype(np.float32)
        scale = scale.astype(np.float32)
    else:
        # The offset is rounded, so the range is measured from the rounded offset.
        offset = np.where(constant, low, low + (high - low) / 2).astype(np.float32)
        scale = (np.maximum(high - offset, offset - low) / _LARGEST["int16"]).astype(np.float32)
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
        self._mtime_ns: int | None = None  # when it was pickled

    def __getstate__(self) -> dict[str, Any]:
        mtime_ns = self._mtime_ns or self.file.stat().st_mtime_ns
        return {**self.__dict__, "_map": None, "_mtime_ns": mtime_ns}

    @property
    def flat(self) -> np.ndarray:
        """All samples, shape (n_samples,), read-only."""
        if self._map is None:
            self._check_not_replaced()
            mapped = np.memmap(self.file, DTYPES[self.dtype], "r", shape=(self.n_samples,))
            self._map = mapped.view(np.ndarray)
        return self._map

    def _check_not_replaced(self) -> None:
        """Check that a pickle reads the samples of its store, to which others may be appended."""
        found = self.file.stat()
        is_longer = found.st_size > self.n_samples * DTYPES[self.dtype].itemsize
        if self._mtime_ns not in (None, found.st_mtime_ns) and not is_longer:
            raise ValueError(
                f"{self.file} was written anew since windows of it were pickled; open the store "
                "again, and take its windows."
            )

    def file_at(self, first: int) -> Path:
        """Return the file that contains a position."""
        return self.file

    def stored(self, first: int, n_samples: int) -> np.ndarray:
        """Return stored numbers from a position on, shape (n_samples,), read-only."""
        return self.flat[first : first + n_samples]

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


#: Number of samples of the parts whose amplitude is checked.
_CROP = 3000


@dataclass(frozen=True)
class Encoded:
    """An encoded piece of a recording, with metadata; see :class:`~._samples.EncodedSamples`.

    ``left_out`` has the kinds of its other channels by name, which are not stored. ``labels`` are
    its labelled windows, and ``positions`` the positions of its channels if it has labels.
    """

    stored: np.ndarray
    scale: np.ndarray
    offset: np.ndarray
    n_clipped: np.ndarray
    coarse: np.ndarray
    ch_names: list[str]
    sfreq: float
    checksum: str
    amplitude_problem: str | None
    left_out: dict[str, str] = field(default_factory=dict)
    labels: Labels | None = None
    positions: dict[str, list[float]] = field(default_factory=dict)
    preprocessing: Preprocessing = field(default_factory=Preprocessing)


@dataclass(frozen=True)
class Unusable:
    """A piece of a recording, or a whole recording, that cannot be stored.

    Attributes
    ----------
    reason : str
        Reason, for a message.
    always_skip : bool
        Whether the recording is skipped even with ``on_error="raise"``.
    """

    reason: str
    always_skip: bool = False


def read_all(
    sources: list[Source], preparation: Preparation, dtype: str, n_jobs: int
) -> Generator[list[Encoded | Unusable], None, None]:
    """Yield the pieces of each source, in the order of the sources; one piece without gaps."""
    # Without max_nbytes=None, joblib would write large arrays to temporary files.
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator", max_nbytes=None)
    # joblib reads ahead even when results are not used yet; small chunks limit the memory.
    chunk_size = 8 * joblib.effective_n_jobs(n_jobs)
    for first in range(0, len(sources), chunk_size):
        chunk = sources[first : first + chunk_size]
        results = parallel(joblib.delayed(_read)(source, preparation, dtype) for source in chunk)
        try:
            for result in results:  # noqa: UP028, "yield from" would close results too early
                yield result
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # joblib warns about results that are not used
                results.close()


def _read(source: Source, preparation: Preparation, dtype: str) -> list[Encoded | Unusable]:
    try:
        raw, labels = source.open()
        pieces = split_at_gaps(raw)
        of_pieces = _labels_of_pieces(raw, labels, len(pieces))
    except NoWindowError as error:
        return [Unusable(str(error), always_skip=True)]
    except Exception as error:  # the caller names the recording, whatever error a reader raises
        return [Unusable(str(error) or type(error).__name__)]
    results = [
        _encode(piece, found, preparation, dtype, source.steps)
        for piece, found in zip(pieces, of_pieces, strict=True)
    ]
    return results or [Unusable("it has no samples.")]


def _labels_of_pieces(
    raw: mne.io.BaseRaw, labels: Labels | None, n_pieces: int
) -> Sequence[Labels | None]:
    if labels is None:
        return [None] * n_pieces
    return labels.pieces(continuous_stretches(raw), raw.info["sfreq"])


def _encode(
    piece: mne.io.BaseRaw,
    labels: Labels | None,
    preparation: Preparation,
    dtype: str,
    steps: Sequence[Any],
) -> Encoded | Unusable:
    try:
        signals, ch_names, sfreq = preparation.apply(piece)
        samples = encode(signals, ch_names, dtype)
    except NotFiniteError as error:
        return Unusable(str(error), always_skip=True)
    except Exception as error:
        return Unusable(str(error) or type(error).__name__)
    checksum = checksum_of(samples.stored)
    problem = amplitude_problem(_crops(signals))
    left_out = channels_left_out(piece, ch_names)
    prepared = preparation.recorded(piece, steps, ch_names, sfreq)
    encoded = Encoded(
        *samples, ch_names, sfreq, checksum, problem, left_out, preprocessing=prepared
    )
    if labels is None:
        return encoded
    labels = labels.resampled(piece.info["sfreq"], sfreq, signals.shape[1])
    return replace(encoded, labels=labels, positions=_positions(piece, ch_names))


def _positions(raw: mne.io.BaseRaw, ch_names: list[str]) -> dict[str, list[float]]:
    """Return the positions of channels where they are known."""
    found = {ch["ch_name"]: ch["loc"][:3] for ch in raw.info["chs"] if ch["ch_name"] in ch_names}
    # MNE uses NaN or zeros for a position that is not set.
    return {name: p.tolist() for name, p in found.items() if np.isfinite(p).all() and p.any()}


def _crops(signals: np.ndarray) -> Iterator[np.ndarray]:
    """Yield parts of a recording, at equal distances."""
    length = min(_CROP, signals.shape[1])
    for number in spread_out(signals.shape[1] // length, N_WINDOWS):
        yield signals[:, number * length : (number + 1) * length]
