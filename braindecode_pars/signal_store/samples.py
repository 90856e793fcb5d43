"""Samples of a store: volts become stored numbers.

Recordings are read, prepared and encoded in parallel; results keep the order of the recordings.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Sequence
from typing import NamedTuple

import joblib
import mne
import numpy as np
import pandas as pd

from braindecode_pars._common import checks, files
from braindecode_pars.recordings.cutting import (
    collected_omissions,
    continuous_stretches,
    omit,
    split_at_gaps,
)
from braindecode_pars.signal_store.index import (
    DTYPES,
    StoredRecording,
    labels_of_pieces,
    resampled_labels,
)
from braindecode_pars.signal_store.sources import SkippedError, Source, StoredForm
from braindecode_pars.windows.amplitudes import N_WINDOWS, amplitude_problem, spread_out

#: Largest number in int16; -32768 is not used, so that the range is symmetric.
_LARGEST = 32767

#: Steps of int16 in a standard deviation of the signal, at least. A range that gives fewer is cut.
_STEPS = 20
#: The usual range of a channel may be this many times as wide before anything is cut off.
_MARGIN = 10
#: Spread and usual range are measured in blocks of samples; fewer blocks say nothing about them.
_BLOCK, _FEW_BLOCKS = 128, 16


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
    most half of ``scale``. With float32, the stored numbers are the values.

    One artefact of a volt would leave the EEG beside it with a few distinct int16 numbers. If a
    step were larger than a twentieth of the usual standard deviation, the range is therefore cut,
    and samples outside are clipped; :func:`_robust_range` describes the rule.

    Parameters
    ----------
    signals : ndarray of float64, shape (n_chans, n_times)
        Signals in volts.
    ch_names : list of str
        Names of the channels, for the error message.
    dtype : "int16" | "float32"
        Type of the stored numbers.

    Returns
    -------
    EncodedSamples
        The stored numbers, in ``dtype``, and how to read them.

    Raises
    ------
    SkippedError
        When a channel contains NaN or infinite samples, or samples too large for single precision.
        The message names the channels.
    """
    # The sum overflows to inf if the values do not fit into single precision.
    low, high = signals.min(axis=1), signals.max(axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        bad = ~np.isfinite((high - low).astype(np.float32) + low.astype(np.float32))
    if bad.any():
        names = [name for name, is_bad in zip(ch_names, bad, strict=True) if is_bad]
        raise SkippedError(f"channel {checks.listed(names, 5)} contains NaN or infinite samples.")
    n_chans = len(signals)
    stored = np.empty(signals.shape, DTYPES[dtype])
    scale, offset = np.ones(n_chans, np.float32), np.zeros(n_chans, np.float32)
    n_clipped, coarse = np.zeros(n_chans, int), np.zeros(n_chans, bool)
    # Channel by channel, because a whole night in float64 takes much memory.
    for channel, values in enumerate(signals):
        if dtype == "float32":
            stored[channel] = values
            continue
        scale[channel], offset[channel], coarse[channel] = _scaling(values)
        numbers = np.rint((values - float(offset[channel])) / (float(scale[channel]) or 1.0))
        n_clipped[channel] = (np.abs(numbers) > _LARGEST).sum()
        stored[channel] = numbers.clip(-_LARGEST, _LARGEST)
    return EncodedSamples(stored, scale, offset, n_clipped, coarse)


def _scaling(values: np.ndarray) -> tuple[float, float, bool]:
    """Return scale and offset of a channel, and whether int16 is too coarse for it."""
    low, high = float(values.min()), float(values.max())
    if low == high:
        return 0.0, low, False
    low, high, spread = _robust_range(values, low, high)
    # The offset is rounded, so the range is measured from the rounded offset.
    offset = float(np.float32(low + (high - low) / 2))
    is_coarse = high - low > 1.001 * _widest(spread)  # not by rounding
    return max(high - offset, offset - low) / _LARGEST, offset, is_coarse


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
        few blocks is not cut, and its spread is estimated by its median deviation.
    """
    n_blocks = len(values) // _BLOCK
    if n_blocks < _FEW_BLOCKS:  # the standard deviation, estimated by the median deviation
        deviation = np.median(np.abs(values - np.median(values)))
        return low, high, 1.4826 * float(deviation) or np.inf
    blocks = values[: n_blocks * _BLOCK].reshape(n_blocks, _BLOCK)
    # The standard deviation of a flat block is the rounding error of its mean.
    spreads = blocks.std(axis=1)
    alive = spreads > 1e-6 * np.quantile(spreads, 0.9)
    if alive.sum() < _FEW_BLOCKS:
        return low, high, np.inf
    blocks, spread = blocks[alive], float(np.median(spreads[alive]))
    if high - low <= _widest(spread):
        return low, high, spread
    # Cut the range around the usual values.
    usual_low = np.quantile(blocks.min(axis=1), 0.05, method="higher")
    usual_high = np.quantile(blocks.max(axis=1), 0.95, method="lower")
    middle = usual_low + (usual_high - usual_low) / 2
    half = max(_widest(spread), _MARGIN * (usual_high - usual_low)) / 2
    return max(low, middle - half), min(high, middle + half), spread


def _widest(spread: float) -> float:
    """Return the widest range whose steps are small enough for a signal of this spread."""
    return 2 * _LARGEST * spread / _STEPS


#: Number of samples of the parts whose amplitude is checked.
_CROP = 3000


class Encoded(NamedTuple):
    """A recording, or a piece of it between gaps, as it is stored; ``first_sample`` is still 0.

    Attributes
    ----------
    recording : StoredRecording
        Its entry in the index.
    stored : ndarray, shape (n_chans, n_times)
        Numbers to store.
    sfreq : float
        Sampling rate in Hz.
    labels : DataFrame | None
        Its labelled windows.
    label : str
        Name for messages.
    left_out : list of str
        Names of its channels that are not stored.
    problems : list of (str, str)
        Problems "clipped", "coarse", "amplitude" and "rows", with what to say of them.
    """

    recording: StoredRecording
    stored: np.ndarray
    sfreq: float
    labels: pd.DataFrame | None
    label: str
    left_out: list[str]
    problems: list[tuple[str, str]]


class Unusable(NamedTuple):
    """A piece of a recording, or a whole recording, that cannot be stored.

    Attributes
    ----------
    name, label : str
        Name in the store, and name for messages.
    reason : str
        Reason, for a message.
    always_skip : bool
        Whether the recording is skipped even with ``on_error="raise"``.
    """

    name: str
    label: str
    reason: str
    always_skip: bool = False


def read_all(
    sources: list[Source], preparation: StoredForm, dtype: str, n_jobs: int
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


def _read(source: Source, preparation: StoredForm, dtype: str) -> list[Encoded | Unusable]:
    try:
        with collected_omissions() as omissions:
            raw, labels = source.open()
        pieces = split_at_gaps(raw)
        if not pieces:
            raise ValueError("it has no samples.")
        tables: Sequence[pd.DataFrame | None] = [None] * len(pieces)
        if labels is not None:
            tables = labels_of_pieces(labels, continuous_stretches(raw), raw.info["sfreq"])
    except Exception as error:  # the caller names the recording, whatever error a reader raises
        return [_unusable(source, source.name, error)]
    for each in omissions:
        omit(*each[:4], is_asked=each.is_asked)
    names = [source.name]
    if len(pieces) > 1:
        names = [f"{source.name}#{i + 1}" for i in range(len(pieces))]
    results: list[Encoded | Unusable] = []
    for name, piece, table in zip(names, pieces, tables, strict=True):
        try:
            results.append(_encoded(source, name, piece, table, preparation, dtype))
        except Exception as error:
            results.append(_unusable(source, name, error))
    if isinstance(results[0], Encoded):
        rows = [
            f"{each.number} of {each.of} rows {each.why}"
            for each in omissions
            if each.what == "rows"
        ]
        results[0].problems.extend(("rows", text) for text in rows)
    return results


def _unusable(source: Source, name: str, error: Exception) -> Unusable:
    reason = str(error) or type(error).__name__
    return Unusable(name, _label(source, name), reason, isinstance(error, SkippedError))


def _label(source: Source, piece: str) -> str:
    """Return the name of a piece for messages."""
    return source.label.replace(source.name, piece)


def _encoded(
    source: Source,
    name: str,
    piece: mne.io.BaseRaw,
    labels: pd.DataFrame | None,
    preparation: StoredForm,
    dtype: str,
) -> Encoded:
    signals, ch_names, sfreq = preparation.apply(piece)
    samples = encode(signals, ch_names, dtype)
    n_times = signals.shape[1]
    clipped = {ch: int(n) for ch, n in zip(ch_names, samples.n_clipped, strict=True) if n}
    positions = {}
    if labels is not None:
        labels = resampled_labels(labels, piece.info["sfreq"], sfreq, n_times)
        # MNE uses NaN or zeros for a position that is not set.
        found = {ch["ch_name"]: ch["loc"][:3] for ch in piece.info["chs"]}
        known = {ch: p for ch, p in found.items() if np.isfinite(p).all() and p.any()}
        positions = {ch: p.tolist() for ch, p in known.items() if ch in ch_names}
    recording = StoredRecording(
        name=name,
        description=source.description,
        ch_names=ch_names,
        n_times=n_times,
        first_sample=0,
        scale=_shortest(samples.scale),
        offset=_shortest(samples.offset),
        checksum=files.checksum_of(samples.stored),
        source=source.state,
        clipped=clipped,
        positions=positions,
        preprocessing=preparation.recorded(piece, source.steps, ch_names, sfreq).known(),
    )
    # The amplitude of parts of the recording, at equal distances
    length = min(_CROP, n_times)
    numbers = spread_out(n_times // length, N_WINDOWS)
    parts = (signals[:, i * length : (i + 1) * length] for i in numbers)
    problems = dict(
        clipped=", ".join(f"{ch} {n} of {n_times}" for ch, n in clipped.items()),
        coarse=", ".join(np.array(ch_names)[samples.coarse]),
        amplitude=amplitude_problem(parts),
    )
    left_out = [ch for ch in piece.ch_names if ch not in ch_names]
    found_problems = [(kind, text) for kind, text in problems.items() if text]
    label = _label(source, name)
    return Encoded(recording, samples.stored, sfreq, labels, label, left_out, found_problems)


def _shortest(values: np.ndarray) -> list[float]:
    """Convert single-precision numbers to floats with the fewest digits, for a short index."""
    return [float(str(value)) for value in values]
