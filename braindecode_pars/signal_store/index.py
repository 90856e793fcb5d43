"""Read and write the files of a store: recordings, labels of windows, and samples.

``store.json`` contains one line per recording and a checksum. ``windows.csv`` contains one row per
labeled window. ``samples.bin`` contains the samples of all recordings. :class:`StoredRaw` makes a
stored recording available as an MNE Raw object, from which labeled windows are created.
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


#: Data types of stored samples, little-endian in the file. Version 0.2.0 wrote float16.
DTYPES = {name: np.dtype(name).newbyteorder("<") for name in ("int16", "float16", "float32")}
#: Number of samples that are scaled at once, so that they fit into the cache of a CPU core.
_CACHED = 100_000


@dataclass(frozen=True)
class StoredRecording:
    """Metadata of one recording, and the position of its samples.

    Attributes
    ----------
    name : str
        Path relative to the stored folder, or ``recording-`` and a number.
    description : dict
        Numbers and strings that describe the recording, including ``subject`` if known.
    ch_names : list of str
        Names of the channels.
    n_times : int
        Length in samples.
    first_sample : int
        Position of the first sample in the flat file. The channels are stored one after another.
    scale, offset : list of float
        Scale and offset of each channel: ``value = offset + scale * stored``, in volts.
    checksum : str
        Checksum of the stored samples.
    source : dict
        State of the original recording, such as its size, to detect a later change.
    clipped : dict of str to int
        Number of clipped samples by channel name. Channels without clipped samples are omitted.
    positions : dict of str to list of float
        Known channel positions in meters in MNE's head coordinate frame. Only recordings with
        labels have positions.
    preprocessing : dict
        Known entries of the
        :class:`~braindecode_pars.windows.preprocessing.Preprocessing` of the stored signals.
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
        """Subject, with the corpus in front if the description has one; None if unknown."""
        subject = self.description.get("subject")
        return None if subject is None else subjects.in_corpus(self.corpus, subject)

    @property
    def corpus(self) -> str | None:
        """Name of the corpus; None if unknown."""
        return self.description.get("corpus")

    @property
    def split(self) -> str | None:
        """Split, such as "train"; None if unknown."""
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
        """The recording as JSON, without line breaks."""
        return json.dumps(asdict(self), allow_nan=False, default=files.plain)


@dataclass(eq=False)
class SampleFile:
    """Flat file of samples, mapped into memory by each process that reads it.

    The file is mapped on first access. The memory map is not pickled: each worker process maps the
    file again, with any start method, and all processes share one copy in the page cache.

    Parameters
    ----------
    file : Path
        Path of the file.
    dtype : "int16" | "float16" | "float32"
        Type of the stored samples.
    n_samples : int
        Number of samples to map. The file can be longer.
    """

    file: Path
    dtype: str
    n_samples: int

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "flat"}

    @cached_property
    def flat(self) -> np.ndarray:
        """All samples, shape (n_samples,), read-only."""
        mapped = np.memmap(self.file, DTYPES[self.dtype], "r", shape=(self.n_samples,))
        return mapped.view(np.ndarray)

    def crops(
        self, firsts: np.ndarray, n_times: int, scale: np.ndarray, offset: np.ndarray
    ) -> np.ndarray:
        """Return crops as float32 values in volts, shape (n_crops, n_times).

        Parameters
        ----------
        firsts : ndarray of int, shape (n_crops,)
            Position of the first sample of each crop in the file.
        n_times : int
            Length of a crop in samples.
        scale, offset : ndarray of float32, shape (n_crops,)
            Scale and offset of each crop.
        """
        # A view of all possible crops, shape (n_samples - n_times + 1, n_times). No sample is read.
        all_crops = sliding_window_view(self.flat, n_times)
        if self.dtype == "float32":
            return all_crops[firsts]
        # Read and scale in blocks that fit into the cache.
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
        Whether the creation of the store has finished.
    settings : dict
        Settings of preprocessing and storage, shared by all recordings of the store.
    sfreq : float | None
        Sampling rate in Hz; None while the store is empty.
    n_bytes, mtime_ns : int
        Size and modification time of ``samples.bin``.
    skipped : dict of str to str
        Reason why a recording was skipped, by recording name.
    shares : dict of str to float
        Proportion of each corpus in the pretraining data, by corpus name. Empty if not specified.
    labels : dict
        Number of labeled windows, type of the labels, and size and checksum of their table. Empty
        without labeled windows.
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

        Raises
        ------
        FileNotFoundError
            If the folder contains no index.
        ValueError
            If the index is damaged, was edited, or has another version.
        """
        file = folder / INDEX
        if not file.is_file():
            raise FileNotFoundError(
                f"{folder} is not a SignalStore: it contains no {INDEX}. To create a store from a "
                f"folder of recordings, use: braindecode-pars store {folder} STORE"
            )
        content = file.read_bytes()
        try:
            entries = files.parse_json(content)
            # Format and version first: another format may have no checksum.
            name, version = entries.get("format"), entries.get("version")
            if (name, version) != (FORMAT, VERSION):
                raise ValueError(
                    f"its format is {name!r} version {version}, but only {FORMAT!r} version "
                    f"{VERSION} is supported; create the store again"
                )
            # The checksum covers everything before its own entry, which is the last.
            if entries.get("checksum") != files.checksum_of(content.rpartition(_CHECKSUM)[0]):
                raise ValueError("its checksum does not match its content, so it was altered")
        except ValueError as error:
            raise ValueError(f"{file} is damaged or not the index of a store: {error}.") from error
        entries["recordings"] = [StoredRecording(**entry) for entry in entries["recordings"]]
        return cls(**{f.name: entries[f.name] for f in fields(cls)})

    def write(self, folder: Path) -> None:
        """Replace the index on disk atomically.

        Raises
        ------
        OSError
            If the index cannot be written. The previous index remains unchanged.
        """
        # One line for each recording, so that the file stays readable.
        entries = {"format": FORMAT, "version": VERSION, **vars(self)}
        del entries["recordings"]
        lines = ",\n".join(recording.line for recording in self.recordings)
        head = json.dumps(entries, indent=1, allow_nan=False, default=files.plain)
        head = head.removesuffix("\n}")
        body = f'{head},\n "recordings": [\n{lines}\n ],\n '.encode()
        end = f'"{files.checksum_of(body)}"\n}}\n'.encode()
        files.replace_file(folder / INDEX, body + _CHECKSUM + end)


WINDOWS = "windows.csv"
COLUMNS = b"recording,onset,duration,label,split,fold,i_window_in_trial\n"  # as events in BIDS
#: Type of the labels -> function that converts the text of a label to this type.
_KINDS: dict[str, Callable[[str], Any]] = dict(bool="True".__eq__, int=int, float=float, str=str)


def rows_of_labels(
    name: str, windows: pd.DataFrame, description: Mapping[str, Any], sfreq: float
) -> bytes:
    """Return the rows of ``windows.csv`` for one recording.

    Parameters
    ----------
    name : str
        Name in the store: of the recording, or of one of its segments.
    windows : DataFrame
        Windows of the recording, as returned by :func:`label_rows`.
    description : mapping
        Description of the recording, with ``split`` and ``fold`` if available.
    sfreq : float
        Sampling rate of the store in Hz.
    """
    start, stop = windows["i_start_in_trial"], windows["i_stop_in_trial"]
    columns = dict(
        recording=name,
        onset=start / sfreq,
        duration=(stop - start) / sfreq,
        label=windows["target"],
        # Split and fold are for the reader of the table.
        split=description.get("split", ""),
        fold=description.get("fold", ""),
        i_window_in_trial=windows["i_window_in_trial"],
    )
    rows = pd.DataFrame(columns).to_csv(header=False, index=False, lineterminator="\n")
    return rows.encode()


def check_labels(folder: Path, described: Mapping[str, Any]) -> bytes:
    """Return the content of ``windows.csv`` after comparing it with the checksum in the index.

    Raises
    ------
    FileNotFoundError
        If the table is missing.
    ValueError
        If the table was altered.
    """
    if not described:
        return b""
    table = folder / WINDOWS
    content = table.read_bytes()[: described["n_bytes"]]  # another process may be extending it
    if files.checksum_of(content) != described["checksum"]:
        raise ValueError(
            f"{table} is damaged or was edited: its checksum does not match the index. Restore "
            "it from another copy of the store, or create the store again."
        )
    return content


def read_labels(
    folder: Path, described: Mapping[str, Any], sfreq: float
) -> dict[str, pd.DataFrame]:
    """Return the labeled windows of a store as one table per recording, by recording name.

    Raises
    ------
    FileNotFoundError, ValueError
        See :func:`check_labels`.
    """
    content = check_labels(folder, described)
    if not content:
        return {}
    text = dict(recording=str, label=str, split=str, fold=str)
    # The csv module quotes a text with "\n", but not one with a lone "\r".
    table = pd.read_csv(io.BytesIO(content), dtype=text, keep_default_na=False, lineterminator="\n")
    start = np.rint(table["onset"].to_numpy(float) * sfreq).astype(int)
    length = np.rint(table["duration"].to_numpy(float) * sfreq).astype(int)
    labels = pd.DataFrame(
        dict(
            i_window_in_trial=table["i_window_in_trial"],
            i_start_in_trial=start,
            i_stop_in_trial=start + length,
            target=list(map(_KINDS[described["kind"]], table["label"])),
        )
    )
    groups = labels.groupby(table["recording"].to_numpy(), sort=False)
    return {str(name): group.reset_index(drop=True) for name, group in groups}


#: Target of an unlabeled window, as in the recipes.
UNLABELED = -1


def label_rows(
    windows: Any, transforms: Sequence[Callable[[Any], Any]] = ()
) -> pd.DataFrame | None:
    """Return the windows and labels of one recording of a braindecode dataset.

    Parameters
    ----------
    windows : Any
        One recording of a dataset.
    transforms : sequence of callable
        Functions that are applied to each label in this order, such as braindecode's
        ``target_transform``.

    Returns
    -------
    DataFrame | None
        Columns ``i_window_in_trial i_start_in_trial i_stop_in_trial target`` of the metadata, with
        labels as Python numbers or strings. None for a continuous recording and for a recording
        without windows.

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
                f"window {i} has the label {label!r}; labels must be numbers or strings."
            )
    names = ["i_window_in_trial", "i_start_in_trial", "i_stop_in_trial"]
    table = pd.DataFrame(np.asarray(windows.crop_inds, int).reshape(-1, 3), columns=names)
    return table.assign(target=pd.Series(labels, dtype=object))


def labels_of_segments(
    labels: pd.DataFrame, segments: list[tuple[int, int]], sfreq: float
) -> list[pd.DataFrame]:
    """Return the windows of each segment between gaps, with positions in samples of the segment.

    Parameters
    ----------
    labels : DataFrame
        Windows of a recording, as returned by :func:`label_rows`.
    segments : list of (int, int)
        First sample of each segment, and the sample after its last sample.
    sfreq : float
        Sampling rate in Hz, for the message.

    Raises
    ------
    ValueError
        If a window is not within a single segment. The message contains the window.
    """
    start, stop = labels["i_start_in_trial"], labels["i_stop_in_trial"]
    inside = [(start >= first) & (stop <= last) for first, last in segments]
    outside = ~np.any(inside, axis=0)
    if outside.any():
        i = int(outside.argmax())
        end = segments[-1][1] if segments else 0
        raise ValueError(
            f"window {i} (label {labels['target'][i]}), from {start[i] / sfreq:g} s to "
            f"{stop[i] / sfreq:g} s, exceeds the recording of {end / sfreq:g} s or contains a gap."
        )
    segment_labels = [labels[mask].copy() for mask in inside]
    for table, (first, _) in zip(segment_labels, segments, strict=True):
        table[["i_start_in_trial", "i_stop_in_trial"]] -= first
    return segment_labels


def resampled_labels(
    labels: pd.DataFrame, before: float, after: float, n_times: int
) -> pd.DataFrame:
    """Return the windows after resampling from one rate to another, to ``n_times`` samples."""
    if before == after:
        return labels
    start, stop = (labels[name].to_numpy() for name in ("i_start_in_trial", "i_stop_in_trial"))
    length = np.rint((stop - start) * after / before).astype(int)
    # Rounding may move the last window beyond the last sample.
    start = np.minimum(np.rint(start * after / before).astype(int), n_times - length)
    return labels.assign(i_start_in_trial=start, i_stop_in_trial=start + length)


@lru_cache(maxsize=256)
def info_of(ch_names: tuple[str, ...], sfreq: float) -> mne.Info:
    """Return the measurement info of stored channels, without positions.

    A channel of type "eeg" whose name is typical of another signal type is never stored. A stored
    channel with such a name therefore had another type, such as "seeg".
    """
    kinds = ["seeg" if channel_names.is_other_kind(name) else "eeg" for name in ch_names]
    return mne.create_info(list(ch_names), sfreq, kinds)


class StoredRaw(mne.io.BaseRaw):
    """MNE Raw object of a stored recording, whose samples are read on access.

    While the object is unmodified, estimators read its windows from the store in batches. A pickle
    of the object contains the path of the store, but no samples.

    Parameters
    ----------
    recording : StoredRecording
        The recording.
    crops : callable
        Method ``crops`` of the store.
    first_signal : int
        Signal number of the first channel. The other channels follow.
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
        """Read samples into ``data``; MNE requests some channels, or projections of channels."""
        extras = self._raw_extras[fi]
        signals = extras["first_signal"] + np.arange(extras["orig_nchan"])[idx]
        samples = extras["crops"](signals, np.full(len(signals), start), stop - start)
        data[:] = samples if mult is None else mult @ samples

    @property
    def _state(self) -> tuple:
        """Properties that change if samples or channels differ from the stored recording."""
        info = self.info
        is_projected = any(projection["active"] for projection in info["projs"])
        channels = [(ch["ch_name"], ch["kind"], ch["loc"].tobytes()) for ch in info["chs"]]
        times = self.first_samp, self.n_times
        return self.preload, times, tuple(info["bads"]), is_projected, channels

    def stored_row(self, is_changed: bool) -> dict[str, Any]:
        """Return the entries of a row of ``Windows.recordings`` that refer to the store.

        The preprocessing of modified windows is unknown, and they are not read from the store.
        """
        if is_changed or self._state != self._first_state:
            return dict(preprocessing=Preprocessing())
        extras = self._raw_extras[0]
        return dict(
            reader=SignalReader(extras["crops"]),
            base=extras["first_signal"],
            preprocessing=self._preprocessing,
        )
