"""A folder of finished folds, from which an interrupted run resumes."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from braindecode_pars.evaluation.folds._digest import digest
from braindecode_pars.storage._atomic import locked, replace_file
from braindecode_pars.storage._checked_json import read_checked, write_checked
from braindecode_pars.storage._folder import check_may_write
from braindecode_pars.storage._json import as_read, read_json, to_json
from braindecode_pars.storage._settings import differences

__all__ = ["FoldStore"]

_SETTINGS = "settings.json"
_FORMAT = "braindecode_pars scores"
_VERSION = 2  # version 1 had no entries for format and version
#: Entries that the file of a finished fold must contain.
_ENTRIES = (
    *("key", "rows", "true", "predicted", "probabilities", "subjects"),
    *("seen", "history", "seconds"),
)
#: Settings to which a later run may add entries.
_GROWING = ("datasets", "methods")


@dataclass(frozen=True)
class FoldStore:
    """Folder with one JSON file for each fold in ``folder/folds``.

    Files are written under a temporary name and then renamed, so that no file is incomplete. Each
    file contains the name of its fold and a checksum. Several processes may use the folder at the
    same time.
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
        TypeError
            When ``folder`` is not a path.
        ValueError
            When the folder contains results of other data or settings (the message lists the
            differences), results of another version of this package, a settings file that is
            damaged or of another program, or files of other programs only.
        BlockingIOError
            When another process does not release the folder.
        """
        if not isinstance(folder, (str, os.PathLike)):
            raise TypeError(f"out must be the path of a folder, or None, got {folder!r}.")
        # Create the folder, or check it before a lock is left in it.
        folder = Path(folder).expanduser()
        file = folder / _SETTINGS
        check_may_write(folder, "an evaluation", is_ours=file.is_file())
        if file.is_file():
            _check_format(folder, read_json(file))
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"out={str(folder)!r} cannot be a folder: {error}.") from error
        # Another process may add its methods at the same moment.
        wanted = {"format": _FORMAT, "version": _VERSION, **as_read(settings)}
        with locked(folder, f"{folder} is locked by another process; try again.", wait=60):
            replace_file(file, to_json(_with_earlier(folder, wanted)))
            (folder / "folds").mkdir(exist_ok=True)
        return cls(folder)

    def finished_methods(self) -> dict[str, Any]:
        """Return the settings of the methods when folds are finished, which must not change."""
        finished = any((self.folder / "folds").glob("*.json"))
        return dict(read_json(self.folder / _SETTINGS)["methods"]) if finished else {}

    def check_methods(self, methods: Mapping[str, Any]) -> None:
        """Check settings of methods against those of the finished folds; nothing is saved.

        Raises
        ------
        ValueError
            When they differ.
        """
        before = self.finished_methods()
        shared = before.keys() & methods.keys()
        old, new = ({"methods": {k: of[k] for k in shared}} for of in (before, methods))
        _check_same(self.folder, differences(old, new))

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
        """Read a finished fold; None when there is no file.

        Raises
        ------
        ValueError
            When the file is damaged, was edited, or is the file of another fold.
        """
        try:
            content = read_checked(file)
        except FileNotFoundError:
            return None
        if content.get("fold") != file.stem:
            raise ValueError(f"{file} was saved as {content.get('fold')}.json.")
        absent = [entry for entry in _ENTRIES if entry not in content]
        if absent:
            raise ValueError(f"{file} has no entry {absent[0]!r}.")
        return {entry: content[entry] for entry in _ENTRIES}

    def write(self, file: Path, result: Mapping[str, Any]) -> None:
        """Save a finished fold."""
        write_checked(file, {"fold": file.stem, **result})

    def write_table(self, name: str, table: pd.DataFrame) -> None:
        """Write a table of the whole run as CSV."""
        replace_file(self.folder / name, table.to_csv(index=False))


def _with_earlier(folder: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    """Return the settings together with those of the finished folds, which must not differ."""
    file = folder / _SETTINGS
    if not file.exists():
        return wanted
    try:
        before = read_json(file)
        _check_format(folder, before)
        if not any((folder / "folds").glob("*.json")):
            return wanted  # without a finished fold, all settings may change
        found, merged = _differences(before, wanted), _merged(before, wanted)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{file} is damaged ({error!r}); use another folder, or delete this one."
        ) from error
    _check_same(folder, found)
    return merged


def _check_same(folder: Path, found: list[str]) -> None:
    """Check that there are no differences between the settings of two runs."""
    if found:
        what = "data" if all(clause.startswith("datasets.") for clause in found) else "settings"
        more = f"; and {len(found) - 3} more" if len(found) > 3 else ""
        raise ValueError(
            f"{folder} contains results of other {what}: {'; '.join(found[:3])}{more}. "
            f"Use another folder, or restore the {what} to resume this one."
        )


def _check_format(folder: Path, before: Mapping[str, Any]) -> None:
    """Check that the settings are those of an evaluation, and of this version."""
    version = before.get("version") if before.get("format") == _FORMAT else None
    if version == _VERSION:
        return
    if version is not None:
        raise ValueError(
            f"{folder} contains scores in format {version}; this version of the package reads "
            f"format {_VERSION}. Install the newer version, or use another folder."
        )
    if not {"protocol", *_GROWING} <= before.keys():
        raise ValueError(f"{folder / _SETTINGS} is not of an evaluation; use another folder.")
    if any((folder / "folds").glob("*.json")):
        raise ValueError(
            f"{folder} contains scores of version 0.1.0, which compared a few samples of the data "
            "only, so they may be of other data. Use another folder to compute them again."
        )


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
