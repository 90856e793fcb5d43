"""Recordings read, prepared and encoded, several at a time, in the order they were given."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import joblib
import numpy as np

from braindecode_pars.signal_store._index import checksum_of
from braindecode_pars.signal_store._samples import NotFiniteError, encode
from braindecode_pars.signal_store._sources import Preparation, Source

__all__ = ["Encoded", "Unusable", "read_all"]


@dataclass(frozen=True)
class Encoded:
    """A recording as it goes into the file: see :func:`~.samples.encode`."""

    stored: np.ndarray
    scale: np.ndarray
    offset: np.ndarray
    ch_names: list[str]
    sfreq: float
    checksum: str


@dataclass(frozen=True)
class Unusable:
    """Why a recording cannot be stored; ``tolerable`` where it is left out in any case."""

    why: str
    tolerable: bool = False


def read_all(
    sources: list[Source], preparation: Preparation, dtype: str, n_jobs: int
) -> Iterator[Encoded | Unusable]:
    """One result for each source, as soon as it and those before it are there."""
    # joblib would put large arrays into temporary files of its own.
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator", max_nbytes=None)
    # joblib does not wait for what was read to be taken; a few at a time do not fill the memory.
    at_once = 8 * joblib.effective_n_jobs(n_jobs)
    for first in range(0, len(sources), at_once):
        some = sources[first : first + at_once]
        results = parallel(joblib.delayed(_read)(source, preparation, dtype) for source in some)
        try:
            for result in results:  # noqa: UP028, which would close the results before the end
                yield result
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of recordings that were read in vain
                results.close()


def _read(source: Source, preparation: Preparation, dtype: str) -> Encoded | Unusable:
    try:
        signals, ch_names, sfreq = preparation.apply(source.open())
        stored, scale, offset = encode(signals, ch_names, dtype)
    except NotFiniteError as error:
        return Unusable(str(error), tolerable=True)
    except Exception as error:  # whatever a reader stumbles over, the recording is to be named
        return Unusable(str(error) or type(error).__name__)
    return Encoded(stored, scale, offset, ch_names, sfreq, checksum_of(stored))
