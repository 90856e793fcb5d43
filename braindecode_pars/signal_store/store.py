"""An open store: its recordings, and crops of their signals."""

import logging
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset

from braindecode_pars._common import checks, files, training
from braindecode_pars._common.subjects import SubjectKeys
from braindecode_pars.recordings import cutting, recipe, search
from braindecode_pars.signal_store import sources, writing
from braindecode_pars.signal_store.index import (
    DTYPES,
    SAMPLES,
    Index,
    SampleFile,
    StoredRaw,
    StoredRecording,
    check_labels,
    info_of,
    read_labels,
)
from braindecode_pars.windows import duplicates
from braindecode_pars.windows.convert import windows_of
from braindecode_pars.windows.preprocessing import Preprocessing, agreed
from braindecode_pars.windows.table import Montage, SignalReader, Windows

log = logging.getLogger(__name__)

_RULES = dict(
    dtype=checks.choice("int16", "float32"),
    on_error=checks.choice("raise", "warn"),
    n_jobs=checks.ParameterRule(
        "a number of processes, or -1", (Integral,), lambda value: value != 0
    ),
)
_BIG = 1 << 30  # a store of more bytes is checked with a progress bar
_COMPARED_SECONDS = 10.0  # duration of the windows in which recordings are compared


class SignalStore:
    """Continuous recordings of any montages and lengths in one folder, with one sampling rate.

    A signal is one channel of one recording. ``samples.bin`` contains all signals, one after
    another. It is mapped into memory, so reading a crop does not read other samples, and all
    processes share one copy in the page cache. ``store.json`` describes the signals. A store that
    was made of labeled windows has a table of them, ``windows.csv``; :meth:`labeled_windows`
    returns them. Create a store with :meth:`create` and open it with :meth:`open`.

    ``len(store)`` is the number of signals.

    Parameters
    ----------
    path, index, samples, recordings
        Internal arguments of :meth:`create` and :meth:`open`. Do not call the constructor
        directly.

    Attributes
    ----------
    path : Path
        Folder of the store.
    sfreq : float
        Sampling rate in Hz.
    dtype : "int16" | "float16" | "float32"
        Type of the stored samples. Samples are read as float32, in volts.
    shares : dict of str to float
        Share of each corpus in the examples of a pretraining run, by name; empty if there are none.
    skipped : dict of str to str
        Reason why a recording was skipped when the store was created, by name of the recording.

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
        self, path: Path, index: Index, samples: SampleFile, recordings: tuple[StoredRecording, ...]
    ):
        self.path = path
        assert index.sfreq is not None  # a finished store has that of its first recording
        self.sfreq = index.sfreq
        self.dtype = index.settings["dtype"]
        self.shares = dict(index.shares)
        self.skipped = dict(index.skipped)
        self._index = index
        self._samples = samples
        self._recordings = recordings
        # Arrays over recordings.
        n_chans = np.array([len(recording.ch_names) for recording in recordings])
        n_times = np.array([recording.n_times for recording in recordings])
        first = np.array([recording.first_sample for recording in recordings])
        self._first_signal = np.cumsum(n_chans) - n_chans
        # Arrays over signals: recording, length, first sample, scale and offset.
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
        reference: str | None = None,
        subject: search.Subject = None,
        shares: Mapping[str, float] | None = None,
        n_jobs: int = 1,
        on_error: str = "raise",
        verbose: int = 1,
    ) -> Self:
        """Create a store from the EEG channels of recordings.

        If a call was interrupted or killed, call again with the same arguments. The new call
        resumes after the last stored recording. In the same way, the same call adds files that are
        new in the folder, or in those of the corpora, to a finished store.

        Parameters
        ----------
        path : path
            Folder of the store: new, empty, or a store that was made with the same arguments.
        recordings : BaseConcatDataset | RawDataset | EEGWindowsDataset | ContinuousCorpus | path
            Recordings to store: continuous recordings, windows, one or a list of
            :class:`~braindecode_pars.recordings.recipe.ContinuousCorpus`, or a folder. The whole
            recordings of windows are stored, and, if any window has a label other than -1, a table
            of the windows, for :meth:`labeled_windows`. Recordings of corpora are read and
            prepared one by one by their recipe, so that the arguments ``sfreq`` to ``subject`` are
            omitted. People that one of several ContinuousCorpus excludes or holds out for
            validation and test are not stored from the others; how many is logged.
            A folder is searched for recordings as in datasets.folder. Hidden files and folders are
            ignored. A dead link counts as a recording that cannot be read. A recording with
            marked gaps, such as a boundary of MNE, is stored in pieces between the gaps, named with
            #1, #2 and so on, so that no crop or window contains a gap.
        dtype : "int16" | "float32"
            Type of the stored samples. With int16, the error of a sample is at most half of
            1/65,534 of the range of its channel in that recording. Where rare artifacts are so
            large that this is too coarse for the signal, they are clipped, with a warning. With
            float32, samples have single precision, and the file is twice as large.
        sfreq : float | None
            New sampling rate of the recordings in Hz. None keeps the rate of the recordings, which
            must be the same for all.
        low, high, mains : float | None
            Edges of the band-pass and frequency of the notch filter in Hz; None for none.
        channels : iterable of str | None
            Names of EEG channels to keep, matched by their electrodes as in the estimators: ``C3``
            also keeps ``EEG C3-REF``. A recording need not have all of them; a name that no
            recording has gives a warning. None keeps all EEG
            channels that are not marked as bad. Only EEG is stored, also with a list. EEG channels
            are recognized by their MNE type and by their name: EDF, BDF and WFDB files do not store
            channel types, so ``EOG1`` or ``SpO2`` may have the type "eeg". A channel whose name
            does not show another kind is kept. Channels that are left out are logged.
        reference : "average" | None
            New reference of a recording: the average of those of its channels that are stored. None
            keeps the recording's own reference.
        subject : callable | str | None
            Function that returns the subject of a file from its path relative to the folder; or a
            regular expression that is searched for in this path, whose only group is the subject.
            None recognizes BIDS (``sub-``), the corpora of Temple University and the records of
            PhysioNet's challenges, and otherwise takes the name of the first folder, or of a file
            without folder. For a dataset, subjects are the entries ``subject`` of its descriptions.
        shares : mapping of str to float | None
            Share of each ContinuousCorpus in the examples of a pretraining run, by name. Only their
            ratios count: ``{"tueg": 1, "ysyw": 1}`` is the paper's mixture. They are in the index
            of the store, and :func:`runs.pretrain <braindecode_pars.runs.pretrain>` draws the
            examples by them; the samples do not depend on them, so that a call that resumes may
            change them. None draws every window once in a pass.
        n_jobs : int
            Number of processes, as in joblib.
        on_error : "raise" | "warn"
            Whether a recording that cannot be read raises an error, or is skipped with a warning.
            A recording with NaN or infinite samples is always skipped with a warning.
        verbose : int
            Whether to show a progress bar (1) or nothing (0).

        Returns
        -------
        SignalStore
            The open store.

        Raises
        ------
        TypeError
            When ``recordings`` has another type, or ``channels`` is a string.
        ValueError
            When the folder is not empty and not a store, when the store was made with other
            arguments, when a stored file has changed, when a recording cannot be stored, or when
            sampling rates differ. The message names the recording. Also when the folder is a
            finished store and ``recordings`` a dataset, when one or two first folders would be the
            subjects of many recordings, when names obviously number the recordings of one person,
            such as ``Subject00_1`` and ``Subject00_2``, when a recording of a dataset has a
            ``transform``, or when an argument is not one of the accepted values.
        OSError
            When the folder cannot be written, for example on a full disk, or a process that reads
            was killed. Stored recordings are kept, and the same call resumes after them.

        Warns
        -----
        UserWarning
            When recordings were skipped, when samples were clipped (``recordings["n_clipped"]`` is
            their number), when int16 is too coarse for a signal, when the amplitude of a
            recording is not that of EEG in volts, and when two recordings contain the same signals.
        """
        # Check all arguments before anything is created.
        reading = dict(n_jobs=n_jobs, on_error=on_error, verbose=verbose)
        checks.check_parameters(dict(reading, dtype=dtype), _RULES)
        if isinstance(channels, str) or not isinstance(channels, Iterable | None):
            raise TypeError(f"channels is {channels!r}; give a list of names.")
        channels = None if channels is None else list(channels)
        path = Path(path).expanduser()
        preparation = sources.StoredForm(sfreq, low, high, mains, channels, reference)
        writing.create(path, recordings, subject, preparation, dtype, shares or {}, **reading)
        store = cls.open(path)
        stored = store.recordings.set_index("first_signal")
        n_times = min(round(_COMPARED_SECONDS * store.sfreq), int(stored["n_times"].max()))
        windows = store.windows(n_times)
        names = stored["name"][windows.recordings["base"]]
        duplicates.warn_of_duplicates(windows, names.tolist())
        return store

    @classmethod
    def open(cls, path: str | Path, *, verbose: int = 1) -> Self:
        """Open a finished store.

        If the modification time of ``samples.bin`` has changed, for example because the store was
        copied, all samples are compared with their checksums once.

        Parameters
        ----------
        path : path
            Folder of the store.
        verbose : int
            Whether to show a progress bar while a large store is checked (1) or nothing (0).

        Returns
        -------
        SignalStore
            The open store.

        Raises
        ------
        FileNotFoundError
            When the folder is not a store.
        ValueError
            When the store is unfinished, truncated or altered.
        """
        # Check that index and samples are complete.
        path = Path(path).expanduser()
        index = Index.read(path)
        if not index.complete:
            raise ValueError(
                f"{path} is an unfinished store of {len(index.recordings)} recordings; the same "
                "call or command resumes there."
            )
        samples = path / SAMPLES
        writing.check_not_truncated(path, index)
        check_labels(path, index.labels)
        dtype = index.settings["dtype"]
        file = SampleFile(samples.absolute(), dtype, index.n_bytes // DTYPES[dtype].itemsize)
        store = cls(path, index, file, tuple(index.recordings))
        # Check the content if the file was touched, and restore its time to check only once.
        file_status = samples.stat()
        if file_status.st_mtime_ns != index.mtime_ns:
            store.verify(verbose=verbose)
            with suppress(OSError):  # in a read-only folder, the samples are checked every time
                os.utime(samples, ns=(file_status.st_atime_ns, index.mtime_ns))
        return store

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
        """Table with one row for each recording.

        The columns are ``name subject ch_names n_times first_signal n_clipped corpus split``.
        Channel ``c`` of a recording is signal ``first_signal + c``. ``n_clipped`` is the number of
        samples, over all channels, that were outside the range of the type. ``corpus`` is the name
        of the recipe, and ``split`` one such as "train"; None for recordings without.
        """
        return pd.DataFrame(
            dict(
                name=[recording.name for recording in self._recordings],
                subject=pd.Series([r.subject for r in self._recordings], dtype=object),
                ch_names=[recording.ch_names for recording in self._recordings],
                n_times=[recording.n_times for recording in self._recordings],
                first_signal=self._first_signal,
                n_clipped=[sum(recording.clipped.values()) for recording in self._recordings],
                corpus=pd.Series(
                    [r.description.get("corpus") for r in self._recordings], dtype=object
                ),
                split=pd.Series([r.split for r in self._recordings], dtype=object),
            )
        )

    @property
    def preprocessing(self) -> Preprocessing:
        """Preprocessing of the stored signals, as far as it is known and the same in all."""
        return agreed([recording.prepared for recording in self._recordings])

    @property
    def n_bytes(self) -> int:
        """Size of the stored samples in bytes."""
        return sum(r.n_samples for r in self._recordings) * DTYPES[self.dtype].itemsize

    @property
    def subjects(self) -> list:
        """Known subjects, in the order of the recordings."""
        return [name for name in dict.fromkeys(self.recordings["subject"]) if name is not None]

    @cached_property
    def checksum(self) -> str:
        """Checksum of all recordings and shares, 16 hexadecimal digits."""
        # Checksums of the samples, together with everything that determines the values in volts.
        lines = [f"{self.sfreq} {self.dtype}"]
        lines += [
            f"{r.name} {r.subject!r} {r.ch_names} {r.n_times} {r.checksum}"
            for r in self._recordings
        ]
        lines += [f"share of {name}: {share}" for name, share in sorted(self.shares.items())]
        content = "\n".join(lines).encode() + self._scale.tobytes() + self._offset.tobytes()
        return files.checksum_of(content)

    def batch(self, signals: np.ndarray, n_times: int, rng: np.random.Generator) -> np.ndarray:
        """Return a random crop of each signal; all starts have the same probability.

        Parameters
        ----------
        signals : array-like of int, shape (batch,)
            Numbers of signals; a signal may occur several times.
        n_times : int
            Length of a crop in samples.
        rng : numpy.random.Generator
            Generator that draws the starts.

        Returns
        -------
        ndarray of float32, shape (batch, n_times)
            Crops in volts.

        Raises
        ------
        IndexError
            When a signal does not exist.
        ValueError
            When a signal is shorter than the crop. The message names the recording.
        """
        checks.integer(1).check("n_times", n_times)
        checks.instance("a numpy.random.Generator", np.random.Generator).check("rng", rng)
        last_starts = self._length[self._check_signals(signals)] - n_times
        # A signal that is shorter than the crop is named when it is read.
        starts = rng.integers(0, np.maximum(last_starts, 0), endpoint=True)
        return self.crops(signals, starts, n_times)

    def crops(self, signals: np.ndarray, starts: np.ndarray, n_times: int) -> np.ndarray:
        """Return a crop of each signal that begins at a given sample.

        Parameters
        ----------
        signals, starts : array-like of int, shape (batch,)
            Numbers of signals, and the first sample of each crop.
        n_times : int
            Length of a crop in samples.

        Returns
        -------
        ndarray of float32, shape (batch, n_times)
            Crops in volts.

        Raises
        ------
        IndexError
            When a signal does not exist.
        ValueError
            When a crop exceeds its signal. The message names the recording.
        """
        signals, starts = self._check_signals(signals), np.asarray(starts)
        if starts.shape != signals.shape or starts.dtype.kind not in "iu":
            raise ValueError(f"starts must be an integer for each of {len(signals)} signals.")
        checks.integer(1).check("n_times", n_times)
        outside = (starts < 0) | (starts > self._length[signals] - n_times)
        if outside.any():
            i = int(outside.argmax())
            recording = self._recordings[self._recording[signals[i]]]
            raise ValueError(
                f"A crop of {n_times} samples that starts at sample {starts[i]} exceeds recording "
                f"{recording.name} in {self.path}, which has {recording.n_times} samples."
            )
        firsts = self._first[signals] + starts
        return self._samples.crops(firsts, n_times, self._scale[signals], self._offset[signals])

    def _check_signals(self, signals: np.ndarray) -> np.ndarray:
        """Return numbers of signals as an array, and check that these signals exist."""
        signals = np.asarray(signals)
        if signals.ndim != 1 or signals.dtype.kind not in "iu":
            raise TypeError(f"signals must be 1-D integers, got {signals.dtype} {signals.shape}.")
        if len(signals) and (signals.min() < 0 or signals.max() >= len(self)):
            ends = f"{signals.min()} to {signals.max()}"
            raise IndexError(f"Signals {ends} were requested; there are 0 to {len(self) - 1}.")
        return signals

    def select(self, subjects: Iterable | None = None, *, exclude: Iterable | None = None) -> Self:
        """Return a view of the store with the recordings of some subjects; nothing is copied.

        Parameters
        ----------
        subjects : iterable | None
            Subjects to keep, in any spelling, such as "7" or "007" for 7; None keeps all.
        exclude : iterable | None
            Subjects to exclude from these, in any spelling; None excludes none.

        Returns
        -------
        SignalStore
            View of the selected recordings. This object does not change.

        Raises
        ------
        ValueError
            When a subject is not in the store, when no recording remains, or when subjects are
            excluded and the subject of a remaining recording is unknown.
        """
        recordings = list(self._recordings)
        if subjects is not None:
            keys = SubjectKeys(self._as_list(subjects))
            recordings = [r for r in recordings if r.subject is not None and r.subject in keys]
        # All spellings are excluded, since a subject that is kept by mistake is trained on.
        if excluded := self._as_list(() if exclude is None else exclude):
            keys = SubjectKeys(excluded)
            recordings = [r for r in recordings if r.subject not in keys]
            if unknown := sum(recording.subject is None for recording in recordings):
                text = f"{unknown} recordings in {self.path} have no subject"
                raise ValueError(f"{text}, so they may be of an excluded one.")
        return self._view(recordings)

    def _view(self, recordings: list[StoredRecording]) -> Self:
        if not recordings:
            why = "all subjects are excluded, or held out for validation and test"
            raise ValueError(f"No recording of {self.path} remains: {why}.")
        return type(self)(self.path, self._index, self._samples, tuple(recordings))

    def without_held_out(self) -> Self:
        """Return a view to pretrain on, without held-out people.

        A store with labels has the validation and test subjects of its corpus. People with a
        recording of the split "valid" or "test" are left out with all their recordings; the log
        counts them. Runs, and estimators that get a store to pretrain on, do this themselves.

        Returns
        -------
        SignalStore
            View of the remaining recordings; the store itself if no subject is held out.

        Raises
        ------
        ValueError
            When no recording remains.
        """
        held_out = [r for r in self._recordings if r.split in recipe.HELD_OUT]
        held_out_subjects = SubjectKeys(r.subject for r in held_out if r.subject is not None)
        included = [
            r
            for r in self._recordings
            if r.split not in recipe.HELD_OUT and r.subject not in held_out_subjects
        ]
        n = len(self._recordings)
        if len(included) == n:
            return self
        text = "%s: left out %d of %d recordings, of its validation and test subjects."
        log.warning(text, self.path, n - len(included), n)
        return self._view(included)

    def _as_list(self, subjects: Iterable) -> list:
        """Return subjects as a list, and check that the store has recordings of them."""
        if isinstance(subjects, str):
            raise TypeError(f"subjects is the string {subjects!r}; give a list of subjects.")
        subjects, stored = list(subjects), SubjectKeys(self.subjects)
        if absent := sorted({str(s) for s in subjects if s not in stored}):
            raise ValueError(
                f"{self.path} contains no recording of {', '.join(absent)}; it has "
                f"{checks.format_list(list(map(str, self.subjects))) or 'no subjects'}."
            )
        return subjects

    def windows(self, n_times: int) -> Windows:
        """Return consecutive windows of all recordings; an incomplete last one is dropped.

        Parameters
        ----------
        n_times : int
            Length of a window in samples.

        Returns
        -------
        Windows
            Windows, which the estimators accept, float32 in volts. No sample is read yet.

        Raises
        ------
        ValueError
            When all recordings are shorter than a window. The message contains both lengths.
        """
        checks.integer(1).check("n_times", n_times)
        # At least one recording must be as long as a window.
        longest = max(self._recordings, key=lambda recording: recording.n_times)
        if longest.n_times < n_times:
            raise ValueError(
                f"A window of {n_times} samples is longer than every recording in {self.path}; the "
                f"longest, {longest.name}, has {longest.n_times} samples."
            )
        table, sfreq = self.recordings, self.sfreq
        names = [tuple(ch_names) for ch_names in table["ch_names"]]
        montages = {ch_names: Montage.of(info_of(ch_names, sfreq)["chs"]) for ch_names in names}
        rows = table[["corpus", "subject", "split"]].assign(
            sfreq=sfreq,
            channels=[montages[ch_names] for ch_names in names],
            preprocessing=[
                replace(recording.prepared, window_seconds=n_times / sfreq)
                for recording in self._recordings
            ],
            reader=SignalReader(self.crops),
            base=table["first_signal"],
        )
        counts = table["n_times"].to_numpy() // n_times
        numbers = np.repeat(np.arange(len(counts)), counts)
        starts = np.concatenate([np.arange(count) * n_times for count in counts])
        columns = dict(recording=numbers, item=starts, start=starts, stop=starts + n_times)
        return windows_of(rows.to_dict("records"), **columns)

    @property
    def n_labeled_windows(self) -> int:
        """Number of labeled windows in the store, including those that a view leaves out."""
        return self._index.labels.get("n_windows", 0)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the labels 0, 1, ... of a store that a recipe has labeled; empty if unknown."""
        corpora = self._index.settings.get("corpora", {}).values()
        return tuple(next((corpus.get("classes", ()) for corpus in corpora), ()))

    def labeled_windows(self) -> BaseConcatDataset:
        """Return the labeled windows that were stored, as a braindecode dataset.

        The dataset has the windows, labels, descriptions and channel positions of the dataset or
        recipe from which the store was made, in the same order, and is used like it: for ``fit``,
        the protocols of :mod:`braindecode_pars.evaluation`, ``split("split")``, ``as_sklearn``. Of
        the channels it has those that are stored: EEG channels that are not marked as bad.

        Returns
        -------
        BaseConcatDataset of EEGWindowsDataset
            Labeled windows, in volts. They are read from the memory map when they are used, by the
            estimators a batch at a time; subsets and copies in other processes share it.

        Raises
        ------
        ValueError
            When the store, or this view of it, has no labeled windows.

        Examples
        --------
        >>> import tempfile
        >>> from braindecode_pars import datasets
        >>> from braindecode_pars.signal_store import SignalStore
        >>> nights = datasets.simulated.sleep(n_subjects=2, hours=0.1, n_chans=3)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = SignalStore.create(folder, nights, verbose=0)
        ...     windows = store.labeled_windows()
        ...     samples, stage, _ = windows[0]
        >>> len(windows) == len(nights), samples.shape, stage == nights[0][1]
        (True, (3, 3000), True)
        """
        labels = read_labels(self.path, self._index.labels, self.sfreq)
        recording_windows = []
        for recording, i in zip(self._recordings, self._first_signal.tolist(), strict=True):
            if (table := labels.get(recording.name)) is not None:
                raw = StoredRaw(recording, self.crops, i, self.sfreq)
                windows = EEGWindowsDataset(raw, table, dict(recording.description))
                recording_windows.append(cutting.name_classes(windows, self.classes))
        if not recording_windows:
            raise ValueError(
                f"{self.path} has no labels of these recordings; make it of labeled windows, "
                "as by braindecode-pars store --labels."
            )
        return BaseConcatDataset(recording_windows)

    def verify(self, *, verbose: int = 1) -> None:
        """Read all samples and compare them with their checksums.

        Parameters
        ----------
        verbose : int
            Whether to show a progress bar for a large store (1) or nothing (0).

        Raises
        ------
        ValueError
            When samples were altered. The message names the recordings.
        """
        bar = training.ProgressBar(
            self._recordings,
            desc=f"checking {self.path.name}",
            unit=" recordings",
            disable=not verbose or self.n_bytes < _BIG,
        )
        altered: list[str] = []
        for recording in bar:
            stop = recording.first_sample + recording.n_samples
            stored = self._samples.flat[recording.first_sample : stop]
            if files.checksum_of(stored) != recording.checksum:
                altered.append(recording.name)
        if altered:
            raise ValueError(
                f"{self._samples.file} was altered since these were stored: "
                f"{checks.format_list(altered, 5)}. Copy the store again."
            )
