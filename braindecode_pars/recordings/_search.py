"""Search of a folder for recordings, including those that cannot be read, with the reason."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import mne

from braindecode_pars._subjects import without_ending

__all__ = [
    "files_beside",
    "find_files",
    "find_named",
    "is_recording",
    "list_files",
    "table_beside",
    "why_unreadable",
]

#: Tables of BIDS beside a recording that are read.
_TABLES = ("events", "channels")


def find_files(root: Path, wanted: Callable[[str], bool]) -> dict[Path, str | None]:
    """Find files below a folder by their names, without opening them.

    Hidden files and folders are ignored, such as ``.git``, where git-annex keeps a second copy of
    every file. Links to files are followed, links to folders are not.

    Parameters
    ----------
    root : Path
        Folder to search.
    wanted : callable
        Function that receives the name of a file and returns whether it is wanted.

    Returns
    -------
    dict of Path to (str | None)
        Sorted paths. The value is None for a file, otherwise the reason why it cannot be read. Such
        entries are dead links, folders with the name of a file, links to folders outside ``root``
        that contain wanted files, and folders without permission.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings._search import find_files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, "a.edf").touch()
    ...     Path(folder, "b.edf").symlink_to("nowhere")
    ...     for file, reason in find_files(Path(folder), lambda name: name[-4:] == ".edf").items():
    ...         print(file.name, str(reason)[:47])
    a.edf None
    b.edf it is a link to a file that does not exist; dow
    """
    found: dict[Path, str | None] = {}

    def add_unlisted(error: OSError) -> None:
        found[Path(error.filename)] = f"its files cannot be listed ({error.strerror})."

    for folder, folders, files in os.walk(root, onerror=add_unlisted):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if not name.startswith(".") and wanted(name):
                path = Path(folder, name)
                found[path] = why_unreadable(path)
        for name in folders:
            path = Path(folder, name)
            reason = _why_not_searched(path, root, wanted)
            if reason is not None:
                found[path] = reason
    return dict(sorted(found.items()))


def list_files(root: Path, wanted: Callable[[str], bool]) -> list[Path]:
    """Return the files of :func:`find_files`, of which dead links are reported when they are read.

    Raises
    ------
    ValueError
        When files may be missing: at a link to a folder with wanted files, or a folder that cannot
        be listed. Their subjects are unknown, so these could neither be chosen nor excluded.
    """
    found = find_files(root, wanted)
    for path, reason in found.items():
        if reason is not None and path.is_dir() and not wanted(path.name):
            raise ValueError(f"{path} cannot be searched: {reason}")
    return list(found)


def find_named(path: str | Path, pattern: re.Pattern) -> list[tuple[Path, re.Match]]:
    """Find recordings whose names tell what they are, in whichever folders they are.

    Parameters
    ----------
    path : path
        Folder to search, at any depth.
    pattern : re.Pattern
        Regular expression of a whole name, such as ``S(\\d{3})R(\\d{2})\\.edf``.

    Returns
    -------
    list of (Path, re.Match)
        Files and the matches of their names, in the order of the names.

    Raises
    ------
    ValueError
        When two files have the same name, or when files may be missing, see :func:`list_files`.

    Examples
    --------
    >>> import re, tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings._search import find_named
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, "S007R04.edf").touch()
    ...     [(file, match)] = find_named(folder, re.compile(r"S(\\d{3})R(\\d{2})\\.edf"))
    >>> file.name, match.groups()
    ('S007R04.edf', ('007', '04'))
    """
    by_name: dict[str, Path] = {}
    for file in list_files(Path(path).expanduser(), lambda name: bool(pattern.fullmatch(name))):
        first = by_name.setdefault(file.name, file)
        if first != file:
            raise ValueError(
                f"{path} has two recordings with the name {file.name}: {first} and {file}. Pass a "
                "folder that has one of them."
            )
    matches = ((by_name[name], pattern.fullmatch(name)) for name in sorted(by_name))
    return [(file, match) for file, match in matches if match]


def is_recording(file: Path) -> bool:
    """Whether a file is a recording of its own, not a part of another one.

    A file that cannot be opened is one, so that reading it reports it.
    """
    if file.name.lower().endswith(".hea"):
        # The header of a multi-segment record, "name/n_segments ...", is skipped: each segment
        # has a header of its own.
        try:
            return "/" not in (file.read_text(errors="replace").split() or [""])[0]
        except OSError:
            return True
    return not _is_later_part(file)


def _is_later_part(file: Path) -> bool:
    """Whether a FIF file is a later part of a split recording; MNE reads it with the first."""
    # Names of the first part: name-1.fif follows name.fif, split-02 follows split-01.
    firsts = {
        re.sub(r"-[1-9]\d*(\.fif(\.gz)?)$", r"\1", file.name),
        re.sub(r"_split-(\d+)_", lambda part: f"_split-{1:0{len(part[1])}}_", file.name),
    }
    found = (file.with_name(name) for name in firsts - {file.name})
    return any(first.exists() and _has_part(first, file) for first in found)


def _has_part(first: Path, file: Path) -> bool:
    """Whether MNE reads a file with the first part; names may look alike by chance."""
    try:
        parts = mne.io.read_raw_fif(first, verbose="error").filenames
    except Exception:  # of many types; reading the first part raises the full message
        return True
    return file.name in (Path(part).name for part in parts)


def why_unreadable(file: Path) -> str | None:
    """Return the reason why a path is not a file that can be opened; None if it is one."""
    if file.is_symlink() and not file.exists():
        return (
            "it is a link to a file that does not exist; download the file first, for example "
            "with 'datalad get' or 'git annex get'."
        )
    if not file.exists():
        return "it does not exist."
    return None if file.is_file() else "it is not a file."


def _why_not_searched(folder: Path, root: Path, wanted: Callable[[str], bool]) -> str | None:
    """Return the reason why files in a folder are not found; None if they are, or there are none.

    A link into ``root`` hides nothing: its files are found under their own path.
    """
    if folder.is_symlink():
        if folder.resolve().is_relative_to(root.resolve()) or not _contains(folder, wanted):
            return None
        return (
            "it is a link to a folder with recordings, and such links are not followed; pass that "
            "folder itself, or replace the link by the folder."
        )
    if wanted(folder.name) and not _contains(folder, wanted):
        return "it is a folder, not a file."
    return None


def _contains(folder: Path, wanted: Callable[[str], bool]) -> bool:
    return any(wanted(name) for name in _names(folder))


def _names(folder: Path) -> Iterator[str]:
    for _, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (name for name in files if not name.startswith("."))


def files_beside(recording: Path) -> list[Path]:
    """Return a recording and the files of its samples and labels, by their names.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars.recordings._search import files_beside
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("a.edf", "a.csv_bi", "ab.edf"):
    ...         Path(folder, name).touch()
    ...     [file.name for file in files_beside(Path(folder, "a.edf"))]
    ['a.csv_bi', 'a.edf']
    """
    names = [f"{glob.escape(recording.stem)}.*"]
    # In BIDS, sub-01_task-sleep_events.tsv annotates sub-01_task-sleep_eeg.set.
    if recording.stem.endswith("_eeg"):
        names.append(f"{glob.escape(recording.stem.removesuffix('_eeg'))}_*")
    found = {file for name in names for file in recording.parent.glob(name)}
    found |= {table for name in _TABLES if (table := table_beside(recording, name))}
    return sorted(file for file in found if file.exists())  # skips dead links


def table_beside(recording: Path, suffix: str) -> Path | None:
    """Return the table of BIDS beside a recording, such as sub-01_task-rest_events.tsv."""
    stem = re.sub(r"_i?eeg$", "", without_ending(recording.name))
    table = recording.with_name(f"{stem}_{suffix}.tsv")
    return table if table.is_file() else None
