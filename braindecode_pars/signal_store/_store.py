"""A store that is open: its recordings, and crops of their signals."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from braindecode_pars.signal_store._index import (
    INDEX,
    SAMPLES,
    Index,
    StoredRecording,
    checksum_of,
)
from braindecode_pars.signal_store._samples import DTYPES, SampleFile
from braindecode_pars.signal_store._sources import Preparation
from braindecode_pars.signal_store._windows import StoreWindows
from braindecode_pars.signal_store._writing import (
    append,
    check_finished,
    check_not_truncated,
    create,
)
from braindecode_pars.windows._subjects import subject_key

__all__ = ["SignalStore"]

_BIG = 1 << 30  # bytes whose checking is worth a progress bar


class SignalStore:
    """Continuous recordings in one folder, of any montages and lengths, at one sampling rate.

    ``samples.bin`` holds signal after signal, a signal being one channel of one recording, and is
    mapped into memory: a crop is read without Python looking at any other, and all processes
    share one copy in the page cache. ``store.json`` says what the signals are. Labels are not
    stored. Make a store with :meth:`create` and open it with :meth:`open`.

    ``len(store)`` is the number of signals.

    Parameters
    ----------
    path, index, samples, recordings
        What :meth:`create` and :meth:`open` know of the folder; nobody else calls the constructor.

    Attributes
    ----------
    path : Path
        The folder.
    sfreq : float
        Sampling rate in Hz.
    dtype : "int16" | "float16" | "float32"
        What samples are stored as; they are read as float32, in volts.
    skipped : dict of str to str
        Recordings that were left out when the store was made, and why.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from braindecode_pars import datasets
    >>> from braindecode_pars.signal_store import SignalStore
    >>> nights = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = SignalStore.create(folder, nights, verbose=0)
    ...     rng = np.random.default_rng(0)
    ...     crops = store.batch([0, 5, 5, 1], n_times=3000, rng=rng)
    >>> len(store), store.subjects, store.sfreq, crops.shape
    (6, [1, 2], 100.0, (4, 3000))
    """

    def __init__(
        self,
        path: Path,
        index: Index,
        samples: SampleFile,
        recordings: tuple[StoredRecording, ...],
    ):
        self.path = path
        self.sfreq = index.sfreq
        self.dtype = index.settings["dtype"]
        self.skipped = dict(index.skipped)
        self._index = index
        self._samples = samples
        self._recordings = recordings
        n_chans = np.array([len(recording.ch_names) for recording in recordings])
        n_times = np.array([recording.n_times for recording in recordings])
        first = np.array([recording.first_sample for recording in recordings])
        self._first_signal = np.cumsum(n_chans) - n_chans
        self._recording = np.repeat(np.arange(len(recordings)), n_chans)
        self._length = n_times[self._recording]
        channel = np.arange(len(self._recording)) - self._first_signal[self._recording]
        self._first = first[self._recording] + channel * self._length
        self._scale = np.concatenate([r.scale for r in recordings]).astype(np.float32)
        self._offset = np.concatenate([r.offset for r in recordings]).astype(np.float32)

    @classmethod
    def create(
        cls,
        path: str | Path,
        recordings: Any,
        *,
        dtype: str = "int16",
        sfreq: float | None = None,
        low: float | None = None,
        high: float | None = None,
        mains: float | None = None,
        channels: Iterable[str] | None = None,
        subject: Callable[[Path], Any] | None = None,
        n_jobs: int = 1,
        on_error: str = "raise",
        verbose: int = 1,
    ) -> SignalStore:
        """Store the EEG channels of recordings.

        A call that was interrupted or killed is repeated with the same arguments: it goes on
        from what was stored.

        Parameters
        ----------
        path : path
            A new or empty folder, or the one of an interrupted call.
        recordings : BaseConcatDataset | RawDataset | EEGWindowsDataset | path
            Continuous recordings; windows, whose whole recordings are then stored; or a folder,
            in which every EDF, BDF, FIF and WFDB recording is found.
        dtype : "int16" | "float16" | "float32"
            As int16 no value is off by more than half of a 65,534th of its channel's range in
            that recording. float32 is as exact as reading, and twice as large.
        sfreq : float | None
            Sampling rate to bring recordings to, in Hz. None keeps theirs, which must be the same.
        low, high, mains : float | None
            Edges of a band-pass and frequency of a notch in Hz; None for none.
        channels : iterable of str | None
            Names of EEG channels to keep; a recording without some of them keeps the others. None
            keeps all that are not marked as bad. EDF, BDF and WFDB tell EEG from other signals by
            labels at most, such as "EEG Fp1" and "ECG"; what has no telling label is kept.
        subject : callable | None
            From the path of a file below the folder to its subject. None takes BIDS' ``sub-``
            label, else the first folder, else the name of the file. Datasets have ``subject`` in
            their descriptions.
        n_jobs : int
            Recordings that are read at a time, as joblib counts.
        on_error : "raise" | "warn"
            What a recording that cannot be read does: end the call, or be left out with a
            warning that names it. One with NaN or infinite samples is left out in any case.
        verbose : int
            1 shows a progress bar.

        Returns
        -------
        SignalStore
            The store, open.

        Raises
        ------
        TypeError
            When ``recordings`` is none of the above, or ``channels`` is a string.
        ValueError
            When the folder holds something else, a recording cannot be used, naming it, or
            sampling rates differ.
        OSError
            When the folder cannot be written, such as on a full disk.
        """
        if dtype not in DTYPES:
            raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, got {dtype!r}.")
        if isinstance(channels, str):
            raise TypeError(f"channels is the string {channels!r}; give a list of names.")
        channels = None if channels is None else list(channels)
        path = Path(path).expanduser()
        preparation = Preparation(sfreq, low, high, mains, channels)
        reading = _reading(n_jobs, on_error, verbose)
        create(path, recordings, subject, preparation, dtype, **reading)
        return cls.open(path)

    @classmethod
    def open(cls, path: str | Path, *, verbose: int = 1) -> SignalStore:
        """Open a store that is finished.

        Where the file of samples was touched since it was written, as by copying, all of it is
        read and compared with its checksums, once.

        Parameters
        ----------
        path : path
            The folder.
        verbose : int
            1 shows a progress bar while much is compared.

        Returns
        -------
        SignalStore

        Raises
        ------
        FileNotFoundError
            When there is no store.
        ValueError
            When the store is unfinished, truncated or altered.
        """
        path = Path(path).expanduser()
        index = Index.read(path)
        check_finished(path, index)
        samples = path / SAMPLES
        if not samples.is_file():
            raise FileNotFoundError(f"{samples} is missing, and {INDEX} alone holds no samples.")
        check_not_truncated(path, index)
        dtype = index.settings["dtype"]
        file = SampleFile(samples, dtype, index.n_bytes // DTYPES[dtype].itemsize)
        store = cls(path, index, file, tuple(index.recordings))
        found = samples.stat()
        if found.st_mtime_ns != index.mtime_ns:
            store.verify(verbose=verbose)
            with suppress(OSError):  # a folder that is read-only is compared every time
                os.utime(samples, ns=(found.st_atime_ns, index.mtime_ns))
        return store

    def append(
        self,
        recordings: Any,
        *,
        sfreq: float | None = None,
        subject: Callable[[Path], Any] | None = None,
        n_jobs: int = 1,
        on_error: str = "raise",
        verbose: int = 1,
    ) -> SignalStore:
        """Add recordings, which are filtered and stored as those that are there.

        All of them are added, or none if the call ends early. What is there is not touched, and
        files of a folder that are there already are not read again.

        Parameters
        ----------
        recordings, subject, n_jobs, on_error, verbose
            As in :meth:`create`.
        sfreq : float | None
            The store's sampling rate in Hz, to resample to it. None does so where the store was
            made with ``sfreq``; otherwise recordings must have that rate.

        Returns
        -------
        SignalStore
            The longer store. This one shows what it showed before.

        Raises
        ------
        ValueError
            When a sampling rate is not the store's, a recording cannot be used, or a file that is
            stored has changed.
        OSError
            When the folder cannot be written; the store is then as it was.
        """
        SignalStore.open(self.path, verbose=verbose)  # nothing is added to what was altered
        append(self.path, recordings, subject, sfreq, **_reading(n_jobs, on_error, verbose))
        return SignalStore.open(self.path)

    def __len__(self) -> int:
        return len(self._first)

    def __repr__(self) -> str:
        hours = sum(recording.n_times for recording in self._recordings) / self.sfreq / 3600
        return (
            f"SignalStore({str(self.path)!r}: {len(self._recordings)} recordings, {len(self)} "
            f"signals, {hours:.1f} h at {self.sfreq:g} Hz, {self.dtype})"
        )

    @cached_property
    def recordings(self) -> pd.DataFrame:
        """One row a recording: ``name subject ch_names n_times first_signal``.

        Channel ``c`` of a recording is signal ``first_signal + c``.
        """
        return pd.DataFrame(
            dict(
                name=[recording.name for recording in self._recordings],
                subject=pd.Series([r.subject for r in self._recordings], dtype=object),
                ch_names=[recording.ch_names for recording in self._recordings],
                n_times=[recording.n_times for recording in self._recordings],
                first_signal=self._first_signal,
            )
        )

    @property
    def n_bytes(self) -> int:
        """Size of the samples of these recordings."""
        return sum(r.n_samples for r in self._recordings) * DTYPES[self.dtype].itemsize

    @property
    def subjects(self) -> list:
        """Everybody who was recorded, in the order of the recordings."""
        return [who for who in dict.fromkeys(self.recordings["subject"]) if who is not None]

    @cached_property
    def checksum(self) -> str:
        """16 hexadecimal digits that tell these recordings from any others."""
        lines = [f"{self.sfreq} {self.dtype}"]
        lines += [
            f"{r.name} {r.subject!r} {r.ch_names} {r.n_times} {r.checksum}"
            for r in self._recordings
        ]
        content = "\n".join(lines).encode() + self._scale.tobytes() + self._offset.tobytes()
        return checksum_of(content)

    def recording_of(self, signals: np.ndarray) -> np.ndarray:
        """Which recording each signal belongs to.

        Parameters
        ----------
        signals : array-like of int, shape (n_signals,)
            Numbers of signals.

        Returns
        -------
        ndarray of int, shape (n_signals,)
            Rows of :attr:`recordings`.
        """
        return self._recording[self._checked(signals)]

    def batch(self, signals: np.ndarray, n_times: int, rng: np.random.Generator) -> np.ndarray:
        """A random crop of each signal, all starts being equally likely.

        Parameters
        ----------
        signals : array-like of int, shape (batch,)
            Numbers of signals; one may come several times.
        n_times : int
            Samples of a crop.
        rng : numpy.random.Generator
            What the starts are drawn from.

        Returns
        -------
        ndarray of float32, shape (batch, n_times)
            Volts.

        Raises
        ------
        IndexError
            When there is no such signal.
        ValueError
            When a signal is shorter than the crop, naming the recording.
        """
        signals = self._checked(signals)
        self._check_long_enough(signals, n_times)
        starts = rng.integers(0, self._length[signals] - n_times, endpoint=True)
        return self._crops(signals, starts, n_times)

    def crops(self, signals: np.ndarray, starts: np.ndarray, n_times: int) -> np.ndarray:
        """Crops of signals that begin at given samples.

        Parameters
        ----------
        signals, starts : array-like of int, shape (batch,)
            Numbers of signals, and the first sample of each crop.
        n_times : int
            Samples of a crop.

        Returns
        -------
        ndarray of float32, shape (batch, n_times)
            Volts.

        Raises
        ------
        IndexError
            When there is no such signal.
        ValueError
            When a crop is not within its signal, naming the recording.
        """
        signals, starts = self._checked(signals), np.asarray(starts)
        self._check_long_enough(signals, n_times)
        outside = (starts < 0) | (starts > self._length[signals] - n_times)
        if outside.any():
            i = int(outside.argmax())
            raise ValueError(
                f"A crop of {n_times} samples from sample {starts[i]} on is not within "
                f"{self._told(signals[i])} with its {self._length[signals[i]]} samples."
            )
        return self._crops(signals, starts, n_times)

    def _crops(self, signals: np.ndarray, starts: np.ndarray, n_times: int) -> np.ndarray:
        return self._samples.crops(
            self._first[signals] + starts, n_times, self._scale[signals], self._offset[signals]
        )

    def _checked(self, signals: np.ndarray) -> np.ndarray:
        signals = np.asarray(signals)
        if signals.ndim != 1 or signals.dtype.kind not in "iu":
            raise TypeError(
                "signals must be numbers of signals, integers of shape (n_signals,); got "
                f"{signals.dtype} of shape {signals.shape}."
            )
        if len(signals) and (signals.min() < 0 or signals.max() >= len(self)):
            raise IndexError(
                f"Signals {signals.min()} to {signals.max()} were asked for; there are "
                f"0 to {len(self) - 1}."
            )
        return signals

    def _check_long_enough(self, signals: np.ndarray, n_times: int) -> None:
        _check_n_times(n_times)
        short = self._length[signals] < n_times
        if short.any():
            signal = signals[short.argmax()]
            raise ValueError(
                f"{self._told(signal)} has {self._length[signal]} samples, crops of {n_times} were "
                "asked for; ask for shorter ones, or leave it out."
            )

    def _told(self, signal: int) -> str:
        return f"recording {self._recordings[self._recording[signal]].name} in {self.path}"

    def select(
        self, subjects: Iterable | None = None, *, exclude: Iterable | None = None
    ) -> SignalStore:
        """Show the recordings of some people only; the file of samples stays one.

        Parameters
        ----------
        subjects : iterable | None
            Whom to keep, as in :attr:`subjects` or written as text; None keeps everybody.
        exclude : iterable | None
            Whom to leave out of these.

        Returns
        -------
        SignalStore
            A view; this one shows what it showed before.

        Raises
        ------
        ValueError
            When somebody is not in the store, nobody is left, or recordings that do not tell their
            subject may be of somebody who is excluded.
        """
        recordings = self._recordings
        if subjects is not None:
            kept = self._known(subjects)
            recordings = tuple(r for r in recordings if subject_key(r.subject) in kept)
        left_out = self._known(exclude or ())
        if left_out:
            recordings = tuple(r for r in recordings if subject_key(r.subject) not in left_out)
            unknown = sum(recording.subject is None for recording in recordings)
            if unknown:
                raise ValueError(
                    f"{unknown} recordings in {self.path} do not tell their subject, and may be of "
                    "somebody who is to be excluded; store recordings with their subjects."
                )
        if not recordings:
            raise ValueError(f"No recording of {self.path} is left; exclude fewer subjects.")
        return SignalStore(self.path, self._index, self._samples, recordings)

    def _known(self, subjects: Iterable) -> set[str]:
        if isinstance(subjects, str):
            raise TypeError(f"subjects is the string {subjects!r}; give a list of subjects.")
        asked = {subject_key(subject) for subject in subjects}
        there = list(map(subject_key, self.subjects))
        absent = sorted(asked.difference(there))
        if absent:
            shown = ", ".join(there[:10]) + (", ..." if len(there) > 10 else "")
            raise ValueError(
                f"{self.path} holds no recording of subject{'s' if len(absent) > 1 else ''} "
                f"{', '.join(absent)}; it has {shown or 'no subjects at all'}."
            )
        return asked

    def windows(self, n_times: int) -> StoreWindows:
        """Cut the recordings into windows that follow one another, as a torch Dataset.

        Recordings that are shorter than a window give none.

        Parameters
        ----------
        n_times : int
            Samples of a window.

        Returns
        -------
        braindecode_pars.signal_store._windows.StoreWindows
            Estimators take it as they take any windows; nothing is read yet.

        Raises
        ------
        ValueError
            When all are shorter, with both lengths.
        """
        _check_n_times(n_times)
        longest = max(self._recordings, key=lambda recording: recording.n_times)
        if longest.n_times < n_times:
            raise ValueError(
                f"A window of {n_times} samples is longer than every recording in {self.path}; the "
                f"longest, {longest.name}, has {longest.n_times} samples."
            )
        return StoreWindows(self.recordings, self.crops, self.sfreq, n_times)

    def verify(self, *, verbose: int = 1) -> None:
        """Read all samples and compare them with their checksums.

        Parameters
        ----------
        verbose : int
            1 shows a progress bar where that takes a while.

        Raises
        ------
        ValueError
            Naming the recordings that were altered.
        """
        bar = tqdm(
            self._recordings,
            desc=f"checking {self.path.name}",
            unit=" recordings",
            disable=not verbose or self.n_bytes < _BIG,
        )
        altered = [r.name for r in bar if checksum_of(self._stored(r)) != r.checksum]
        if altered:
            more = f" and {len(altered) - 5} more" if len(altered) > 5 else ""
            raise ValueError(
                f"{self._samples.file} was altered: the samples of {', '.join(altered[:5])}{more} "
                "do not agree with their checksums. Copy it again, or make the store again."
            )

    def _stored(self, recording: StoredRecording) -> np.ndarray:
        first = recording.first_sample
        return self._samples.flat[first : first + recording.n_samples]


def _check_n_times(n_times: int) -> None:
    if not isinstance(n_times, Integral) or n_times < 1:
        raise ValueError(f"n_times must be a positive number of samples, got {n_times!r}.")


def _reading(n_jobs: int, on_error: str, verbose: int) -> dict[str, Any]:
    if on_error not in ("raise", "warn"):
        raise ValueError(f"on_error must be 'raise' or 'warn', got {on_error!r}.")
    if not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(
            f"n_jobs must be a number of processes or -1 for one on each core, got {n_jobs!r}."
        )
    return dict(n_jobs=n_jobs, on_error=on_error, verbose=verbose)
