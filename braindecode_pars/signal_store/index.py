"""Read and write the three files of a signal store: index, labels of windows, and samples.

The index, ``store.json``, contains one line per recording, and a checksum of the index.
``windows.csv`` contains one row per labeled window. ``samples.bin`` contains the samples of all
recordings. :class:`StoredRaw` makes a stored recording available as an MNE Raw object, from which
labeled windows are created.
"""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Self

import mne
import numpy as np
import pandas as pd
from braindecode.datasets import EEGWindowsDataset
from numpy.lib.stride_tricks import sliding_window_view

from braindecode_pars._common import channel_names, files, subjects
from braindecode_pars.windows.preprocessing import Preprocessing
from braindecode_pars.windows.table import ReadCrops, SignalReader

INDEX = "store.json"
SAMPLES = "samples.bin"
FORMAT = "braindecode_pars SignalStore"
VERSION = 5
_CHECKSUM = b'"checksum": '


#: Data types of stored samples, little-endian in the file. float16 occurs only in stores that
#: version 0.2.0 of the package wrote.
DTYPES = {name: np.dtype(name).newbyteorder("<") for name in ("int16", "float16", "float32")}
#: Number of samples that are converted to volts at once. They fit into the cache of a CPU core.
_CACHED = 100_000


@dataclass(frozen=True)
class StoredRecording:
    """Metadata of one stored recording, and the position of its samples in ``samples.bin``.

    Attributes
    ----------
    name : str
        Name of the recording in the store: the path of its file relative to the folder from which
        the store was created, or ``recording-`` and a number for a recording of a dataset.
    description : dict
        Numbers and strings that describe the recording, including ``subject`` if known.
    ch_names : list of str
        Names of the channels.
    n_times : int
        Number of samples per channel.
    first_sample : int
        Position in ``samples.bin``, in samples, of the first sample of the first channel. The
        channels are stored one after another.
    scale, offset : list of float
        Scale and offset of each channel, which convert the stored numbers to volts:
        ``volts = offset + scale * stored``.
    checksum : str
        Checksum of the stored samples.
    source : dict
        Properties of the original file or recording, such as its size in bytes. They reveal whether
        the original was changed after it was stored.
    clipped : dict of str to int
        Maps each channel with clipped samples to the number of these samples.
    positions : dict of str to list of float
        Maps each channel with a known position to this position, in meters, in MNE's head
        coordinate frame. Positions are only stored for recordings with labels.
    preprocessing : dict
        Preprocessing of the stored signals: the known entries of a
        :class:`~braindecode_pars.windows.preprocessing.Preprocessing`.
    """

    name: str
    description: Mapping[str, Any]
    ch_names: list[str]
    n_times: int
    first_sample: int
    scale: list[float]
    offset: list[float]
    checksum: str
    source: Mapping[str, Any]
    clipped: Mapping[str, int] = field(default_factory=dict)
    positions: Mapping[str, list[float]] = field(default_factory=dict)
    preprocessing: Mapping[str, Any] = field(default_factory=dict)

    @property
    def subject(self) -> Any:
        """Subject, with the corpus if it is known, as in "tueg:aaaaaaaa". None if unknown."""
        subject = self.description.get("subject")
        return None if subject is None else subjects.in_corpus(self.corpus, subject)

    @property
    def corpus(self) -> str | None:
        """Name of the corpus; None if unknown."""
        return self.description.get("corpus")

    @property
    def split(self) -> str | None:
        """Split of the corpus that contains the recording, such as "train"; None if unknown."""
        return self.description.get("split")

    @cached_property
    def known_preprocessing(self) -> Preprocessing:
        """Preprocessing of the stored signals; unknown entries are None."""
        return Preprocessing.of(self.preprocessing)

    @property
    def n_samples(self) -> int:
        return len(self.ch_names) * self.n_times

    @cached_property
    def line(self) -> str:
        """Line of ``store.json`` for this recording: its attributes as JSON."""
        return json.dumps(asdict(self), allow_nan=False, default=files.plain)


@dataclass(eq=False)
class SampleFile:
    """Memory-mapped sample file (``samples.bin``). Each process creates its own memory map.

    The file is mapped on first access. The memory map is not pickled: each worker process maps the
    file again, regardless of how the process was started (fork or spawn). All processes share one
    copy of the file in the page cache of the operating system.

    Parameters
    ----------
    file : Path
        Path of the file.
    dtype : "int16" | "float16" | "float32"
        Data type of the stored samples.
    n_samples : int
        Number of samples to map into memory. The file may contain more samples, which are ignored.
    """

    file: Path
    dtype: str
    n_samples: int

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "flat"}

    @cached_property
    def flat(self) -> np.ndarray:
        """All stored samples as a read-only array, shape (n_samples,)."""
        mapped = np.memmap(self.file, DTYPES[self.dtype], "r", shape=(self.n_samples,))
        return mapped.view(np.ndarray)

    def crops(
        self, firsts: np.ndarray, n_times: int, scale: np.ndarray, offset: np.ndarray
    ) -> np.ndarray:
        """Read crops (excerpts) of the file as float32 values in volts, shape (n_crops, n_times).

        Parameters
        ----------
        firsts : ndarray of int, shape (n_crops,)
            Position in the file of the first sample of each crop, in samples.
        n_times : int
            Length of a crop in samples.
        scale, offset : ndarray of float32, shape (n_crops,)
            Scale and offset of the channel of each crop, which convert stored numbers to volts.

        Returns
        -------
        ndarray of float32, shape (n_crops, n_times)
            Crops in volts.
        """
        # A view of all possible crops, shape (n_samples - n_times + 1, n_times). Creating the view
        # does not read any sample.
        all_crops = sliding_window_view(self.flat, n_times)
        if self.dtype == "float32":
            return all_crops[firsts]
        # Read and scale the crops in blocks that fit into the cache of a CPU core.
        values = np.empty((len(firsts), n_times), np.float32)
        n_crops = max(1, _CACHED // n_times)
        for start in range(0, len(firsts), n_crops):
            rows = slice(start, start + n_crops)
            block = values[rows]
            block[...] = all_crops[firsts[rows]]
            block *= scale[rows, None]
            block += offset[rows, None]
        return values


def is_store(folder: str | Path) -> bool:
    """Whether a folder contains a store, complete or incomplete."""
    return (Path(folder).expanduser() / INDEX).exists()


@dataclass
class Index:
    """Content of ``store.json``.

    Attributes
    ----------
    complete : bool
        Whether the store is complete. False while it is being created or after an interruption.
    settings : dict
        Settings of preprocessing and storage. They are the same for all recordings of the store.
    sfreq : float | None
        Sampling rate in Hz; None while the store is empty.
    n_bytes, mtime_ns : int
        Size in bytes and modification time in nanoseconds of ``samples.bin``.
    skipped : dict of str to str
        Maps the name of each skipped recording to the reason.
    shares : dict of str to float
        Maps the name of each corpus to its relative proportion in the training data of a
        pretraining run. Empty if no proportions were specified.
    labels : dict
        Properties of ``windows.csv``: number of windows, type of the labels, size in bytes and
        checksum. Empty if the store has no labels.
    recordings : list of StoredRecording
        Metadata of the stored recordings.
    """

    complete: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    sfreq: float | None = None
    n_bytes: int = 0
    mtime_ns: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)
    labels: dict[str, Any] = field(default_factory=dict)
    recordings: list[StoredRecording] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the index of a store.

        Returns
        -------
        Index
            Content of ``store.json``.

        Raises
        ------
        FileNotFoundError
            If the folder contains no ``store.json``.
        ValueError
            If ``store.json`` is damaged, was edited, or has an unsupported version.
        """
        file = folder / INDEX
        if not file.is_file():
            raise FileNotFoundError(
                f"{folder} is not a SignalStore: it contains no {INDEX}. If it is a folder of "
                "recordings, create a store from it (STORE is a new folder): braindecode-pars "
                f"store {folder} STORE"
            )
        content = file.read_bytes()
        try:
            entries = files.parse_json(content)
            # Check format and version before the checksum, which other formats may not have.
            name, version = entries.get("format"), entries.get("version")
            if (name, version) != (FORMAT, VERSION):
                raise ValueError(
                    f"the format of the file is {name!r}, version {version}, but only "
                    f"{FORMAT!r}, version {VERSION}, is supported"
                )
            # The checksum is the last entry. It covers everything before this entry.
            if entries.get("checksum") != files.checksum_of(content.rpartition(_CHECKSUM)[0]):
                raise ValueError(
                    "the file does not match its checksum, so it was modified after it was written"
                )
        except ValueError as error:
            raise ValueError(
                f"{file} cannot be used as the index of a store: {error}. Restore the file from "
                "another copy of the store, or create the store again in a new folder."
            ) from error
        entries["recordings"] = [StoredRecording(**entry) for entry in entries["recordings"]]
        return cls(**{f.name: entries[f.name] for f in fields(cls)})

    def write(self, folder: Path) -> None:
        """Write ``store.json``. An existing file is replaced atomically.

        Raises
        ------
        OSError
            If the file cannot be written. The previous file is not changed.
        """
        # One line for each recording, so that the file can be read by humans.
        entries = {"format": FORMAT, "version": VERSION, **vars(self)}
        del entries["recordings"]
        lines = ",\n".join(recording.line for recording in self.recordings)
        head = json.dumps(entries, indent=1, allow_nan=False, default=files.plain)
        head = head.removesuffix("\n}")
        body = f'{head},\n "recordings": [\n{lines}\n ],\n '.encode()
        end = f'"{files.checksum_of(body)}"\n}}\n'.encode()
        files.replace_file(folder / INDEX, body + _CHECKSUM + end)


WINDOWS = "windows.csv"
#: Header of ``windows.csv``. Onset and duration are in seconds, as in the events files of BIDS.
COLUMNS = b"recording,onset,duration,label,split,fold,i_window_in_trial\n"
#: Type of the labels -> function that converts the text of a label to this type.
_KINDS: dict[str, Callable[[str], Any]] = dict(bool="True".__eq__, int=int, float=float, str=str)


def rows_of_labels(
    name: str, windows: pd.DataFrame, description: Mapping[str, Any], sfreq: float
) -> bytes:
    """Return the rows of ``windows.csv`` for one recording, encoded as bytes.

    Parameters
    ----------
    name : str
        Name of the recording in the store, or of a segment of the recording.
    windows : DataFrame
        Windows of the recording or segment, as returned by :func:`label_rows`.
    description : mapping
        Description of the recording. The entries ``split`` and ``fold`` are written if available.
    sfreq : float
        Sampling rate of the store in Hz.
    """
    start, stop = windows["i_start_in_trial"], windows["i_stop_in_trial"]
    columns = dict(
        recording=name,
        onset=start / sfreq,
        duration=(stop - start) / sfreq,
        label=windows["target"],
        # The package does not read split and fold; they are written for users of the table.
        split=description.get("split", ""),
        fold=description.get("fold", ""),
        i_window_in_trial=windows["i_window_in_trial"],
    )
    rows = pd.DataFrame(columns).to_csv(header=False, index=False, lineterminator="\n")
    return rows.encode()


def check_labels(folder: Path, described: Mapping[str, Any]) -> bytes:
    """Return the content of ``windows.csv``, after comparing it with the checksum in the index.

    Parameters
    ----------
    folder : Path
        Folder of the store.
    described : mapping
        Properties of ``windows.csv``, see the attribute ``labels`` of :class:`Index`.

    Returns
    -------
    bytes
        Content of the file; empty if the store has no labels.

    Raises
    ------
    FileNotFoundError
        If ``windows.csv`` is missing.
    ValueError
        If ``windows.csv`` was modified after it was written.
    """
    if not described:
        return b""
    table = folder / WINDOWS
    content = table.read_bytes()[: described["n_bytes"]]  # another process may be extending it
    if files.checksum_of(content) != described["checksum"]:
        raise ValueError(
            f"{table} does not match the checksum in {INDEX}: it was modified after it was "
            "written. Restore the file from another copy of the store, or create the store again."
        )
    return content


def read_labels(
    folder: Path, described: Mapping[str, Any], sfreq: float
) -> dict[str, pd.DataFrame]:
    """Return a dict that maps each recording name to the table of its labeled windows.

    Parameters
    ----------
    folder : Path
        Folder of the store.
    described : mapping
        Properties of ``windows.csv``, see the attribute ``labels`` of :class:`Index`.
    sfreq : float
        Sampling rate of the store in Hz.

    Returns
    -------
    dict of str to DataFrame
        Labeled windows of each recording, in the format of :func:`label_rows`; empty if the store
        has no labels.

    Raises
    ------
    FileNotFoundError, ValueError
        See :func:`check_labels`.
    """
    content = check_labels(folder, described)
    if not content:
        return {}
    text = dict(recording=str, label=str, split=str, fold=str)
    # A label may contain "\r", which is not quoted in the file, so only "\n" ends a line.
    table = pd.read_csv(io.BytesIO(content), dtype=text, keep_default_na=False, lineterminator="\n")
    start = np.rint(table["onset"].to_numpy(float) * sfreq).astype(int)
    length = np.rint(table["duration"].to_numpy(float) * sfreq).astype(int)
    labels = table[["i_window_in_trial"]].assign(
        i_start_in_trial=start,
        i_stop_in_trial=start + length,
        target=list(map(_KINDS[described["kind"]], table["label"])),
    )
    groups = labels.groupby(table["recording"].to_numpy(), sort=False)
    return {str(name): group.reset_index(drop=True) for name, group in groups}


#: Target of an unlabeled window, as in datasets that recipes load.
UNLABELED = -1


def label_rows(
    windows: Any, transforms: Sequence[Callable[[Any], Any]] = ()
) -> pd.DataFrame | None:
    """Return a table of the windows and labels of one recording of a braindecode dataset.

    Parameters
    ----------
    windows : Any
        One recording of a dataset (an element of ``dataset.datasets``).
    transforms : sequence of callable
        Functions, such as braindecode's ``target_transform``, that are applied to each label one
        after the other, in this order.

    Returns
    -------
    DataFrame | None
        Table with one row per window and the columns ``i_window_in_trial``, ``i_start_in_trial``
        and ``i_stop_in_trial`` of the metadata of braindecode, and ``target``, the label as a
        Python number or string. None for a continuous recording and for a recording without
        windows.

    Raises
    ------
    ValueError
        If a label is missing, or is neither a number nor a string.
    """
    if not isinstance(windows, EEGWindowsDataset) or windows.targets_from != "metadata":
        return None
    targets = windows.y
    for transform in transforms:
        targets = [transform(target) for target in targets]
    labels = [t.item() if isinstance(t, np.generic) else t for t in targets]
    if not labels:
        return None
    for i, label in enumerate(labels):
        if not isinstance(label, bool | int | float | str) or label != label:
            raise ValueError(
                f"labels must be numbers or strings, got {label!r} (window {i}). Correct the label."
            )
    names = ["i_window_in_trial", "i_start_in_trial", "i_stop_in_trial"]
    table = pd.DataFrame(np.asarray(windows.crop_inds, int).reshape(-1, 3), columns=names)
    return table.assign(target=pd.Series(labels, dtype=object))


def labels_of_segments(
    labels: pd.DataFrame, segments: list[tuple[int, int]], sfreq: float
) -> list[pd.DataFrame]:
    """Divide the windows of a recording into one table per segment between gaps.

    Window positions are converted to samples from the start of the segment.

    Parameters
    ----------
    labels : DataFrame
        Windows of a recording, as returned by :func:`label_rows`.
    segments : list of (int, int)
        Start and end of each segment in samples. The end is the sample after the last sample.
    sfreq : float
        Sampling rate in Hz, for the error message.

    Returns
    -------
    list of DataFrame
        One table per segment. Tables of segments without windows are empty.

    Raises
    ------
    ValueError
        If a window is not within a single segment. The message names the window.
    """
    start, stop = labels["i_start_in_trial"], labels["i_stop_in_trial"]
    inside = [(start >= first) & (stop <= last) for first, last in segments]
    outside = ~np.any(inside, axis=0)
    if outside.any():
        i = int(outside.argmax())
        end = segments[-1][1] if segments else 0
        raise ValueError(
            f"window {i} (label {labels['target'][i]}) extends from {start[i] / sfreq:g} s to "
            f"{stop[i] / sfreq:g} s, which includes a gap of the recording or times after its end "
            f"({end / sfreq:g} s). Remove this window."
        )
    segment_labels = [labels[mask].copy() for mask in inside]
    for table, (first, _) in zip(segment_labels, segments, strict=True):
        table[["i_start_in_trial", "i_stop_in_trial"]] -= first
    return segment_labels


def resampled_labels(
    labels: pd.DataFrame, before: float, after: float, n_times: int
) -> pd.DataFrame:
    """Convert the window positions in a table to a new sampling rate.

    ``before`` and ``after`` are the old and the new sampling rate in Hz. ``n_times`` is the length
    of the resampled recording in samples.
    """
    if before == after:
        return labels
    start, stop = (labels[name].to_numpy() for name in ("i_start_in_trial", "i_stop_in_trial"))
    length = np.rint((stop - start) * after / before).astype(int)
    # Rounding could move the end of the last window past the last sample.
    start = np.minimum(np.rint(start * after / before).astype(int), n_times - length)
    return labels.assign(i_start_in_trial=start, i_stop_in_trial=start + length)


@lru_cache(maxsize=256)
def info_of(ch_names: tuple[str, ...], sfreq: float) -> mne.Info:
    """Return MNE's measurement info for stored channels, without positions.

    The store contains no channel types, so the types are derived from the names. A channel whose
    name is typical of another signal, such as "EOG1", gets the type "seeg", because a channel of
    type "eeg" with such a name would not have been stored. All other channels get the type "eeg".

    Parameters
    ----------
    ch_names : tuple of str
        Names of the stored channels.
    sfreq : float
        Sampling rate in Hz.
    """
    kinds = ["seeg" if channel_names.is_other_kind(name) else "eeg" for name in ch_names]
    return mne.create_info(list(ch_names), sfreq, kinds)


class StoredRaw(mne.io.BaseRaw):
    """MNE Raw object of a stored recording. Samples are read from the store on access.

    As long as the object is not modified, estimators read the windows of the recording from the
    store in batches, which is faster. A pickle of the object contains the path of the store, but no
    samples.

    Parameters
    ----------
    recording : StoredRecording
        Metadata of the recording.
    crops : callable
        Method ``crops`` of the store, which reads samples.
    first_signal : int
        Number of the first channel among all signals of the store. The remaining channels are
        numbered consecutively after it.
    sfreq : float
        Sampling rate in Hz.
    """

    def __init__(
        self, recording: StoredRecording, crops: ReadCrops, first_signal: int, sfreq: float
    ):
        info = info_of(tuple(recording.ch_names), sfreq).copy()
        for ch in info["chs"]:
            ch["loc"][:3] = recording.positions.get(ch["ch_name"], np.nan)
        super().__init__(
            info,
            last_samps=[recording.n_times - 1],
            filenames=[None],
            raw_extras=[dict(crops=crops, first_signal=first_signal)],
            orig_format="single",
            verbose="error",
        )
        self._preprocessing = recording.known_preprocessing
        self._first_state = self._state

    def _read_segment_file(
        self,
        data: np.ndarray,
        idx: slice | np.ndarray,
        fi: int,
        start: int,
        stop: int,
        cals: np.ndarray,
        mult: np.ndarray | None,
    ) -> None:
        """Read the samples that MNE requests (channels, or projections of them) into ``data``."""
        extras = self._raw_extras[fi]
        signals = extras["first_signal"] + np.arange(extras["orig_nchan"])[idx]
        samples = extras["crops"](signals, np.full(len(signals), start), stop - start)
        data[:] = samples if mult is None else mult @ samples

    @property
    def _state(self) -> tuple:
        """Properties of the object that change when its samples or channels are modified."""
        info = self.info
        is_projected = any(projection["active"] for projection in info["projs"])
        channels = [(ch["ch_name"], ch["kind"], ch["loc"].tobytes()) for ch in info["chs"]]
        times = self.first_samp, self.n_times
        return self.preload, times, tuple(info["bads"]), is_projected, channels

    def stored_row(self, is_changed: bool) -> dict[str, Any]:
        """Return the entries of this recording in the table ``Windows.recordings``.

        With these entries, the windows of the recording are read from the store in batches.

        Parameters
        ----------
        is_changed : bool
            Whether the windows differ from the stored signals, for example because of a transform.

        Returns
        -------
        dict
            Reader, index of the first signal in the store, and preprocessing. If ``is_changed`` is
            True, or if this object was modified, the windows cannot be read from the store; the
            dict then contains only the preprocessing, which is unknown.
        """
        if is_changed or self._state != self._first_state:
            return dict(preprocessing=Preprocessing())
        extras = self._raw_extras[0]
        return dict(
            reader=SignalReader(extras["crops"]),
            base=extras["first_signal"],
            preprocessing=self._preprocessing,
        )
