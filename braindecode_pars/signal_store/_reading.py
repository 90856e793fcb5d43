"""Read, prepare and encode recordings in parallel; results keep the order of the recordings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import joblib
import numpy as np

from braindecode_pars.signal_store._samples import NotFiniteError, encode
from braindecode_pars.signal_store._sources import Preparation, Source
from braindecode_pars.storage._checksum import checksum_of

__all__ = ["Encoded", "Unusable", "read_all"]


@dataclass(frozen=True)
class Encoded:
    """An encoded recording with its metadata; see :func:`~._samples.encode`.

    ``left_out`` contains the names of its other channels, which are not stored.
    """

    stored: np.ndarray
    scale: np.ndarray
    offset: np.ndarray
    ch_names: list[str]
    sfreq: float
    checksum: str
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Unusable:
    """A recording that cannot be stored.

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
) -> Iterator[Encoded | Unusable]:
    """Yield one result for each source, in the order of the sources."""
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


def _read(source: Source, preparation: Preparation, dtype: str) -> Encoded | Unusable:
    try:
        raw = source.open()
        signals, ch_names, sfreq = preparation.apply(raw)
        stored, scale, offset = encode(signals, ch_names, dtype)
    except NotFiniteError as error:
        return Unusable(str(error), always_skip=True)
    except Exception as error:  # the caller names the recording, whatever error a reader raises
        return Unusable(str(error) or type(error).__name__)
    left_out = tuple(name for name in raw.ch_names if name not in ch_names)
    return Encoded(stored, scale, offset, ch_names, sfreq, checksum_of(stored), left_out)
