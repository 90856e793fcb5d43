"""The list of the stores that a folder joins, in one file with a checksum."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from braindecode_pars.signal_store._index import INDEX
from braindecode_pars.storage._checked_json import read_checked, write_checked
from braindecode_pars.storage._folder import check_may_write

__all__ = ["PARTS", "Parts", "check_may_join", "check_not_joined", "is_store"]

PARTS = "parts.json"
FORMAT, VERSION = "braindecode_pars joined SignalStores", 1


def is_store(folder: str | Path) -> bool:
    """Whether a folder is a store, of its own samples or of those of other stores."""
    folder = Path(folder).expanduser()
    return (folder / INDEX).exists() or (folder / PARTS).exists()


def check_not_joined(folder: Path) -> None:
    """Check that recordings can be added to a store."""
    if (folder / PARTS).exists():
        raise ValueError(
            f"{folder} joins other stores and has no samples of its own, so that nothing can be "
            "added to it. Create a store of the new recordings, and join all stores in a new "
            "folder; no sample is copied."
        )


def check_may_join(folder: Path) -> None:
    """Check that a folder is new or empty."""
    if (folder / PARTS).exists():
        raise ValueError(
            f"{folder} already joins stores; open it with SignalStore.open, or pass a new folder."
        )
    check_may_write(folder, "joined stores", is_ours=False)


@dataclass(frozen=True)
class Parts:
    """Content of ``parts.json``.

    Attributes
    ----------
    checksums : mapping of Path to str
        Checksum of each store with its labels, by its absolute path. In the file, paths are
        relative to the folder, so that all of them can be moved together.
    shares : mapping of str to float
        Share of each corpus in the examples of pretraining.
    """

    checksums: Mapping[Path, str]
    shares: Mapping[str, float]

    def write(self, folder: Path) -> None:
        """Write the file, completely or not at all."""
        parts = [
            dict(path=Path(os.path.relpath(path, folder.resolve())).as_posix(), checksum=checksum)
            for path, checksum in self.checksums.items()
        ]
        content = dict(format=FORMAT, version=VERSION, shares=dict(self.shares), parts=parts)
        write_checked(folder / PARTS, content)

    @classmethod
    def read(cls, folder: Path) -> Parts:
        """Read the file, and check that the stores are there.

        Raises
        ------
        FileNotFoundError
            When a store is missing.
        ValueError
            When the file is damaged, was edited, or has another version.
        """
        try:
            content = read_checked(folder / PARTS)
        except ValueError as error:
            raise ValueError(f"{error} Join the stores again in a new folder.") from error
        found = content.get("format"), content.get("version")
        if found != (FORMAT, VERSION):
            raise ValueError(
                f"{folder / PARTS} has the format {found[0]!r} of version {found[1]}, but this "
                f"package reads {FORMAT!r} of version {VERSION}; update the package, or join the "
                "stores again."
            )
        parts = {_absolute(folder, part): part["checksum"] for part in content["parts"]}
        for path in parts:
            if not is_store(path):
                raise FileNotFoundError(
                    f"{path} is missing, one of the {len(parts)} stores that {folder} joins by "
                    "their paths relative to it. Move it there, or join the stores again in a new "
                    "folder."
                )
        return cls(parts, content["shares"])

    def check(self, folder: Path, found: Sequence[tuple[Path, str]]) -> None:
        """Check that stores have the checksums with which they were joined."""
        for path, checksum in found:
            if checksum != self.checksums[path]:
                raise ValueError(
                    f"{path} has other recordings, labels, splits or shares than when {folder} "
                    "joined it; join the stores again in a new folder."
                )


def _absolute(folder: Path, part: Mapping[str, Any]) -> Path:
    return Path(os.path.normpath(folder.resolve() / part["path"]))
