"""Cache of prepared recordings on disk, so that a corpus is prepared only once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mne
import pandas as pd
from braindecode.datasets import EEGWindowsDataset

from braindecode_pars.preprocessing._steps import remember_steps, remembered_steps
from braindecode_pars.recordings._search import files_beside
from braindecode_pars.storage._atomic import locked, replace_file, written_aside
from braindecode_pars.storage._checked_json import read_checked, write_checked
from braindecode_pars.storage._checksum import checksum_of, checksum_of_file
from braindecode_pars.storage._folder import check_may_write
from braindecode_pars.storage._json import read_json, to_json
from braindecode_pars.storage._settings import differences

__all__ = ["WindowCache"]

_SETTINGS = "settings.json"
#: Columns of braindecode's metadata that reading a window needs.
_COLUMNS = ("target", "i_window_in_trial", "i_start_in_trial", "i_stop_in_trial")


@dataclass(frozen=True)
class WindowCache:
    """Folder of prepared recordings: signals as FIF in single precision, windows as JSON.

    A recording is prepared again when the size or modification time of its file has changed. The
    same holds for files beside it with the same name and another ending, such as annotations.

    Each entry contains the checksums of its signals, of the settings of the cache and of itself. An
    entry that does not match is not used, nor is one of version 0.1.0, which wrote none: to prepare
    a recording again is always possible, and always right.

    Attributes
    ----------
    folder : Path
        Folder of the cache.
    settings_checksum : str
        Checksum of the settings of the preparation.
    """

    folder: Path
    settings_checksum: str

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
        file = folder / _SETTINGS
        # A new cache: store the settings, but only in an empty folder. Another process may create
        # the same cache at this moment.
        check_may_write(folder, "a cache of windows", is_ours=file.exists())
        cache = cls(folder, checksum_of(to_json(settings).encode()))
        if not file.exists():
            with locked(folder, f"{folder} is locked by another process; try again.", wait=60):
                if not file.exists():
                    replace_file(file, to_json(settings))
        # Its settings must be the same.
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
        return cache

    def _entry(self, source: Path) -> Path:
        # The hash distinguishes files of the same name in different folders.
        name = hashlib.sha256(str(source.absolute()).encode()).hexdigest()[:12]
        return self.folder / f"{source.stem}-{name}.json"

    def _signals(self, source: Path) -> Path:
        return self._entry(source).with_name(self._entry(source).stem + "_raw.fif")

    def holds(self, source: Path) -> bool:
        """Whether the cache contains an up-to-date entry of a recording. Its signals are read.

        Raises
        ------
        ValueError
            When the entry or its signals are damaged, were edited, or are of another recording or
            version. The message names the file.
        """
        file = self._entry(source)
        try:
            content = read_checked(file)
        except FileNotFoundError:
            return False
        _check_parts(file, content)
        if content.get("settings") != self.settings_checksum:
            raise ValueError(f"{file} was prepared with other settings.")
        if content["source"]["file"] != str(source.absolute()):
            raise ValueError(f"{file} is of the recording {content['source']['file']}.")
        if content["source"] != _state_of(source):
            return False  # the recording has changed
        if content["windows"]["target"] and self._signals(source).name not in content["signals"]:
            raise ValueError(f"{file} has no checksum of the signals.")
        for name, expected in content["signals"].items():
            _check_signals(self.folder / name, expected)
        return True

    def n_windows(self, source: Path) -> int:
        return len(self._windows(source)["target"])

    def store(self, source: Path, windows: EEGWindowsDataset | None) -> None:
        """Write a prepared recording; ``windows`` is None if it is too short for a window."""
        table: dict[str, list] = {"target": []}
        signals: dict[str, str] = {}
        steps: list[Any] = []
        if windows is not None:
            steps = remembered_steps(windows.raw.info)  # a FIF file does not contain them
            table = windows.metadata.to_dict(orient="list")
            with written_aside(self.folder) as aside:
                windows.raw.save(aside / self._signals(source).name, fmt="single", verbose="error")
                # MNE splits signals of more than 2 GB into several files.
                signals = {file.name: checksum_of_file(file) for file in aside.iterdir()}
        # The entry is written last, so that it exists only when the signals do.
        content = {
            "source": _state_of(source),
            "settings": self.settings_checksum,
            "signals": signals,
            "windows": table,
            "steps": steps,
        }
        write_checked(self._entry(source), content)

    def load(self, source: Path, description: Mapping[str, Any]) -> EEGWindowsDataset:
        """Return the windows of a recording; each is read from disk when it is indexed."""
        raw = mne.io.read_raw_fif(self._signals(source), preload=False, verbose="error")
        entry = read_json(self._entry(source))
        remember_steps(raw, entry.get("steps", ()))  # earlier versions kept none
        return EEGWindowsDataset(raw, pd.DataFrame(entry["windows"]), dict(description))

    def _windows(self, source: Path) -> dict[str, list]:
        return read_json(self._entry(source))["windows"]


def _check_parts(file: Path, content: Mapping[str, Any]) -> None:
    """Check that an entry has all parts: another program may have written it, with a checksum."""
    parts = {name: content.get(name) for name in ("source", "signals", "windows")}
    missing = [name for name, part in parts.items() if not isinstance(part, dict)]
    if not missing:
        source, windows = parts["source"], parts["windows"]
        missing += [] if "file" in source else ["source.file"]
        columns = _COLUMNS if windows.get("target") else _COLUMNS[:1]
        missing += [
            f"windows.{c}"
            for c in dict.fromkeys([*columns, *windows])
            if not isinstance(windows.get(c), list)
        ]
    if missing:
        raise ValueError(f"{file} has no entry {', '.join(missing)}.")
    if len({len(column) for column in windows.values()}) > 1:
        raise ValueError(f"{file} has columns of different lengths in windows.")


def _check_signals(file: Path, expected: str) -> None:
    try:
        found = checksum_of_file(file)
    except OSError as error:  # it is missing, or a folder
        raise ValueError(f"{file} cannot be read ({error.strerror}).") from error
    if found != expected:
        raise ValueError(f"{file} does not match its checksum.")


def _state_of(source: Path) -> dict[str, Any]:
    """Return size and modification time of a recording and of files with the same name."""
    states = {file.name: file.stat() for file in files_beside(source)}
    return {
        "file": str(source.absolute()),
        "bytes": {name: state.st_size for name, state in states.items()},
        "changed": {name: state.st_mtime_ns for name, state in states.items()},
    }
