"""A folder of finished folds, so that an interrupted run goes on where it was."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from braindecode_pars.evaluation.fingerprint import differences, digest

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
        wanted = json.loads(json.dumps(settings))
        # Without a fold there is nothing that other settings would contradict.
        if file.exists() and any((folder / "folds").glob("*.json")):
            try:
                wanted = _grown(json.loads(file.read_text()), wanted, folder)
            except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
                raise ValueError(
                    f"{file} is damaged ({error}); name another folder, or remove this one."
                ) from error
        _write(file, json.dumps(wanted, indent=1))
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
            result = json.loads(file.read_text())
        except (FileNotFoundError, ValueError):
            return None
        whole = isinstance(result, dict) and all(entry in result for entry in _ENTRIES)
        return result if whole else None

    def write(self, file: Path, result: Mapping[str, Any]) -> None:
        """Keep a finished fold."""
        _write(file, json.dumps(result))

    def write_table(self, name: str, table: pd.DataFrame) -> None:
        """Write a table of the whole run as CSV."""
        _write(self.folder / name, table.to_csv(index=False))


def _grown(before: dict[str, Any], wanted: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The settings of both runs, where they do not contradict each other."""
    grown = {**wanted, **{name: {**before[name], **wanted[name]} for name in _GROWING}}
    # What is not asked for this time is no difference.
    known = {
        **wanted,
        **{n: {k: v for k, v in wanted[n].items() if k in before[n]} for n in _GROWING},
    }
    kept = {
        **before,
        **{n: {k: v for k, v in before[n].items() if k in wanted[n]} for n in _GROWING},
    }
    found = list(differences(kept, known))
    if found:
        more = f"; and {len(found) - 3} more" if len(found) > 3 else ""
        raise ValueError(
            f"{folder} holds results of other settings: {'; '.join(found[:3])}{more}. Name another "
            "folder, or put the settings back to go on with this one."
        )
    return grown


def _write(file: Path, text: str) -> None:
    aside = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        aside.write_text(text)
        os.replace(aside, file)
    finally:
        aside.unlink(missing_ok=True)
