"""SignalStore: memory-mapped recordings, and crops of their signals."""

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset, RawDataset

from braindecode_pars._common import checks, files, training
from braindecode_pars._common.subjects import SubjectKeys
from braindecode_pars.recordings import braindecode_zarr, cutting, recipe, search
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
from braindecode_pars.windows.picking import check_channels
from braindecode_pars.windows.preprocessing import Preprocessing, agreed
from braindecode_pars.windows.table import Montage, SignalReader, Windows

log = logging.getLogger(__name__)

_RULES = dict(
    dtype=checks.choice("int16", "float32"),
    on_error=checks.choice("raise", "warn"),
)
_LARGE_STORE = 1 << 30  # minimum size in bytes of a store that is verified with a progress bar
_COMPARED_SECONDS = 10.0  # window length in seconds for the detection of duplicate recordings


class SignalStore:
    """Memory-mapped corpus of continuous recordings, for data larger than memory.

    The recordings can have different montages and lengths, but share one sampling rate. A signal is
    one channel of one recording. ``samples.bin`` contains all signals, one after another. It is
    mapped into memory, so that reading a crop does not read other samples, and all processes share
    one copy in the page cache. ``store.json`` describes the signals. A store that was created from
    labeled windows also contains ``windows.csv``, a table of the windows;
    :meth:`labeled_windows` returns these windows. Create a store with :meth:`create` and open it
    with :meth:`open`.

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
        Proportion of each corpus in the data of a pretraining run, by name. Empty if not specified.
    skipped : dict of str to str
        Reason why a recording was skipped when the store was created, by recording name.

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
        assert index.sfreq is not None  # set by the first recording of a complete store
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
        channels: Sequence[str] | None = None,
        reference: str | None = None,
        subject: search.Subject = None,
        shares: Mapping[str, float] | None = None,
        n_jobs: int = 1,
        on_error: str = "raise",
        verbose: int = 1,
    ) -> Self:
        """Create a store from the EEG channels of recordings, or add new recordings to a store.

        If a call was interrupted or killed, repeat it with the same arguments: it resumes after the
        last stored recording. Repeating the call on a complete store adds files that are new in the
        folder or in the folders of the corpora.

        Parameters
        ----------
        path : path
            Folder of the store: new, empty, or a store that was created with the same arguments.
        recordings : BaseConcatDataset | RawDataset | EEGWindowsDataset | ContinuousCorpus | path
            Recordings to store: continuous recordings, windows, one
            :class:`~braindecode_pars.recordings.recipe.ContinuousCorpus` or a list of them, or a
            folder.

            For windows, the complete recordings are stored. If any window has a label other than
            -1, a table of the windows is stored as well, for :meth:`labeled_windows`.

            The recordings of a corpus are read and preprocessed by its recipe, so the arguments
            from ``sfreq`` to ``subject`` must be omitted. Subjects that one corpus excludes or
            holds out for validation and test are also excluded from the other corpora. The number
            of excluded recordings is logged.

            A folder is searched for recordings as in :mod:`braindecode_pars.datasets.folder`.
            Hidden files and folders are ignored. A broken link is treated as a recording that
            cannot be read. A recording with marked gaps, such as boundary annotations of MNE, is
            stored as the segments between its gaps, so that no crop or window contains a gap. The
            names of the segments have the suffixes #1, #2 and so on.

            A Zarr folder of braindecode, such as the folder ``dataset.zarr`` in a download from the
            Hugging Face Hub, is read as this dataset, with its windows and preprocessing (requires
            the extra ``zarr``). Braindecode writes an uncompressed copy to a temporary folder.
        dtype : "int16" | "float32"
            Type of the stored samples. With int16, the range of a channel in the recording has
            65,534 steps, and the maximum error of a sample is half a step. If rare artifacts are so
            large that this resolution is too coarse for the signal, they are clipped, with a
            warning. With float32, samples have single precision, and the file is twice as large.
        sfreq : float | None
            New sampling rate of the recordings in Hz. If None, the sampling rate is unchanged and
            must be the same in all recordings.
        low, high, mains : float | None
            Cutoff frequencies of the high-pass and the low-pass filter, and line frequency for the
            notch filter, in Hz. If None, the filter is omitted.
        channels : sequence of str | None
            Names of EEG channels to keep, matched by electrode as in the estimators: ``C3`` also
            keeps ``EEG C3-REF``. Recordings may lack some of the channels; a channel that no
            recording contains causes a warning. If None, all EEG channels that are not marked as
            bad are kept. Only EEG channels are stored in either case. EEG channels are identified
            by MNE type and by name: EDF, BDF and WFDB files do not store channel types, so
            ``EOG1`` or ``SpO2`` may have the type "eeg". A channel of type "eeg" is stored unless
            its name is typical of another signal type. Excluded channels are logged.
        reference : "average" | None
            New reference: "average" is the average of the stored channels of the recording. If
            None, the reference is unchanged.
        subject : callable | str | None
            Function that returns the subject of a file from its path relative to the folder. Or a
            regular expression that is searched for in this path; its only group must match the
            subject. If None, BIDS (``sub-``), the corpora of Temple University and the records of
            PhysioNet challenges are recognized. For other paths, the subject is the name of the
            top-level folder, or the file name if there is no folder. For a dataset, the subject is
            the entry ``subject`` of the descriptions.
        shares : mapping of str to float | None
            Proportion of each ContinuousCorpus in the data of a pretraining run, by name. Only the
            ratios matter: ``{"tueg": 1, "ysyw": 1}`` is the mixture of the paper. The proportions
            are stored in the index of the store and used by :func:`runs.pretrain
            <braindecode_pars.runs.pretrain>`. The stored samples do not depend on the proportions,
            so a call that resumes may change them. If None, every window is drawn once per pass.
        n_jobs : int
            Number of processes, as in joblib.
        on_error : "raise" | "warn"
            Action if a recording cannot be read: raise an error ("raise"), or skip the recording
            with a warning ("warn"). A recording with NaN or infinite samples is always skipped with
            a warning.
        verbose : int
            Whether to show a progress bar (1) or no output (0).

        Returns
        -------
        SignalStore
            The open store.

        Raises
        ------
        TypeError
            If ``recordings`` has another type, or ``channels`` is a string.
        ValueError
            If the folder is neither empty nor a store. If the folder is a complete store, and
            ``recordings`` is a dataset. If the store was created with different arguments. If a
            stored file has changed, a recording cannot be stored, or sampling rates differ; the
            message contains the recording. If one or two top-level folders would be the subjects of
            many recordings. If file names apparently number the recordings of one subject, such as
            ``Subject00_1`` and ``Subject00_2``. If a recording of a dataset has a ``transform``. If
            an argument has an invalid value.
        OSError
            If the folder cannot be written, for example because the disk is full, or if a worker
            process was killed. Stored recordings remain, and the same call resumes after the last
            stored recording.

        Warns
        -----
        UserWarning
            If recordings were skipped. If samples were clipped; ``recordings["n_clipped"]``
            contains the number of clipped samples. If int16 is too coarse for a signal. If the
            amplitude of a recording is implausible for EEG in volts. If two recordings are
            duplicates.
        """
        # Check all arguments before anything is created.
        reading = dict(n_jobs=n_jobs, on_error=on_error, verbose=verbose)
        checks.check_parameters(dict(reading, dtype=dtype), _RULES)
        channels = None if channels is None else check_channels(channels)
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
        """Open a complete store.

        If the modification time of ``samples.bin`` has changed, for example because the store was
        copied, all samples are compared with their checksums once.

        Parameters
        ----------
        path : path
            Folder of the store.
        verbose : int
            Whether to show a progress bar while a large store is verified (1) or no output (0).

        Returns
        -------
        SignalStore
            The open store.

        Raises
        ------
        FileNotFoundError
            If the folder is not a store.
        ValueError
            If the store is incomplete, truncated or altered.
        """
        # Check that index and samples are complete.
        path = Path(path).expanduser()
        index = Index.read(path)
        if not index.complete:
            raise ValueError(
                f"{path} is an incomplete store of {len(index.recordings)} recordings. To resume, "
                "repeat the call or command that created the store."
            )
        samples = path / SAMPLES
        writing.check_not_truncated(path, index)
        check_labels(path, index.labels)
        dtype = index.settings["dtype"]
        file = SampleFile(samples.absolute(), dtype, index.n_bytes // DTYPES[dtype].itemsize)
        store = cls(path, index, file, tuple(index.recordings))
        # Verify the content if the modification time changed, and restore the time afterwards.
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

        The columns are ``name subject ch_names n_times first_signal n_clipped corpus split``. The
        channels of all recordings are numbered consecutively: channel ``c`` of a recording is
        signal number ``first_signal + c``. ``n_clipped`` is the number of samples, over all
        channels, that were outside the range of the data type. ``corpus`` is the name of the
        corpus, or None. ``split`` is a split such as "train", or None.
        """
        rows = self._recordings
        columns = dict(
            name=[recording.name for recording in rows],
            subject=[recording.subject for recording in rows],
            ch_names=[recording.ch_names for recording in rows],
            n_times=[recording.n_times for recording in rows],
            first_signal=self._first_signal,
            n_clipped=[sum(recording.clipped.values()) for recording in rows],
            corpus=[recording.corpus for recording in rows],
            split=[recording.split for recording in rows],
        )
        texts = ("subject", "corpus", "split")
        columns |= {name: pd.Series(columns[name], dtype=object) for name in texts}
        return pd.DataFrame(columns)

    @property
    def preprocessing(self) -> Preprocessing:
        """Preprocessing that is known and the same in all stored recordings."""
        return agreed([recording.known_preprocessing for recording in self._recordings])

    @property
    def n_bytes(self) -> int:
        """Size of the stored samples in bytes."""
        return sum(r.n_samples for r in self._recordings) * DTYPES[self.dtype].itemsize

    @property
    def subjects(self) -> list:
        """Subjects in the order of the recordings, without unknown subjects."""
        return [name for name in dict.fromkeys(self.recordings["subject"]) if name is not None]

    @cached_property
    def checksum(self) -> str:
        """Checksum of all recordings and proportions of corpora, 16 hexadecimal digits."""
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
        """Return a random crop of each signal, with uniformly distributed start.

        Parameters
        ----------
        signals : array-like of int, shape (batch,)
            Numbers of signals. A signal may occur several times.
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
            If a signal does not exist.
        ValueError
            If a signal is shorter than the crop. The message contains the recording.
        """
        checks.integer(1).check("n_times", n_times)
        checks.instance("a numpy.random.Generator", np.random.Generator).check("rng", rng)
        last_starts = self._length[self._check_signals(signals)] - n_times
        # crops raises the error if a signal is shorter than the crop.
        starts = rng.integers(0, np.maximum(last_starts, 0), endpoint=True)
        return self.crops(signals, starts, n_times)

    def crops(self, signals: np.ndarray, starts: np.ndarray, n_times: int) -> np.ndarray:
        """Return a crop of each signal, starting at a specified sample.

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
            If a signal does not exist.
        ValueError
            If a crop exceeds its signal. The message contains the recording.
        """
        signals, starts = self._check_signals(signals), np.asarray(starts)
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
        """Return numbers of signals as an array after checking that these signals exist."""
        signals = np.asarray(signals)
        is_vector = signals.ndim == 1 and signals.dtype.kind in "iu"
        if not is_vector or (signals < 0).any() or (signals >= len(self)).any():
            raise IndexError(
                f"signals must be integers from 0 to {len(self) - 1}, shape (batch,), got "
                f"{signals!r}."
            )
        return signals

    def select(self, subjects: Iterable | None = None, *, exclude: Iterable | None = None) -> Self:
        """Return a view of the store with the recordings of some subjects, without copying.

        Parameters
        ----------
        subjects : iterable | None
            Subjects to keep, in any spelling, such as "7" or "007" for 7. If None, all are kept.
        exclude : iterable | None
            Subjects to exclude, in any spelling. If None, no subject is excluded.

        Returns
        -------
        SignalStore
            View of the selected recordings. The original store does not change.

        Raises
        ------
        ValueError
            If a subject is not in the store. If no recording remains. If subjects are excluded and
            the subject of a remaining recording is unknown.
        """
        recordings = list(self._recordings)
        if subjects is not None:
            keys = SubjectKeys(self._as_list(subjects))
            recordings = [r for r in recordings if r.subject is not None and r.subject in keys]
        # Exclude all spellings: a subject that remains by mistake would be used for training.
        if excluded := self._as_list(() if exclude is None else exclude):
            keys = SubjectKeys(excluded)
            recordings = [r for r in recordings if r.subject not in keys]
            if unknown := sum(recording.subject is None for recording in recordings):
                raise ValueError(
                    f"{unknown} recordings in {self.path} have no subject, so they may belong to "
                    "an excluded subject. Create the store again, and pass subject= to "
                    "specify the subject of each file."
                )
        return self._view(recordings)

    def _view(self, recordings: list[StoredRecording]) -> Self:
        if not recordings:
            raise ValueError(
                f"No recording of {self.path} remains: all subjects are excluded, or held out for "
                "validation and test."
            )
        return type(self)(self.path, self._index, self._samples, tuple(recordings))

    def without_held_out(self) -> Self:
        """Return a view without held-out subjects, for pretraining.

        A store with labels contains the validation and test subjects of its corpus. If any
        recording of a subject is in the split "valid" or "test", all recordings of the subject are
        excluded. The number of excluded recordings is logged. Pretraining runs, and estimators that
        pretrain on a store, call this method.

        Returns
        -------
        SignalStore
            View of the remaining recordings, or the store itself if no subject is held out.

        Raises
        ------
        ValueError
            If no recording remains.
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
        text = "%s: excluded %d of %d recordings, which belong to validation and test subjects."
        log.warning(text, self.path, n - len(included), n)
        return self._view(included)

    def _as_list(self, subjects: Iterable) -> list:
        """Return subjects as a list after checking that the store contains them."""
        if isinstance(subjects, str):
            raise TypeError(f"subjects must be a list of subjects, got the string {subjects!r}.")
        subjects, stored = list(subjects), SubjectKeys(self.subjects)
        if absent := sorted({str(s) for s in subjects if s not in stored}):
            raise ValueError(
                f"{self.path} contains no recording of subject {', '.join(absent)}. Available "
                f"subjects: {checks.format_list(list(map(str, self.subjects))) or 'none'}."
            )
        return subjects

    def windows(self, n_times: int) -> Windows:
        """Return consecutive windows of all recordings, without incomplete last windows.

        Parameters
        ----------
        n_times : int
            Length of a window in samples.

        Returns
        -------
        Windows
            Windows as input of the estimators, float32 in volts. No sample is read yet.

        Raises
        ------
        ValueError
            If all recordings are shorter than a window.
        """
        checks.integer(1).check("n_times", n_times)
        longest = max(self._recordings, key=lambda recording: recording.n_times)
        if longest.n_times < n_times:
            raise ValueError(
                f"A window of {n_times} samples is longer than every recording in {self.path}. The "
                f"longest, {longest.name}, has {longest.n_times} samples. Decrease n_times."
            )
        table, sfreq = self.recordings, self.sfreq
        names = [tuple(ch_names) for ch_names in table["ch_names"]]
        montages = {ch_names: Montage.of(info_of(ch_names, sfreq)["chs"]) for ch_names in names}
        rows = table[["corpus", "subject", "split"]].assign(
            sfreq=sfreq,
            channels=[montages[ch_names] for ch_names in names],
            preprocessing=[
                replace(recording.known_preprocessing, window_seconds=n_times / sfreq)
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
        """Number of labeled windows in the store, including windows that a view excludes."""
        return self._index.labels.get("n_windows", 0)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the labels 0, 1, ... if the labels are from a recipe; otherwise empty."""
        corpora = self._index.settings.get("corpora", {}).values()
        return tuple(next((corpus.get("classes", ()) for corpus in corpora), ()))

    def labeled_windows(self) -> BaseConcatDataset:
        """Return the stored labeled windows as a braindecode dataset.

        The dataset has the same windows, labels, descriptions and channel positions as the dataset
        or recipe from which the store was created, in the same order. Use it in the same way: for
        ``fit``, the protocols of :mod:`braindecode_pars.evaluation`, ``split("split")`` or
        ``as_sklearn``. It contains only the stored channels: EEG channels not marked as bad.

        Returns
        -------
        BaseConcatDataset of EEGWindowsDataset
            Labeled windows in volts. They are read from the memory map on access; estimators read
            them in batches. Subsets, and copies in other processes, share the memory map.

        Raises
        ------
        ValueError
            If the store, or this view of it, contains no labeled windows.

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
        for recording, raw in self._raws():
            if (table := labels.get(recording.name)) is not None:
                windows = EEGWindowsDataset(raw, table, dict(recording.description))
                recording_windows.append(cutting.name_classes(windows, self.classes))
        if not recording_windows:
            raise ValueError(
                f"{self.path} contains no labels for these recordings. Create the store from "
                "labeled windows, or with: braindecode-pars store --labels"
            )
        return BaseConcatDataset(recording_windows)

    def to_zarr(self, path: str | Path) -> None:
        """Write the store as a dataset of braindecode in Zarr format, without a network.

        The dataset consists of the labeled windows, or of the recordings if the store has no
        labels. :meth:`create` reads it from the folder; braindecode reads it with
        ``pull_from_hub`` if it was uploaded as ``dataset.zarr``. Samples in volts (single
        precision), channels and their positions, descriptions, labels and window positions are
        unchanged. The preprocessing is not written, so it is unknown when the dataset is read.

        Parameters
        ----------
        path : path
            New folder, such as ``dataset.zarr``.

        Raises
        ------
        ImportError
            If zarr or huggingface_hub is missing: install the extra ``zarr``.
        FileExistsError
            If ``path`` exists.
        ValueError
            If recordings have different channels, which the format does not support, or if a label
            is a string that would be read as a number or as a missing value.

        Examples
        --------
        >>> SignalStore.open("store").to_zarr("dataset.zarr")  # doctest: +SKIP
        >>> restored = SignalStore.create("other", "dataset.zarr")  # doctest: +SKIP
        """
        if self.n_labeled_windows:
            dataset = self.labeled_windows()
        else:
            raws = [RawDataset(raw, dict(row.description)) for row, raw in self._raws()]
            dataset = BaseConcatDataset(raws)
        braindecode_zarr.write_zarr(dataset, Path(path).expanduser())

    def _raws(self) -> Iterator[tuple[StoredRecording, StoredRaw]]:
        """Yield the recordings, and their signals as MNE objects."""
        for recording, i in zip(self._recordings, self._first_signal.tolist(), strict=True):
            yield recording, StoredRaw(recording, self.crops, i, self.sfreq)

    def verify(self, *, verbose: int = 1) -> None:
        """Read all samples and compare them with their checksums.

        Parameters
        ----------
        verbose : int
            Whether to show a progress bar for a large store (1) or no output (0).

        Raises
        ------
        ValueError
            If samples were altered. The message contains the recordings.
        """
        bar = training.ProgressBar(
            self._recordings,
            desc=f"checking {self.path.name}",
            unit=" recordings",
            disable=not verbose or self.n_bytes < _LARGE_STORE,
        )
        altered = []
        for r in bar:
            stored = self._samples.flat[r.first_sample : r.first_sample + r.n_samples]
            if files.checksum_of(stored) != r.checksum:
                altered.append(r.name)
        if altered:
            raise ValueError(
                f"{self._samples.file} was altered. Recordings whose checksum does not match: "
                f"{checks.format_list(altered, 5)}. Restore the file "
                "from another copy of the store, or create the store again."
            )
