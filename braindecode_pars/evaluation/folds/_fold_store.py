"""A folder of finished folds, so that an interrupted run goes on where it was."""

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
#: What a file must hold to count as finished.
_ENTRIES = ("key", "rows", "true", "predicted", "subjects", "seen", "history", "seconds")
#: Settings to which a later run may add entries.
_GROWING = ("datasets", "methods")


@dataclass(frozen=True)
class FoldStore:
    """One JSON file a fold in ``folder/folds``, written aside and renamed."""

    folder: Path

    @classmethod
    def open(cls, folder: str | Path, settings: Mapping[str, Any]) -> FoldStore:
        """Open or begin a folder of results.

        Parameters
        ----------
        folder : path
        settings : dict
            What all folds depend on. More ``datasets`` and ``methods`` may come in later; of
            those that are there, nothing may change.

        Raises
        ------
        ValueError
            When the folder holds results of other settings, naming what differs, or a file in
            it is damaged.
        """
        folder = Path(folder).expanduser()
        try:
            (folder / "folds").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"out={str(folder)!r} cannot be a folder: {error}.") from error
        file = folder / _SETTINGS
        wanted = as_read(settings)
        # Without a fold there is nothing that other settings would contradict.
        if file.exists() and any((folder / "folds").glob("*.json")):
            try:
                before = read_json(file)
                found = _differences(before, wanted)
                wanted = _both(before, wanted)
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(
                    f"{file} is damaged ({error}); name another folder, or remove this one."
                ) from error
            if found:
                more = f"; and {len(found) - 3} more" if len(found) > 3 else ""
                raise ValueError(
                    f"{folder} holds results of other settings: {'; '.join(found[:3])}{more}. Name "
                    "another folder, or put the settings back to resume this one."
                )
        replace_file(file, to_json(wanted))
        return cls(folder)

    def file_of(self, key: Mapping[str, Any], content: str) -> Path:
        """Where a fold belongs.

        Parameters
        ----------
        key : dict
            What tells the fold from others, for people.
        content : str
            A digest of all that its result depends on.
        """
        told = [key["method"], key["dataset"], f"subject-{key['subject']}"]
        told += [f"n{key['n_train_subjects']}", f"seed{key['seed']}"]
        readable = "_".join(re.sub(r"[^\w.+=-]+", "-", str(part)) for part in told if part != "")
        name = f"{readable[:120]}_{digest(dict(key), content)}"
        return self.folder / "folds" / f"{name}.json"

    def read(self, file: Path) -> dict[str, Any] | None:
        """A finished fold; None for one that is absent or damaged, and so has to be run."""
        try:
            result = read_json(file)
        except (FileNotFoundError, ValueError):
            return None
        return result if all(entry in result for entry in _ENTRIES) else None

    def write(self, file: Path, result: Mapping[str, Any]) -> None:
        """Keep a finished fold."""
        replace_file(file, to_json(result))

    def write_table(self, name: str, table: pd.DataFrame) -> None:
        """Write a table of the whole run as CSV."""
        replace_file(self.folder / name, table.to_csv(index=False))


def _both(before: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """The settings of both runs together."""
    return {**wanted, **{name: {**before[name], **wanted[name]} for name in _GROWING}}


def _differences(before: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """Where two runs contradict each other; what only one of them has is no difference."""
    shared = {name: before[name].keys() & wanted[name].keys() for name in _GROWING}
    old, new = (
        {**run, **{name: {k: run[name][k] for k in shared[name]} for name in _GROWING}}
        for run in (before, wanted)
    )
    return differences(old, new)
