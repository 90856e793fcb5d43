"""Atomic writing of files, which also survives a crash or a loss of power; locks on folders."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

__all__ = [
    "is_leftover",
    "locked",
    "remove_leftovers",
    "replace_file",
    "replace_files",
    "written_aside",
]

_ASIDE = ".writing-"
_LOCK = ".lock"
#: Age in seconds below which a temporary folder is kept: its process may not have locked it yet.
_YOUNG = 5.0


@contextmanager
def written_aside(folder: Path) -> Iterator[Path]:
    """Write files into a temporary folder, then move all of them into a folder, or none.

    A reader never sees an incomplete file. Several processes may write into the same folder at the
    same time.

    Parameters
    ----------
    folder : Path
        Folder of the files; created when it does not exist.

    Yields
    ------
    Path
        An empty temporary folder. At the end, the files in it replace the files of the same names
        in ``folder``.

    Raises
    ------
    OSError
        When the files cannot be written; the previous content of ``folder`` is unchanged.
    """
    target = folder  # of the error message
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(folder)
        with (
            tempfile.TemporaryDirectory(prefix=_ASIDE, dir=folder) as temporary,
            FileLock(Path(temporary, _LOCK)),  # shows other processes that this one is alive
        ):
            new, old = Path(temporary, "new"), Path(temporary, "old")
            new.mkdir()
            old.mkdir()
            yield new
            # JSON files describe the other files. They are moved last, so a reader that finds one
            # also finds the files that it describes.
            names = [file.name for file in sorted(new.iterdir(), key=_json_last)]
            target = folder / names[0] if len(names) == 1 else folder
            for name in names:
                _sync(new / name)
            _exchange(folder, new, old, names)
        with suppress(OSError):  # some systems cannot open a folder or sync it
            _sync(folder)
    except OSError as error:
        raise type(error)(
            error.errno,
            f"{target} cannot be written ({error.strerror}); its previous content is unchanged",
        ) from error


def replace_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write several files of a folder, all of them or none.

    Parameters
    ----------
    folder : Path
        Folder of the files; created when it does not exist.
    contents : mapping of str to bytes
        Content of each file, by file name.

    Raises
    ------
    OSError
        When the files cannot be written; the previous content of the folder is unchanged.
    """
    with written_aside(folder) as aside:
        for name, content in contents.items():
            (aside / name).write_bytes(content)


def replace_file(path: Path, content: bytes | str) -> None:
    """Write one file completely or not at all; text is encoded as UTF-8.

    Raises
    ------
    OSError
        When the file cannot be written; its previous content is unchanged.
    """
    content = content.encode() if isinstance(content, str) else content
    replace_files(path.parent, {path.name: content})


def _exchange(folder: Path, new: Path, old: Path, names: list[str]) -> None:
    """Replace all old files by the new ones, or none."""
    try:
        # Copies of the old files, to undo an exchange that fails in the middle.
        for name in names:
            if len(names) > 1:  # a single rename is atomic and needs no copy
                with suppress(FileNotFoundError):
                    shutil.copy2(folder / name, old / name)
        for name in names:
            os.replace(new / name, folder / name)
    except BaseException:
        # Undo: restore old files, remove new ones that replaced nothing.
        for name in names:
            if (new / name).exists():
                continue  # not exchanged yet
            if (old / name).exists():
                os.replace(old / name, folder / name)
            else:
                (folder / name).unlink()
        raise


def _remove_abandoned(folder: Path) -> None:
    """Remove temporary folders of killed processes; those of living processes are locked."""
    for aside in folder.glob(f"{_ASIDE}*"):
        with suppress(OSError, Timeout):  # another process has removed it, or is writing it
            # A folder of the user with such a name has other files.
            is_ours = {file.name for file in aside.iterdir()} <= {_LOCK, "new", "old"}
            if is_ours and time.time() - aside.stat().st_mtime > _YOUNG:
                with FileLock(aside / _LOCK, blocking=False):
                    shutil.rmtree(aside)


def _json_last(file: Path) -> tuple[bool, str]:
    return file.suffix == ".json", file.name


def _sync(path: Path) -> None:
    """Flush a file, or the list of names in a folder, to disk, so that it survives a power loss."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(folder: Path, message: str, *, wait: float = 0) -> Iterator[None]:
    """Lock a folder against other writers. The lock of a killed process is released.

    Parameters
    ----------
    folder : Path
        Folder to lock; created when it does not exist. An empty file ``.lock`` stays in it.
    message : str
        Error message when another process holds the lock.
    wait : float
        Seconds to wait for the other process.

    Raises
    ------
    BlockingIOError
        When another process holds the lock.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / _LOCK)
    try:
        lock.acquire(timeout=wait)
    except Timeout:
        raise BlockingIOError(message) from None
    try:
        yield
    finally:
        lock.release()


def is_leftover(file: Path) -> bool:
    """Whether a file is a lock, or a temporary folder of a killed process."""
    return file.name == _LOCK or file.name.startswith(_ASIDE)


def remove_leftovers(folder: Path) -> None:
    """Remove temporary folders of killed processes. The caller must hold the lock."""
    for aside in folder.glob(f"{_ASIDE}*"):
        shutil.rmtree(aside, ignore_errors=True)
