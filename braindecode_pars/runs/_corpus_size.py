"""How large a corpus is: of a store, of a folder of recordings, or by its numbers."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import NamedTuple

import numpy as np

from braindecode_pars._channel_names import is_eeg
from braindecode_pars._parameters import check_parameters, integer, optional, positive
from braindecode_pars._subjects import SubjectKeys
from braindecode_pars.runs._steps import Steps
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.signal_store._parts import is_store
from braindecode_pars.signal_store._sources import Source, find_sources

__all__ = ["CorpusSize"]

#: A larger folder is estimated from this many of its recordings.
SAMPLE = 200

#: Bytes of a sample in a store of the default type, int16.
_BYTES = 2

_RULES = dict(
    n_windows=integer(1), n_chans=optional(integer(1)), sfreq=positive(), window_seconds=positive()
)


class CorpusSize(NamedTuple):
    """The size of a corpus.

    Attributes
    ----------
    n_windows : int
        Number of whole windows in a pass over the recordings, whatever their number of channels.
    sfreq : float
        Sampling rate in Hz.
    store_bytes : int
        Size of a store of the corpus in bytes, with samples in int16 unless it exists already.
    description : str
        Where these numbers come from.

    Examples
    --------
    >>> from braindecode_pars.runs import CorpusSize
    >>> CorpusSize.of_numbers(1_500_000, sfreq=200, window_seconds=30, n_chans=6).store_bytes
    108000000000
    """

    n_windows: int
    sfreq: float
    store_bytes: int
    description: str

    @classmethod
    def of_numbers(
        cls, n_windows: int, *, sfreq: float, window_seconds: float = 30.0, n_chans: int = 1
    ) -> CorpusSize:
        """Return the size of a corpus from its numbers.

        Parameters
        ----------
        n_windows : int
            Number of windows in a pass.
        sfreq, window_seconds : float
            Sampling rate in Hz, and length of a window in seconds.
        n_chans : int
            Number of channels.

        Returns
        -------
        CorpusSize

        Raises
        ------
        TypeError, ValueError
            When a number is not positive.
        """
        given = dict(
            n_windows=n_windows, sfreq=sfreq, window_seconds=window_seconds, n_chans=n_chans
        )
        check_parameters(given, _RULES, "CorpusSize")
        n_samples = n_windows * round(window_seconds * sfreq) * n_chans
        hours = n_windows * window_seconds / 3600
        channels = f"{n_chans} channel{'s' if n_chans > 1 else ''}"
        described = f"{n_windows:,} windows of {window_seconds:g} s, {hours:,.0f} h of {channels}"
        return cls(n_windows, float(sfreq), n_samples * _BYTES, described)

    @classmethod
    def of_store(cls, store: SignalStore, window_seconds: float = 30.0) -> CorpusSize:
        """Return the size of a store.

        Parameters
        ----------
        store : SignalStore
            Store of the corpus.
        window_seconds : float
            Length of a window in seconds.

        Returns
        -------
        CorpusSize

        Raises
        ------
        ValueError
            When every recording is shorter than a window, or every one of a corpus with a share.
        """
        lengths = store.recordings["n_times"].to_numpy()
        n_windows = _n_windows(lengths, store.sfreq, window_seconds)
        if store.shares:  # a pass visits a part of the larger corpora
            n_windows = Steps(store, round(window_seconds * store.sfreq), 1).n_windows
        described = f"the store {store.path}, {len(lengths):,} recordings"
        return cls(n_windows, store.sfreq, store.n_bytes, described)

    @classmethod
    def of_folder(
        cls,
        folder: str | Path,
        window_seconds: float = 30.0,
        sfreq: float | None = None,
        exclude: Iterable = (),
    ) -> CorpusSize:
        """Return the size of a store of a folder of recordings, from their headers.

        Parameters
        ----------
        folder : path
            Folder of recordings, as :meth:`SignalStore.create
            <braindecode_pars.signal_store.SignalStore.create>` takes it.
        window_seconds : float
            Length of a window in seconds.
        sfreq : float | None
            Sampling rate of the store in Hz; None takes that of the recordings.
        exclude : iterable
            Subjects to leave out, in any spelling.

        Returns
        -------
        CorpusSize
            In a folder of more than 200 recordings, 200 of them are opened, evenly spaced, and
            the numbers are scaled up.

        Raises
        ------
        FileNotFoundError
            When the folder does not exist or contains no recording.
        ValueError
            When no recording can be opened, when every recording is shorter than a window, when
            sampling rates differ and ``sfreq`` is None, or when an excluded subject has no
            recording or no other subject has one.
        """
        exclude = list(exclude)
        # Without subjects to leave out, it does not matter whose the recordings are.
        sources = find_sources(folder, None if exclude else PurePath.as_posix)
        sources = _without(folder, sources, exclude)
        chosen = np.linspace(0, len(sources) - 1, min(SAMPLE, len(sources))).round().astype(int)
        headers = [header for i in chosen if (header := _header(sources[i])) is not None]
        if not headers:
            raise ValueError(f"None of {len(chosen)} recordings in {folder} can be opened.")
        rates = {rate for _, rate, _ in headers}
        if sfreq is None and len(rates) > 1:
            shown = ", ".join(f"{rate:g}" for rate in sorted(rates))
            raise ValueError(
                f"The recordings have different sampling rates ({shown} Hz); pass the one of the "
                "store as sfreq."
            )
        sfreq = float(sfreq or rates.pop())
        factor = len(sources) / len(chosen)
        seconds = np.array([header[0] for header in headers])
        lengths = (seconds * sfreq).round().astype(int)
        n_windows = round(factor * _n_windows(lengths, sfreq, window_seconds))
        n_bytes = factor * sum(s * sfreq * n_chans * _BYTES for s, _, n_chans in headers)
        described = f"the folder {folder}, {len(sources):,} recordings"
        if factor > 1:
            described += f", estimated from {len(chosen)} of them"
        return cls(n_windows, sfreq, round(n_bytes), described)

    @classmethod
    def of_path(
        cls,
        path: str | Path,
        window_seconds: float = 30.0,
        sfreq: float | None = None,
        exclude: tuple[str, ...] = (),
    ) -> CorpusSize:
        """Return the size of a store or of a folder of recordings.

        Parameters
        ----------
        path : path
            Folder of a store, or of recordings.
        window_seconds, sfreq
            As in :meth:`of_folder`. A store has its own sampling rate.
        exclude : tuple of str
            Subjects to leave out.

        Returns
        -------
        CorpusSize

        Raises
        ------
        FileNotFoundError, ValueError
            As in :meth:`of_store` and :meth:`of_folder`, and when a store is damaged.
        """
        if is_store(path):
            store = SignalStore.open(path, verbose=0).select(exclude=exclude)
            return cls.of_store(store.without_held_out(), window_seconds)
        return cls.of_folder(path, window_seconds, sfreq, exclude)


def _without(folder: str | Path, sources: list[Source], exclude: list) -> list[Source]:
    """Return the recordings of other subjects; one that names no subject cannot be stored."""
    subjects = [source.description.get("subject") for source in sources]
    found = SubjectKeys(subject for subject in subjects if subject is not None)
    absent = [str(subject) for subject in exclude if subject not in found]
    if absent:
        raise ValueError(
            f"{folder} contains no recording of {', '.join(absent)}; check the spelling of the "
            "subjects to exclude."
        )
    keys = SubjectKeys(exclude)
    kept = [s for s, subject in zip(sources, subjects, strict=True) if subject not in keys]
    if not kept:
        raise ValueError(f"No recording of {folder} remains; exclude fewer subjects.")
    return kept


def _header(source: Source) -> tuple[float, float, int] | None:
    """Return seconds, sampling rate and number of EEG channels; None if it cannot be opened."""
    try:
        raw, _ = source.open()
    except (ValueError, OSError):
        return None
    sfreq = float(raw.info["sfreq"])
    return raw.n_times / sfreq, sfreq, sum(map(is_eeg, raw.info["chs"]))


def _n_windows(lengths: np.ndarray, sfreq: float, window_seconds: float) -> int:
    """Count windows in whole samples, as a run does: 0.3 s are three windows of 0.1 s."""
    n_times = round(window_seconds * sfreq)
    if n_times < 1:
        raise ValueError(
            f"At {sfreq:g} Hz a window of {window_seconds:g} s has no sample; use longer windows."
        )
    n_windows = int((lengths // n_times).sum())
    if n_windows == 0:
        raise ValueError(
            f"The longest recording has {lengths.max() / sfreq:g} s, less than a window of "
            f"{window_seconds:g} s; use shorter windows."
        )
    return n_windows
