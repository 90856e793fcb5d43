"""A folder of prepared recordings and their windows, so that a corpus is prepared only once."""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mne
import pandas as pd
from braindecode.datasets import EEGWindowsDataset

__all__ = ["WindowCache"]

_SETTINGS = "settings.json"


@dataclass(frozen=True)
class WindowCache:
    """Prepared recordings as FIF files in single precision, their windows as JSON beside them.

    A recording is prepared again when its file has changed since (size or time of change), or
    one beside it that has its name and another ending, such as its annotations.
    """

    folder: Path

    @classmethod
    def open(cls, folder: str | Path, settings: Mapping[str, Any]) -> WindowCache:
        """Open or begin a cache.

        Raises
        ------
        ValueError
            When the folder was made with other settings, naming them, or holds something else.
        """
        folder = Path(folder).expanduser()
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / _SETTINGS
        wanted = json.loads(json.dumps(dict(settings)))
        if not file.exists():
            if any(folder.iterdir()):
                raise ValueError(f"{folder} is not empty and no cache; name an empty folder.")
            _write_json(file, wanted)
            return cls(folder)
        try:
            made_with = json.loads(file.read_text())
            names = sorted(made_with.keys() | wanted.keys())
        except (ValueError, AttributeError) as error:
            raise ValueError(f"{file} is damaged ({error}); remove the cache folder.") from error
        different = [
            f"{name} {made_with.get(name)!r} instead of {wanted.get(name)!r}"
            for name in names
            if made_with.get(name) != wanted.get(name)
        ]
        if different:
            raise ValueError(
                f"The cache {folder} was made with {'; '.join(different)}. Name another folder, or "
                "remove this one."
            )
        return cls(folder)

    def _entry(self, source: Path) -> Path:
        name = hashlib.sha256(str(source.absolute()).encode()).hexdigest()[:12]
        return self.folder / f"{source.stem}-{name}.json"

    def _signals(self, source: Path) -> Path:
        return self._entry(source).with_name(self._entry(source).stem + "_raw.fif")

    def _content(self, source: Path) -> dict[str, Any] | None:
        try:
            content = json.loads(self._entry(source).read_text())
        except (FileNotFoundError, ValueError):
            return None
        return content if content.get("source") == _state_of(source) else None

    def holds(self, source: Path) -> bool:
        """Whether a recording was prepared, from the file as it is now."""
        content = self._content(source)
        if content is None:
            return False
        return not content["windows"]["target"] or self._signals(source).is_file()

    def n_windows(self, source: Path) -> int:
        return len(self._content(source)["windows"]["target"])

    def store(self, source: Path, windows: EEGWindowsDataset | None) -> None:
        """Write a prepared recording; None for one that is too short for a window."""
        table: dict[str, list] = {"target": []}
        if windows is not None:
            table = windows.metadata.to_dict(orient="list")
            signals = self._signals(source)
            # MNE asks for this ending.
            aside = signals.with_name(f"{signals.stem.removesuffix('_raw')}-{os.getpid()}_raw.fif")
            try:
                windows.raw.save(aside, fmt="single", overwrite=True, verbose="error")
                os.replace(aside, signals)
            finally:
                aside.unlink(missing_ok=True)
        # Last, so that an entry says that all of it is there.
        _write_json(self._entry(source), {"source": _state_of(source), "windows": table})

    def load(self, source: Path, description: Mapping[str, Any]) -> EEGWindowsDataset:
        """Windows that read their signals from the disk when asked for."""
        raw = mne.io.read_raw_fif(self._signals(source), preload=False, verbose="error")
        metadata = pd.DataFrame(self._content(source)["windows"])
        return EEGWindowsDataset(raw, metadata, dict(description))


def _state_of(source: Path) -> dict[str, Any]:
    """Size and time of a recording and of what lies beside it under its name: annotations too."""
    names = [f"{glob.escape(source.stem)}.*"]
    if source.stem.endswith(
        "_eeg"
    ):  # BIDS: sub-01_task-sleep_eeg.set, sub-01_task-sleep_events.tsv
        names.append(f"{glob.escape(source.stem.removesuffix('_eeg'))}_*")
    files = sorted({file for name in names for file in source.parent.glob(name)})
    states = {file.name: file.stat() for file in files if file.exists()}  # no dead links
    return {
        "file": str(source.absolute()),
        "bytes": {name: state.st_size for name, state in states.items()},
        "changed": {name: state.st_mtime_ns for name, state in states.items()},
    }


def _write_json(file: Path, content: Any) -> None:
    aside = file.with_name(f"{file.name}.{os.getpid()}")
    aside.write_text(json.dumps(content, indent=1, default=_plain))
    os.replace(aside, file)


def _plain(value: Any) -> Any:
    """A NumPy number as JSON knows it."""
    return value.item()
