"""Cache of prepared recordings on disk, so that a corpus is prepared only once."""

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
    """Folder of prepared recordings: signals as FIF in single precision, windows as JSON.

    A recording is prepared again when the size or modification time of its file has changed. The
    same holds for files beside it with the same name and another ending, such as annotations.

    Attributes
    ----------
    folder : Path
        Folder of the cache.
    """

    folder: Path

    @classmethod
    def open(cls, folder: str | Path, settings: Mapping[str, Any]) -> WindowCache:
        """Open a cache, or create it in an empty folder.

        Parameters
        ----------
        folder : path
            Folder of the cache.
        settings : mapping
            Settings of the preparation. They are stored in the folder when it is created.

        Raises
        ------
        ValueError
            When the folder is not a cache, or was created with other settings. The message names
            the differences.
        """
        folder = Path(folder).expanduser()
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / _SETTINGS
        # A new cache: store the settings, but only in an empty folder.
        if not file.exists():
            if not all(map(is_leftover, folder.iterdir())):
                raise ValueError(
                    f"{folder} is not empty and not a cache; pass an empty or new folder."
                )
            replace_file(file, to_json(settings))
            return cls(folder)
        # An existing cache: its settings must be the same.
        try:
            stored = read_json(file)
        except ValueError as error:
            raise ValueError(f"{error} Remove the cache folder.") from error
        found = differences(stored, settings)
        if found:
            raise ValueError(
                f"The cache {folder} was created with other settings: {'; '.join(found)}. Pass "
                "another folder, or remove this one."
            )
        return cls(folder)

    def _entry(self, source: Path) -> Path:
        # The hash distinguishes files of the same name in different folders.
        name = hashlib.sha256(str(source.absolute()).encode()).hexdigest()[:12]
        return self.folder / f"{source.stem}-{name}.json"

    def _signals(self, source: Path) -> Path:
        return self._entry(source).with_name(self._entry(source).stem + "_raw.fif")

    def _content(self, source: Path) -> dict[str, Any] | None:
        """Return the entry of a recording; None if it is absent, damaged or out of date."""
        try:
            content = read_json(self._entry(source))
        except (FileNotFoundError, ValueError):
            return None
        return content if content.get("source") == _state_of(source) else None

    def holds(self, source: Path) -> bool:
        """Whether the cache contains an up-to-date entry of a recording."""
        content = self._content(source)
        if content is None:
            return False
        return not content["windows"]["target"] or self._signals(source).is_file()

    def n_windows(self, source: Path) -> int:
        return len(self._content(source)["windows"]["target"])

    def store(self, source: Path, windows: EEGWindowsDataset | None) -> None:
        """Write a prepared recording; ``windows`` is None if it is too short for a window."""
        table: dict[str, list] = {"target": []}
        if windows is not None:
            table = windows.metadata.to_dict(orient="list")
            signals = self._signals(source)
            with written_aside(self.folder) as aside:
                windows.raw.save(aside / signals.name, fmt="single", verbose="error")
        # The entry is written last, so that it exists only when the signals do.
        content = {"source": _state_of(source), "windows": table}
        replace_file(self._entry(source), to_json(content))

    def load(self, source: Path, description: Mapping[str, Any]) -> EEGWindowsDataset:
        """Return the windows of a recording; each is read from disk when it is indexed."""
        raw = mne.io.read_raw_fif(self._signals(source), preload=False, verbose="error")
        metadata = pd.DataFrame(self._content(source)["windows"])
        return EEGWindowsDataset(raw, metadata, dict(description))


def _state_of(source: Path) -> dict[str, Any]:
    """Return size and modification time of a recording and of files with the same name."""
    names = [f"{glob.escape(source.stem)}.*"]
    # In BIDS, sub-01_task-sleep_events.tsv annotates sub-01_task-sleep_eeg.set.
    if source.stem.endswith("_eeg"):
        names.append(f"{glob.escape(source.stem.removesuffix('_eeg'))}_*")
    files = sorted({file for name in names for file in source.parent.glob(name)})
    states = {file.name: file.stat() for file in files if file.exists()}  # skips dead links
    return {
        "file": str(source.absolute()),
        "bytes": {name: state.st_size for name, state in states.items()},
        "changed": {name: state.st_mtime_ns for name, state in states.items()},
    }
