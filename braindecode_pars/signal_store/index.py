"""Metadata of a store: its recordings in one JSON file with a checksum, its labels in a table.

``windows.csv`` has a row for each labelled window.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from braindecode.datasets import EEGWindowsDataset

from braindecode_pars._common.files import checksum_of, parse_json, plain, replace_file
from braindecode_pars._common.subjects import in_corpus
from braindecode_pars.recordings.preprocessing import Preprocessing

INDEX = "store.json"
SAMPLES = "samples.bin"
FORMAT = "braindecode_pars SignalStore"
VERSION = 5
#: Versions that can be read. Stores of version 1 contain no count of clipped samples, those of
#: versions 1 and 2 no shares of corpora, those before version 4 no labels, and those before version
#: 5 no preprocessing.
READABLE = (1, 2, 3, 4, 5)
_CHECKSUM = b'"checksum": '


@dataclass(frozen=True)
class StoredRecording:
    """Metadata of one recording, and the position of its samples.

    Attributes
    ----------
    name : str
        Path relative to the folder that was stored, or ``recording-`` and a number.
    description : dict
        Numbers and strings that describe the recording, including ``subject`` if it is known.
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
        Number of clipped samples, by name of the channel; channels without any are left out.
    positions : dict of str to list of float
        Position of the channels in metres in MNE's head frame, where known. Only in recordings with
        labels.
    preprocessing : dict
        Known entries of the
        :class:`~braindecode_pars.recordings.preprocessing.Preprocessing` of the stored signals.
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
        return None if subject is None else in_corpus(self.description.get("corpus"), subject)

    @property
    def corpus(self) -> str | None:
        return self.description.get("corpus")

    @property
    def split(self) -> str | None:
        return self.description.get("split")

    @cached_property
    def prepared(self) -> Preprocessing:
        """Preprocessing of the stored signals, as far as it is known."""
        return Preprocessing.of(self.preprocessing)

    @property
    def n_samples(self) -> int:
        return len(self.ch_names) * self.n_times

    @cached_property
    def line(self) -> str:
        """This recording as JSON, without line breaks."""
        entries = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return json.dumps(entries, allow_nan=False, default=plain)


@dataclass
class Index:
    """Content of ``store.json``.

    Attributes
    ----------
    settings : dict
        Settings of preparation and storage, the same for all recordings of the store.
    sfreq : float | None
        Sampling rate in Hz; None while the store is empty.
    complete : bool
        Whether the creation of the store has finished.
    n_bytes, mtime_ns : int
        Size and modification time of the flat file.
    skipped : dict of str to str
        Reason why a recording was skipped, by name of the recording.
    recordings : list of StoredRecording
        Metadata of the stored recordings.
    shares : dict of str to float
        Share of each corpus in the examples of pretraining, by name; empty if there are none.
    left_out : list
        People whom the corpora exclude, or hold out for validation and test.
    labels : dict
        Number of labelled windows, type of the labels, and size and checksum of their table; empty
        if there are none.
    """

    settings: dict[str, Any]
    sfreq: float | None = None
    complete: bool = False
    n_bytes: int = 0
    mtime_ns: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    recordings: list[StoredRecording] = field(default_factory=list)
    shares: dict[str, float] = field(default_factory=dict)
    left_out: list[Any] = field(default_factory=list)
    labels: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Index:
        """Read the index of a store.

        Raises
        ------
        FileNotFoundError
            When the folder contains no index.
        ValueError
            When the index is damaged, was edited, or has another version.
        """
        # Read the file.
        file = folder / INDEX
        try:
            content = file.read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            raise FileNotFoundError(
                f"{folder} is not a SignalStore: it contains no {INDEX}. Create a store with "
                "SignalStore.create."
            ) from error
        # Format and version first: another format may have no checksum.
        try:
            entries = parse_json(content)
            if entries["format"] != FORMAT:
                raise ValueError(f"its format is {entries['format']!r}, not {FORMAT!r}")
            version = entries["version"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{file} is damaged or not the index of a store: {error}.") from error
        if version not in READABLE:
            raise ValueError(
                f"{file} has version {version}, but this package reads versions "
                f"{', '.join(map(str, READABLE))}; update the package, or create the store "
                "again."
            )
        # The checksum covers everything before its own entry, which is the last.
        body, _, _ = content.rpartition(_CHECKSUM)
        if entries.get("checksum") != checksum_of(body):
            raise ValueError(
                f"{file} was altered: its content does not match its checksum. Restore the "
                "original, or create the store again."
            )
        recordings = [StoredRecording(**entry) for entry in entries.pop("recordings")]
        entries = {"shares": {}, "left_out": [], "labels": {}, **entries}  # of earlier versions
        header = {name: entries[name] for name in _HEADER}
        return cls(**header, recordings=recordings)

    def write(self, folder: Path) -> None:
        """Replace the index on disk, completely or not at all.

        Raises
        ------
        OSError
            When the index cannot be written; the old index is unchanged.
        """
        # One line for each recording, so that the file stays readable.
        entries = {"format": FORMAT, "version": VERSION}
        entries |= {name: getattr(self, name) for name in _HEADER}
        lines = ",\n".join(recording.line for recording in self.recordings)
        head = json.dumps(entries, indent=1, allow_nan=False, default=plain).removesuffix("\n}")
        body = f'{head},\n "recordings": [\n{lines}\n ],\n '.encode()
        replace_file(folder / INDEX, body + _CHECKSUM + f'"{checksum_of(body)}"\n}}\n'.encode())


_HEADER = (
    *("complete", "settings", "sfreq", "n_bytes", "mtime_ns"),
    *("skipped", "shares", "left_out", "labels"),
)


WINDOWS = "windows.csv"
#: Onset and duration are in seconds, as in the events of BIDS. Split and fold are those of the
#: recording's description, for the reader of the table.
_COLUMNS = ("recording", "onset", "duration", "label", "split", "fold", "i_window_in_trial")
_KINDS: dict[str, Callable[[str], Any]] = {
    "bool": lambda text: text == "True",
    "int": int,
    "float": float,
    "str": str,
}
_COLUMN_NAMES = (",".join(_COLUMNS) + "\n").encode()


class LabelWriter:
    """Append windows to the table of a store. Nothing is written until a recording has labels.

    Parameters
    ----------
    folder : Path
        Folder of the store.
    described : mapping
        Entry ``labels`` of the index. What is in the table beyond it is overwritten.
    """

    def __init__(self, folder: Path, described: Mapping[str, Any]):
        self.table = folder / WINDOWS
        self.described = dict(described) or dict(n_windows=0, n_bytes=0, kind=None)
        self._hash = hashlib.blake2b(digest_size=8)
        self._hash.update(check_labels(folder, described))

    def add(
        self, pieces: Mapping[str, Labels], description: Mapping[str, Any], sfreq: float
    ) -> None:
        """Append the windows of a recording, permanent after the next commit.

        Parameters
        ----------
        pieces : mapping of str to Labels
            Windows of each piece of the recording, by the name of the piece in the store.
        description : mapping
            Description of the recording, with ``split`` and ``fold`` if it has them.
        sfreq : float
            Sampling rate of the store in Hz.

        Raises
        ------
        ValueError
            When the labels are of another type than those before.
        """
        kinds = {type(value).__name__ for piece in pieces.values() for value in piece.label}
        if not kinds:
            return
        kinds |= {self.described["kind"]} - {None}
        if len(kinds) > 1:
            raise ValueError(
                f"The labels of {next(iter(pieces))} and of the recordings before it are of "
                f"different types ({', '.join(sorted(kinds))}); give all windows labels of one "
                "type."
            )
        header = b"" if self.described["n_bytes"] else _COLUMN_NAMES
        rows = [
            row for name, piece in pieces.items() for row in _rows(name, piece, description, sfreq)
        ]
        self._write(header + _as_csv(rows))
        self.described["kind"] = kinds.pop()
        self.described["n_windows"] += len(rows)

    def _write(self, content: bytes) -> None:
        """Write after the last complete recording; on an error, nothing counts as written."""
        mode = "r+b" if self.table.exists() else "wb"
        with self.table.open(mode) as file:
            file.seek(self.described["n_bytes"])
            file.write(content)
            file.truncate()
        self._hash.update(content)
        self.described["n_bytes"] += len(content)

    def commit(self) -> dict[str, Any]:
        """Make all windows permanent, and return the entry ``labels`` of the index."""
        if not self.described["n_windows"]:
            self.table.unlink(missing_ok=True)  # of a call that was killed at the beginning
            return {}
        with self.table.open("r+b") as file:
            file.truncate(self.described["n_bytes"])  # cuts off what a full disk left
            os.fsync(file.fileno())
        return {**self.described, "checksum": self._hash.hexdigest()}


def _rows(name: str, labels: Labels, description: Mapping[str, Any], sfreq: float) -> list[tuple]:
    split, fold = (description.get(key, "") for key in ("split", "fold"))
    onset, duration = labels.start / sfreq, (labels.stop - labels.start) / sfreq
    columns = onset.tolist(), duration.tolist(), labels.label, labels.number.tolist()
    return [
        (name, seconds, length, label, split, fold, number)
        for seconds, length, label, number in zip(*columns, strict=True)
    ]


def _as_csv(rows: list[tuple]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def cut_off_labels(folder: Path, described: Mapping[str, Any]) -> None:
    """Remove windows that the index does not describe, after a failed extension of a store."""
    table = folder / WINDOWS
    if not described:
        table.unlink(missing_ok=True)
    else:
        os.truncate(table, described["n_bytes"])


def check_labels(folder: Path, described: Mapping[str, Any]) -> bytes:
    """Return the table of a store, compared with the checksum in the index.

    Raises
    ------
    FileNotFoundError
        When the table is missing.
    ValueError
        When the table was altered.
    """
    table = folder / WINDOWS
    if not described:
        return b""
    if not table.is_file():
        raise FileNotFoundError(
            f"{table} is missing; the store has {described['n_windows']} labelled windows. Copy it "
            "again, or create the store again."
        )
    with table.open("rb") as file:
        content = file.read(described["n_bytes"])  # another process may be extending it
    if checksum_of(content) != described["checksum"]:
        raise ValueError(
            f"{table} was altered: its content does not match its checksum. Copy it again, or "
            "create the store again."
        )
    return content


def read_labels(folder: Path, described: Mapping[str, Any], sfreq: float) -> dict[str, Labels]:
    """Return the windows of each recording of a store that has some, by name.

    Raises
    ------
    FileNotFoundError, ValueError
        As :func:`check_labels`.
    """
    content = check_labels(folder, described)
    if not content:
        return {}
    types = dict(recording=str, label=str, split=str, fold=str)
    # The csv module quotes a text with "\n", but not one with a lone "\r".
    table = pd.read_csv(
        io.BytesIO(content), dtype=types, keep_default_na=False, lineterminator="\n"
    )
    start = np.rint(table["onset"].to_numpy(float) * sfreq).astype(int)
    stop = start + np.rint(table["duration"].to_numpy(float) * sfreq).astype(int)
    number, names = table["i_window_in_trial"].to_numpy(int), table["recording"].to_numpy()
    convert = _KINDS[described["kind"]]
    label = [convert(text) for text in table["label"]]
    # The windows of a recording follow each other.
    edges = np.flatnonzero(np.r_[True, names[1:] != names[:-1], True]).tolist()
    return {
        names[first]: Labels(
            start[first:last], stop[first:last], tuple(label[first:last]), number[first:last]
        )
        for first, last in pairwise(edges)
    }


#: Target of an unlabelled window, as in the recipes.
UNLABELED = -1


@dataclass(frozen=True, eq=False)
class Labels:
    """Windows of one recording, or of a piece of it, with their labels.

    Attributes
    ----------
    start, stop : ndarray of int, shape (n_windows,)
        First sample of each window, and the sample after its last.
    label : tuple
        Label of each window: a number or text.
    number : ndarray of int, shape (n_windows,)
        braindecode's ``i_window_in_trial`` of each window.
    """

    start: np.ndarray
    stop: np.ndarray
    label: tuple[Any, ...]
    number: np.ndarray

    def __len__(self) -> int:
        return len(self.label)

    @property
    def any_labelled(self) -> bool:
        """Whether at least one of the windows has a label."""
        return not all(type(value) is int and value == UNLABELED for value in self.label)

    def pieces(self, stretches: list[tuple[int, int]], sfreq: float) -> list[Labels]:
        """Return the windows within each stretch between gaps, in samples of that stretch.

        Parameters
        ----------
        stretches : list of (int, int)
            First sample of each stretch, and the sample after its last.
        sfreq : float
            Sampling rate in Hz, for the message.

        Raises
        ------
        ValueError
            When a window is not within one stretch. The message names the window.
        """
        inside = [(self.start >= first) & (self.stop <= last) for first, last in stretches]
        outside = ~np.any(inside, axis=0)
        if outside.any():
            i = int(outside.argmax())
            end = stretches[-1][1] if stretches else 0
            where = (
                f"is outside the recording, which has {end / sfreq:g} s"
                if self.start[i] < 0 or self.stop[i] > end
                else "contains a gap of the recording"
            )
            raise ValueError(
                f"its window {i} (label {self.label[i]}), from {self.start[i] / sfreq:g} s to "
                f"{self.stop[i] / sfreq:g} s, {where}; correct or remove the window."
            )
        return [
            self._take(np.flatnonzero(mask), first)
            for mask, (first, _) in zip(inside, stretches, strict=True)
        ]

    def _take(self, rows: np.ndarray, first: int) -> Labels:
        return Labels(
            self.start[rows] - first,
            self.stop[rows] - first,
            tuple(self.label[i] for i in rows),
            self.number[rows],
        )

    def resampled(self, before: float, after: float, n_times: int) -> Labels:
        """Return the windows after resampling from one rate to another, to ``n_times`` samples."""
        if before == after:
            return self
        length = np.rint((self.stop - self.start) * after / before).astype(int)
        # Rounding may move the last window beyond the last sample.
        start = np.minimum(np.rint(self.start * after / before).astype(int), n_times - length)
        return replace(self, start=start, stop=start + length)


def labels_of(windows: Any, transforms: Sequence[Callable[[Any], Any]] = ()) -> Labels | None:
    """Return the windows and labels of a recording of a braindecode dataset.

    Parameters
    ----------
    windows : Any
        Recording of a dataset.
    transforms : sequence of callable
        Functions that are applied to each label in turn, such as braindecode's
        ``target_transform``.

    Returns
    -------
    Labels | None
        None for a continuous recording, and when there is no window.

    Raises
    ------
    ValueError
        When a label is missing, or neither a number nor text.
    """
    if not isinstance(windows, EEGWindowsDataset) or windows.targets_from != "metadata":
        return None
    targets = windows.y
    for transform in transforms:
        targets = [transform(target) for target in targets]
    label = tuple(t.item() if isinstance(t, np.generic) else t for t in targets)
    if not label:
        return None
    for i, value in enumerate(label):
        if not isinstance(value, bool | int | float | str) or value != value:
            raise ValueError(
                f"the label of its window {i} is {value!r}; labels must be numbers or texts, and "
                f"{UNLABELED} for a window without one. Without labels, store the continuous "
                "recordings."
            )
    number, start, stop = np.asarray(windows.crop_inds, int).reshape(-1, 3).T
    return Labels(start, stop, label, number)
