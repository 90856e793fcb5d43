"""A folder of prepared recordings and their windows, so that a corpus is prepared only once."""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mne
import pandas as pd
from braindecode.datasets import EEGWindowsDataset

from braindecode_pars.storage._atomic import is_leftover, replace_file, written_aside
from braindecode_pars.storage._json import read_json, to_json
from braindecode_pars.storage._settings import differences

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
        if not file.exists():
            if not all(map(is_leftover, folder.iterdir())):
                raise ValueError(f"{folder} is not empty and no cache; name an empty folder.")
            replace_file(file, to_json(settings))
            return cls(folder)
        try:
            made_with = read_json(file)
        except ValueError as error:
            raise ValueError(f"{error} Remove the cache folder.") from error
        found = differences(made_with, settings)
        if found:
            raise ValueError(
                f"The cache {folder} was made with other settings: {'; '.join(found)}. Name "
                "another folder, or remove this one."
            )
        return cls(folder)

    def _entry(self, source: Path) -> Path:
        name = hashlib.sha256(str(source.absolute()).encode()).hexdigest()[:12]
        return self.folder / f"{source.stem}-{name}.json"

    def _signals(self, source: Path) -> Path:
        return self._entry(source).with_name(self._entry(source).stem + "_raw.fif")

    def _content(self, source: Path) -> dict[str, Any] | None:
        try:
            content = read_json(self._entry(source))
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
            with written_aside(self.folder) as aside:
                windows.raw.save(aside / signals.name, fmt="single", verbose="error")
        # Last, so that an entry says that all of it is there.
        content = {"source": _state_of(source), "windows": table}
        replace_file(self._entry(source), to_json(content))

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
