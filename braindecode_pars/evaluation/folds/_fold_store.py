"""A folder of finished folds, from which an interrupted run resumes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from braindecode_pars.evaluation.folds._fingerprint import digest
from braindecode_pars.storage._atomic import replace_file
from braindecode_pars.storage._json import as_read, read_json, to_json
from braindecode_pars.storage._settings import differences

__all__ = ["FoldStore"]

_SETTINGS = "settings.json"
#: Entries that the file of a finished fold must contain.
_ENTRIES = ("key", "rows", "true", "predicted", "subjects", "seen", "history", "seconds")
#: Settings to which a later run may add entries.
_GROWING = ("datasets", "methods")


@dataclass(frozen=True)
class FoldStore:
    """Folder with one JSON file for each fold in ``folder/folds``.

    Files are written under a temporary name and then renamed, so that no file is incomplete.
    """

    folder: Path

    @classmethod
    def open(cls, folder: str | Path, settings: Mapping[str, Any]) -> FoldStore:
        """Open a folder of results, or create it.

        Parameters
        ----------
        folder : path
            Folder of results.
        settings : dict
            Settings that all folds depend on. A later run may add ``datasets`` and ``methods``,
            but must not change existing ones.

        Raises
        ------
        ValueError
            When the folder contains results of other settings (the message lists the
            differences), or its settings file is damaged.
        """
        # Create the folder
        folder = Path(folder).expanduser()
        try:
            (folder / "folds").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"out={str(folder)!r} cannot be a folder: {error}.") from error
        # Compare the settings with those of the finished folds; without a fold they may change.
        file = folder / _SETTINGS
        wanted = as_read(settings)
        if file.exists() and any((folder / "folds").glob("*.json")):
            try:
                before = read_json(file)
                found = _differences(before, wanted)
                wanted = _merged(before, wanted)
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(
                    f"{file} is damaged ({error}); use another folder, or delete this one."
                ) from error
            if found:
                more = f"; and {len(found) - 3} more" if len(found) > 3 else ""
                raise ValueError(
                    f"{folder} contains results of other settings: {'; '.join(found[:3])}{more}. "
                    "Use another folder, or restore the settings to resume this one."
                )
        replace_file(file, to_json(wanted))
        return cls(folder)

    def file_of(self, key: Mapping[str, Any], content: str) -> Path:
        """Return the path of the file of a fold.

        Parameters
        ----------
        key : dict
            Columns that identify the fold; they give the readable part of the name.
        content : str
            Digest of everything that the result depends on.
        """
        parts = [key["method"], key["dataset"], f"subject-{key['subject']}"]
        parts += [f"n{key['n_train_subjects']}", f"seed{key['seed']}"]
        readable = "_".join(re.sub(r"[^\w.+=-]+", "-", str(part)) for part in parts if part != "")
        # File systems limit the length of a name.
        name = f"{readable[:120]}_{digest(dict(key), content)}"
        return self.folder / "folds" / f"{name}.json"

    def read(self, file: Path) -> dict[str, Any] | None:
        """Read a finished fold; None when the file is absent or damaged."""
        try:
            result = read_json(file)
        except (FileNotFoundError, ValueError):
            return None
        return result if all(entry in result for entry in _ENTRIES) else None

    def write(self, file: Path, result: Mapping[str, Any]) -> None:
        """Save a finished fold."""
        replace_file(file, to_json(result))

    def write_table(self, name: str, table: pd.DataFrame) -> None:
        """Write a table of the whole run as CSV."""
        replace_file(self.folder / name, table.to_csv(index=False))


def _merged(before: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """Settings of both runs together."""
    return {**wanted, **{name: {**before[name], **wanted[name]} for name in _GROWING}}


def _differences(before: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """Differences between two runs; datasets and methods of only one run do not count."""
    shared = {name: before[name].keys() & wanted[name].keys() for name in _GROWING}
    old, new = (
        {**run, **{name: {k: run[name][k] for k in shared[name]} for name in _GROWING}}
        for run in (before, wanted)
    )
    return differences(old, new)
