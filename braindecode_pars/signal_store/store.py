"""SignalStore: recordings in a memory-mapped file, from which random crops are read."""

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

_LARGE_STORE = 1 << 30  # stores of at least this size in bytes are verified with a progress bar
_COMPARED_SECONDS = 10.0  # length in seconds of the windows in which duplicates are detected


class SignalStore:
    """Memory-mapped corpus of continuous recordings, for data larger than memory.

    Create a store with :meth:`create`, and open an existing store with :meth:`open`. The recordings
    of a store can have different montages and lengths, but share one sampling rate. A signal is one
    channel of one recording; ``len(store)`` is the number of signals.

    The folder of a store contains two or three files. ``samples.bin`` contains the samples of all
    signals, one signal after another. This file is mapped into memory: reading a crop (a random
    excerpt of a signal) reads only the samples of the crop, and all processes share one copy of the
    file in the page cache of the operating system. ``store.json`` lists the recordings with their
    channels and subjects. If the store was created from labeled windows, ``windows.csv`` is a table
    of these windows, which :meth:`labeled_windows` returns as a dataset.

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
        Data type of the stored samples. When samples are read, they are converted to float32 values
        in volts.
    shares : dict of str to float
        Maps the name of each corpus to its relative proportion in the training data of a
        pretraining run. Empty if no proportions were specified; a pretraining run then uses each
        window once per pass over the data.
    skipped : dict of str to str
        Maps the name of each recording that was skipped when the store was created to the reason.

    Examples
    --------
    Two recordings with three channels each are six signals. The batch contains one crop of each of
    the signals 0 and 1, and two crops of signal 5:

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
        last stored recording. If the store is complete, and was created from a folder or from
        corpora, repeating the call adds the files that are new in these folders.

        Parameters
        ----------
        path : path
            Folder of the store: a new or empty folder, or a store that was created with the same
            arguments.
        recordings : BaseConcatDataset | RawDataset | EEGWindowsDataset | ContinuousCorpus | path
            Recordings to store: a braindecode dataset of continuous recordings or of windows; a
            folder; or one :class:`~braindecode_pars.recordings.recipe.ContinuousCorpus` (a list of
            the recordings of a public corpus) or several in a list.

            For a dataset of windows, the complete recordings are stored, not only the windows. If
            any window has a label other than -1, a table of the windows is stored as well, for
            :meth:`labeled_windows`.

            The recordings of a ContinuousCorpus are read and preprocessed by the recipe of the
            corpus (the module that reads this corpus, such as ``datasets.tueg``), so ``sfreq``,
            ``low``, ``high``, ``mains``, ``channels``, ``reference`` and ``subject`` must be
            omitted. Subjects that one corpus excludes or holds out for validation and test are also
            excluded from the other corpora. The number of excluded recordings is logged.

            A folder is searched for recordings as in :mod:`braindecode_pars.datasets.folder`.
            Hidden files and folders are ignored. A broken link is treated as a recording that
            cannot be read. If gaps are marked in a recording, for example by boundary annotations
            of MNE, the segments between the gaps are stored as separate recordings, so that no crop
            or window contains a gap. The names of the segments end with #1, #2 and so on.

            A dataset that braindecode saved in Zarr format, such as the folder ``dataset.zarr`` in
            a download from the Hugging Face Hub, is read with its windows and preprocessing. This
            requires the extra ``zarr``, and disk space: braindecode writes an uncompressed copy to
            a temporary folder.
        dtype : "int16" | "float32"
            Data type of the stored samples. With int16, the amplitude range of each channel of a
            recording is divided into 65,534 steps, and a sample is changed by at most half a step.
            If rare artifacts are so large that these steps would be too coarse for the rest of the
            signal, the artifacts are clipped, with a warning. With float32, samples are stored in
            single precision, and the file is twice as large.
        sfreq : float | None
            Sampling rate in Hz to which all recordings are resampled. If None, the recordings are
            not resampled, and must have the same sampling rate.
        low, high, mains : float | None
            Cutoff frequencies of the high-pass filter (``low``) and the low-pass filter (``high``),
            and line frequency for the notch filter (``mains``), in Hz. If None, this filter is
            omitted.
        channels : sequence of str | None
            Names of EEG channels to store. As in the estimators, names are matched by electrode:
            ``C3`` also selects ``EEG C3-REF``. Recordings may lack some of the channels; if no
            recording contains a channel, a warning is issued. If None, all EEG channels that are
            not marked as bad are stored.

            In either case, only EEG channels are stored. EDF, BDF and WFDB files do not contain
            channel types, so MNE may assign the type "eeg" to ``EOG1`` or ``SpO2``. Therefore, a
            channel of type "eeg" is excluded if its name is typical of another signal type.
            Excluded channels are logged.
        reference : "average" | None
            New reference: "average" is the average of the stored channels of the recording. If
            None, the reference is unchanged.
        subject : callable | str | None
            How to determine the subject of each file, if ``recordings`` is a folder: a function
            that returns the subject for the path of a file relative to the folder, or a regular
            expression that is searched for in this path and whose only group matches the subject.
            If None, paths as in BIDS (``sub-``), in the corpora of Temple University and in the
            PhysioNet challenges are recognized. For any other path, the subject is the name of the
            top-level folder, or the file name if the file is not in a subfolder. For a dataset,
            omit this argument: the subject is the entry ``subject`` of the descriptions.
        shares : mapping of str to float | None
            Mapping of the name of each ContinuousCorpus to its relative proportion in the training
            data of a pretraining run. Only the ratios matter: ``{"tueg": 1, "ysyw": 1}``, the
            mixture of the paper, uses equal numbers of windows of both corpora. The proportions are
            stored in ``store.json`` and used by :func:`runs.pretrain
            <braindecode_pars.runs.pretrain>`. The stored samples do not depend on them, so they may
            be changed when the call is repeated. If None, every window is used once per pass over
            the data.
        n_jobs : int
            Number of parallel processes that read recordings, as in joblib.
        on_error : "raise" | "warn"
            What to do if a recording cannot be read: raise an error ("raise"), or skip the
            recording with a warning ("warn"). A recording with NaN or infinite samples is always
            skipped with a warning.
        verbose : int
            Whether to show a progress bar (1) or no output (0).

        Returns
        -------
        SignalStore
            The open store.

        Raises
        ------
        TypeError
            If the type of ``recordings`` is not supported, or if ``channels`` is a string.
        ValueError
            If an argument has an invalid value.

            If the folder is neither empty nor a store. If the folder is a complete store, and
            ``recordings`` is a dataset: only recordings of a folder or corpus can be added to a
            complete store. If the store was created with different arguments.

            If a file has changed since it was stored, a recording cannot be stored, or sampling
            rates differ; the message names the recording. If a recording of a dataset has a
            ``transform``.

            If the subjects that were guessed from the paths are probably wrong: one or two
            top-level folders would be the subjects of many recordings, or file names such as
            ``Subject00_1`` and ``Subject00_2`` apparently belong to recordings of one subject.
        OSError
            If the folder cannot be written, for example because the disk is full, or if a worker
            process was killed. Recordings that were already stored remain, and the same call
            resumes after the last stored recording.

        Warns
        -----
        UserWarning
            If recordings were skipped. If samples were clipped; the column ``n_clipped`` of
            :attr:`recordings` contains their number. If the steps of int16 are too coarse for a
            signal. If the amplitude of a recording is implausible for EEG in volts. If two
            recordings contain the same signals.
        """
        # Check all arguments before anything is created.
        checks.choice("int16", "float32").check("dtype", dtype)
        checks.choice("raise", "warn").check("on_error", on_error)
        channels = None if channels is None else check_channels(channels)
        path = Path(path).expanduser()
        preparation = sources.StoredForm(sfreq, low, high, mains, channels, reference)
        reading = dict(n_jobs=n_jobs, on_error=on_error, verbose=verbose)
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

        If the modification time of ``samples.bin`` differs from the stored time, for example
        because the store was copied, all samples are read once and compared with their checksums.

        Parameters
        ----------
        path : path
            Folder of the store.
        verbose : int
            Whether to show a progress bar while a large store is compared with its checksums (1) or
            no output (0).

        Returns
        -------
        SignalStore
            The open store.

        Raises
        ------
        FileNotFoundError
            If the folder is not a store.
        ValueError
            If the store is incomplete, or if a file was truncated or modified.
        """
        # Check that index and samples are complete.
        path = Path(path).expanduser()
        index = Index.read(path)
        if not index.complete:
            raise ValueError(
                f"The store {path} is incomplete: its creation was interrupted (recordings stored "
                f"so far: {len(index.recordings)}). To complete the store, repeat the call or "
                "command that created it, with the same arguments."
            )
        samples = path / SAMPLES
        writing.check_not_truncated(path, index)
        check_labels(path, index.labels)
        dtype = index.settings["dtype"]
        file = SampleFile(samples.absolute(), dtype, index.n_bytes // DTYPES[dtype].itemsize)
        store = cls(path, index, file, tuple(index.recordings))
        # Verify the samples if the modification time has changed. Then restore the stored time, so
        # that the samples are not verified again.
        file_status = samples.stat()
        if file_status.st_mtime_ns != index.mtime_ns:
            store.verify(verbose=verbose)
            with suppress(OSError):  # in a read-only folder, the samples are verified every time
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

        The columns are:

        - ``name``: name of the recording in the store.
        - ``subject``: subject, or None if unknown.
        - ``ch_names``: list of channel names.
        - ``n_times``: number of samples per channel.
        - ``first_signal``: signal number of the first channel. The channels of all recordings are
          numbered consecutively, so channel ``c`` of a recording is signal ``first_signal + c``.
        - ``n_clipped``: number of clipped samples over all channels. These samples were outside the
          range that int16 represents.
        - ``corpus``: name of the corpus, or None.
        - ``split``: split of the corpus, such as "train", or None.
        """
        columns = dict(
            name=[recording.name for recording in self._recordings],
            subject=[recording.subject for recording in self._recordings],
            ch_names=[recording.ch_names for recording in self._recordings],
            n_times=[recording.n_times for recording in self._recordings],
            first_signal=self._first_signal,
            n_clipped=[sum(recording.clipped.values()) for recording in self._recordings],
            corpus=[recording.corpus for recording in self._recordings],
            split=[recording.split for recording in self._recordings],
        )
        texts = ("subject", "corpus", "split")
        columns |= {name: pd.Series(columns[name], dtype=object) for name in texts}
        return pd.DataFrame(columns)

    @property
    def preprocessing(self) -> Preprocessing:
        """Preprocessing of the stored signals. Unknown or differing entries are None."""
        return agreed([recording.known_preprocessing for recording in self._recordings])

    @property
    def n_bytes(self) -> int:
        """Size of the stored samples in bytes."""
        return sum(r.n_samples for r in self._recordings) * DTYPES[self.dtype].itemsize

    @property
    def subjects(self) -> list:
        """Known subjects, in the order of their first recordings."""
        return [name for name in dict.fromkeys(self.recordings["subject"]) if name is not None]

    @cached_property
    def checksum(self) -> str:
        """Checksum of all recordings and of the proportions of corpora: 16 hexadecimal digits."""
        # Includes the checksums of the stored samples, and the values that convert them to volts.
        lines = [f"{self.sfreq} {self.dtype}"]
        lines += [
            f"{r.name} {r.subject!r} {r.ch_names} {r.n_times} {r.checksum}"
            for r in self._recordings
        ]
        lines += [f"share of {name}: {share}" for name, share in sorted(self.shares.items())]
        content = "\n".join(lines).encode() + self._scale.tobytes() + self._offset.tobytes()
        return files.checksum_of(content)

    def batch(self, signals: np.ndarray, n_times: int, rng: np.random.Generator) -> np.ndarray:
        """Return a random crop (excerpt) of each signal. All starts are equally probable.

        Parameters
        ----------
        signals : array-like of int, shape (batch,)
            Signal numbers, from 0 to ``len(store) - 1``. A number may occur several times, to draw
            several crops of a signal.
        n_times : int
            Length of a crop in samples.
        rng : numpy.random.Generator
            Random generator that draws the starts of the crops.

        Returns
        -------
        ndarray of float32, shape (batch, n_times)
            Crops in volts.

        Raises
        ------
        IndexError
            If a signal does not exist.
        ValueError
            If a signal is shorter than a crop. The message names the recording.
        """
        checks.integer(1).check("n_times", n_times)
        checks.instance("a numpy.random.Generator", np.random.Generator).check("rng", rng)
        last_starts = self._length[self._check_signals(signals)] - n_times
        # crops raises the error if a signal is shorter than the crop.
        starts = rng.integers(0, np.maximum(last_starts, 0), endpoint=True)
        return self.crops(signals, starts, n_times)

    def crops(self, signals: np.ndarray, starts: np.ndarray, n_times: int) -> np.ndarray:
        """Return one crop (excerpt) of each signal, with a specified start.

        Parameters
        ----------
        signals, starts : array-like of int, shape (batch,)
            Signal numbers, from 0 to ``len(store) - 1``, and the first sample of each crop.
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
            If a crop extends past the start or end of its signal. The message names the recording.
        """
        signals, starts = self._check_signals(signals), np.asarray(starts)
        checks.integer(1).check("n_times", n_times)
        outside = (starts < 0) | (starts > self._length[signals] - n_times)
        if outside.any():
            i = int(outside.argmax())
            recording = self._recordings[self._recording[signals[i]]]
            raise ValueError(
                f"A crop of {n_times} samples that starts at sample {starts[i]} does not fit into "
                f"recording {recording.name} of {self.path}, which has {recording.n_times} "
                "samples. Use another start or a shorter crop."
            )
        firsts = self._first[signals] + starts
        return self._samples.crops(firsts, n_times, self._scale[signals], self._offset[signals])

    def _check_signals(self, signals: np.ndarray) -> np.ndarray:
        """Return signal numbers as an array, after checking that the signals exist."""
        signals = np.asarray(signals)
        is_vector = signals.ndim == 1 and signals.dtype.kind in "iu"
        if not is_vector or (signals < 0).any() or (signals >= len(self)).any():
            raise IndexError(
                f"signals must be integers from 0 to {len(self) - 1}, shape (batch,), got "
                f"{signals!r}."
            )
        return signals

    def select(self, subjects: Iterable | None = None, *, exclude: Iterable | None = None) -> Self:
        """Return a view of the store with the recordings of some subjects. No samples are copied.

        Parameters
        ----------
        subjects : iterable | None
            Subjects to keep. All spellings of a subject are recognized, such as "7" and "007" for
            7. If None, all subjects are kept.
        exclude : iterable | None
            Subjects to exclude; all spellings are recognized. If None, no subject is excluded.

        Returns
        -------
        SignalStore
            View of the store with the selected recordings. The original store is not changed.

        Raises
        ------
        ValueError
            If a subject is not in the store. If no recording remains. If ``exclude`` is passed, but
            the subject of a remaining recording is unknown, so that it may be an excluded subject.
        """
        recordings = list(self._recordings)
        if subjects is not None:
            keys = SubjectKeys(self._as_list(subjects))
            recordings = [r for r in recordings if r.subject is not None and r.subject in keys]
        # Exclude all spellings of a subject; otherwise, the subject would be used for training.
        if excluded := self._as_list(() if exclude is None else exclude):
            keys = SubjectKeys(excluded)
            recordings = [r for r in recordings if r.subject not in keys]
            if unknown := sum(recording.subject is None for recording in recordings):
                raise ValueError(
                    f"Subjects cannot be excluded: the subject of some recordings in {self.path} "
                    f"is unknown (number of recordings: {unknown}), so these recordings may belong "
                    "to an excluded subject. Create the store again, and specify the subject of "
                    "each file with the argument subject."
                )
        return self._view(recordings)

    def _view(self, recordings: list[StoredRecording]) -> Self:
        if not recordings:
            raise ValueError(
                f"No recording of {self.path} remains: all subjects were excluded, or are held "
                "out for validation and test. Exclude fewer subjects, or use another store."
            )
        return type(self)(self.path, self._index, self._samples, tuple(recordings))

    def without_held_out(self) -> Self:
        """Return a view of the store without validation and test subjects, for pretraining.

        If a store was created with labels, it also contains the validation and test subjects of its
        corpus. If any recording of a subject is in the split "valid" or "test", all recordings of
        the subject are excluded, and the number of excluded recordings is logged. Pretraining runs,
        and estimators that pretrain on a store, call this method.

        Returns
        -------
        SignalStore
            View of the store with the remaining recordings. If no subject is held out, this is the
            store itself.

        Raises
        ------
        ValueError
            If no recording remains.
        """
        held_out = [r for r in self._recordings if r.split in recipe.HELD_OUT]
        held_out_subjects = SubjectKeys(r.subject for r in held_out if r.subject is not None)
        others = [r for r in self._recordings if r.split not in recipe.HELD_OUT]
        included = [r for r in others if r.subject not in held_out_subjects]
        n = len(self._recordings)
        if len(included) == n:
            return self
        text = "%s: excluded %d of %d recordings that belong to validation or test subjects."
        log.warning(text, self.path, n - len(included), n)
        return self._view(included)

    def _as_list(self, subjects: Iterable) -> list:
        """Return subjects as a list, after checking that the store contains all of them."""
        if isinstance(subjects, str):
            raise TypeError(f"subjects must be a list of subjects, got the string {subjects!r}.")
        subjects, stored = list(subjects), SubjectKeys(self.subjects)
        if absent := sorted({str(s) for s in subjects if s not in stored}):
            raise ValueError(
                f"{self.path} contains no recordings of the subjects {', '.join(absent)}. "
                "Available subjects: "
                f"{checks.format_list(list(map(str, self.subjects))) or 'none'}."
            )
        return subjects

    def windows(self, n_times: int) -> Windows:
        """Cut all recordings into consecutive windows. Incomplete last windows are omitted.

        Parameters
        ----------
        n_times : int
            Length of a window in samples.

        Returns
        -------
        Windows
            Windows that can be passed to the estimators: float32 values in volts. The samples are
            only read when the windows are used.

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
                f"longest recording, {longest.name}, has {longest.n_times} samples. Decrease "
                "n_times."
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
        """Number of windows in ``windows.csv``, also of recordings that are not in this view."""
        return self._index.labels.get("n_windows", 0)

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names of the targets 0, 1, ...; empty if no recipe created the labels."""
        corpora = self._index.settings.get("corpora", {}).values()
        return tuple(next((corpus.get("classes", ()) for corpus in corpora), ()))

    def labeled_windows(self) -> BaseConcatDataset:
        """Return the stored labeled windows as a braindecode dataset.

        The windows, labels, descriptions and channel positions are those of the dataset or recipe
        from which the store was created, in the same order, but only for the stored channels: EEG
        channels that were not marked as bad. Use the dataset like any other dataset of windows: for
        ``fit``, for the protocols of :mod:`braindecode_pars.evaluation`, with ``split("split")`` or
        with ``as_sklearn``.

        Returns
        -------
        BaseConcatDataset of EEGWindowsDataset
            Labeled windows in volts. A window is read from the memory map when it is accessed;
            estimators read windows in batches. Subsets of the dataset, and copies in other
            processes, share the memory map.

        Raises
        ------
        ValueError
            If the store, or this view of the store, contains no labeled windows.

        Examples
        --------
        The store contains the same windows and labels as the dataset:

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
                f"{self.path} contains no labels of the selected recordings. Create the store "
                "again, from a dataset of labeled windows or with braindecode-pars store --labels."
            )
        return BaseConcatDataset(recording_windows)

    def to_zarr(self, path: str | Path) -> None:
        """Write the store to a folder in the Zarr format of braindecode.

        The folder contains a dataset of the labeled windows, or of the continuous recordings if the
        store has no labels. Nothing is uploaded. :meth:`create` can read the folder; if you upload
        the folder to the Hugging Face Hub as ``dataset.zarr``, braindecode can read it with
        ``pull_from_hub``. Samples (in volts, single precision), channels and their positions,
        descriptions, labels and window positions are the same as in the store. The preprocessing
        is not written, so it is unknown when the dataset is read.

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
            If the recordings have different channels, which the format does not support, or if a
            label is a string that would be read as a number or as a missing value, such as "1".

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
        """Yield each recording, with its signals as an MNE Raw object."""
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
            If samples were modified after they were stored. The message names the recordings.
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
                f"{self._samples.file} was modified after it was written: the samples of these "
                f"recordings do not match their checksums: {checks.format_list(altered, 5)}. "
                "Restore the file from another copy of the store, or create the store again."
            )
