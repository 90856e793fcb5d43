"""Metadata of the recordings of a store, in one JSON file with a checksum."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from braindecode_pars._subjects import in_corpus
from braindecode_pars.preprocessing import Preprocessing
from braindecode_pars.storage._atomic import replace_file
from braindecode_pars.storage._checksum import checksum_of
from braindecode_pars.storage._json import parse_json, plain

__all__ = ["INDEX", "SAMPLES", "Index", "StoredRecording"]

INDEX = "store.json"
SAMPLES = "samples.bin"
FORMAT = "braindecode_pars SignalStore"
VERSION = 5
#: Versions that can be read. Stores of version 1 contain no count of clipped samples, those of
#: versions 1 and 2 no shares of corpora, those before version 4 no labels, and those before version
#: 5 no preprocessing.
READABLE = (1, 2, 3, 4, 5)
#: Largest index, in bytes: that of some million recordings.
_LARGEST = 2**32
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
        Known entries of the :class:`~braindecode_pars.preprocessing.Preprocessing` of the stored
        signals.
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
            entries = parse_json(content, largest=_LARGEST)
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


_HEADER = ("complete", "settings", "sfreq", "n_bytes", "mtime_ns", "skipped", "shares", "left_out")
_HEADER += ("labels",)
