"""Read, prepare and encode recordings in parallel; results keep the order of the recordings.

A recording with gaps becomes several pieces, each of which is stored as a recording of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import joblib
import mne
import numpy as np

from braindecode_pars.preprocessing import Preprocessing
from braindecode_pars.recordings._gaps import continuous_stretches, split_at_gaps
from braindecode_pars.recordings._left_out import channels_left_out
from braindecode_pars.signal_store._labels import Labels
from braindecode_pars.signal_store._samples import NotFiniteError, encode
from braindecode_pars.signal_store._sources import NoWindowError, Preparation, Source
from braindecode_pars.storage._checksum import checksum_of
from braindecode_pars.windows._amplitudes import N_WINDOWS, amplitude_problem
from braindecode_pars.windows._spread import spread_out

__all__ = ["Encoded", "Unusable", "read_all"]

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
) -> Iterator[list[Encoded | Unusable]]:
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
