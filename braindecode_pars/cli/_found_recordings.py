"""The recordings of a command: files, and folders that are searched."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from braindecode_pars._subjects import without_ending
from braindecode_pars.recordings._search import is_recording, list_files, why_unreadable
from braindecode_pars.recordings.readers import ENDINGS

__all__ = ["find_recordings"]


def find_recordings(paths: Iterable[Path]) -> dict[Path, Path]:
    """Return recordings, and where the results of each belong below a folder.

    Parameters
    ----------
    paths : iterable of Path
        Files, and folders with recordings at any depth. A file that does not exist is kept, so that
        the others are predicted.

    Returns
    -------
    dict of Path to Path
        For each recording, its name without ending; in a folder that was searched, with the folders
        above it.

    Raises
    ------
    ValueError
        When a folder has no recording or cannot be searched, or two recordings would have the same
        results.
    """
    found: dict[Path, Path] = {}
    for path in (path.expanduser() for path in paths):
        for file, target in (_in_folder(path) if path.is_dir() else _alone(path)).items():
            found.setdefault(file.absolute(), target)
    seen: dict[Path, Path] = {}
    for file, target in found.items():
        if (first := seen.setdefault(target, file)) != file:
            together = "pass the folder that contains both, or " * (file.parent != first.parent)
            raise ValueError(
                f"{first} and {file} would have the same results, {target}_predictions.csv; "
                f"{together}predict them into different folders."
            )
    return found


def _alone(file: Path) -> dict[Path, Path]:
    return {file: Path(without_ending(file.name))}


def _in_folder(folder: Path) -> dict[Path, Path]:
    found = list_files(folder, lambda name: name.lower().endswith(ENDINGS))
    files = [file for file in found if why_unreadable(file) or is_recording(file)]
    if not files:
        raise ValueError(
            f"{folder} contains no recording; expected files that end with {', '.join(ENDINGS)}."
        )
    return {file: file.relative_to(folder).with_name(without_ending(file.name)) for file in files}
