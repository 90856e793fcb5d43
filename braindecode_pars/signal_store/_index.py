"""What a store knows of its recordings: one JSON file, which notices that it was edited."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from braindecode_pars.storage._atomic import replace_file

__all__ = ["INDEX", "SAMPLES", "Index", "StoredRecording", "checksum_of"]

INDEX = "store.json"
SAMPLES = "samples.bin"
FORMAT = "braindecode_pars SignalStore"
VERSION = 1
_CHECKSUM = b'"checksum": '


def checksum_of(content: Any) -> str:
    """16 hexadecimal digits of bytes or of a C-ordered array."""
    return hashlib.blake2b(content, digest_size=8).hexdigest()


@dataclass(frozen=True)
class StoredRecording:
    """One recording and where its samples are.

    Attributes
    ----------
    name : str
        Its path below the folder that was stored, or ``recording-`` and a number.
    description : dict
        Plain values; ``subject`` among them where it is known.
    ch_names : list of str
    n_times : int
    first_sample : int
        Place in the flat file; channel follows upon channel.
    scale, offset : list of float
        Of each channel: ``value = offset + scale * stored``, in volts.
    checksum : str
        Of the stored samples.
    source : dict
        What tells whether the original has changed since.
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

    @property
    def subject(self) -> Any:
        return self.description.get("subject")

    @property
    def n_samples(self) -> int:
        return len(self.ch_names) * self.n_times

    @cached_property
    def line(self) -> str:
        """As JSON, without line breaks."""
        entries = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return json.dumps(entries, allow_nan=False)


@dataclass
class Index:
    """The content of ``store.json``.

    Attributes
    ----------
    settings : dict
        How recordings are prepared and stored; all recordings of a store have the same.
    sfreq : float | None
        Sampling rate in Hz; None while there is no recording.
    complete : bool
        False while the store is being made.
    n_bytes, mtime_ns : int
        Size of the flat file and time of its last change.
    skipped : dict of str to str
        Recordings that were left out, and why.
    recordings : list of StoredRecording
    """

    settings: dict[str, Any]
    sfreq: float | None = None
    complete: bool = False
    n_bytes: int = 0
    mtime_ns: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    recordings: list[StoredRecording] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Path) -> Index:
        """Read the index of a store.

        Raises
        ------
        FileNotFoundError
            When there is none.
        ValueError
            When it is damaged, was edited, or is of another version.
        """
        file = folder / INDEX
        try:
            content = file.read_bytes()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise FileNotFoundError(
                f"{folder} is no SignalStore: there is no {INDEX} in it. SignalStore.create makes "
                "one of recordings."
            ) from error
        try:
            known = json.loads(content)
            if known["format"] != FORMAT:
                raise ValueError(f"it is {known['format']!r}, not {FORMAT!r}")
            version = known["version"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{file} is damaged or no index of a store: {error}.") from error
        if version != VERSION:
            raise ValueError(
                f"{file} is of version {version}, and this package reads version {VERSION}; "
                "make the store again."
            )
        body, _, _ = content.rpartition(_CHECKSUM)
        if known.get("checksum") != checksum_of(body):
            raise ValueError(
                f"{file} was altered: its content does not agree with its checksum. Put back the "
                "original, or make the store again."
            )
        recordings = [StoredRecording(**entry) for entry in known.pop("recordings")]
        header = {name: known[name] for name in _HEADER}
        return cls(**header, recordings=recordings)

    def write(self, folder: Path) -> None:
        """Write the index aside, sync it, and put it in the place of the old one.

        Raises
        ------
        OSError
            When that cannot be done; the old index is then as it was.
        """
        known = {"format": FORMAT, "version": VERSION}
        known |= {name: getattr(self, name) for name in _HEADER}
        lines = ",\n".join(recording.line for recording in self.recordings)
        head = json.dumps(known, indent=1, allow_nan=False).removesuffix("\n}")
        body = f'{head},\n "recordings": [\n{lines}\n ],\n '.encode()
        replace_file(folder / INDEX, body + _CHECKSUM + f'"{checksum_of(body)}"\n}}\n'.encode())


_HEADER = ("complete", "settings", "sfreq", "n_bytes", "mtime_ns", "skipped")
