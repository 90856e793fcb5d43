"""Files that are there as a whole or not at all, whenever the machine stops; locked folders."""

from __future__ import annotations

import os
import shutil
import tempfile
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


@contextmanager
def written_aside(folder: Path) -> Iterator[Path]:
    """Write files into a temporary folder, then put all of them in their places, or none.

    A reader never sees half a file. Several processes may write into one folder at once.

    Parameters
    ----------
    folder : Path
        Where the files belong; made when it does not exist.

    Yields
    ------
    Path
        An empty folder. The files in it at the end replace those of the same names in ``folder``.

    Raises
    ------
    OSError
        When they cannot be written; what ``folder`` held before is unchanged.
    """
    told = folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=_ASIDE, dir=folder) as temporary:
            new, old = Path(temporary, "new"), Path(temporary, "old")
            new.mkdir()
            old.mkdir()
            yield new
            # What describes the others comes last: where it is, all of it is.
            names = [file.name for file in sorted(new.iterdir(), key=_describes)]
            told = folder / names[0] if len(names) == 1 else folder
            for name in names:
                _sync(new / name)
            _exchange(folder, new, old, names)
        with suppress(OSError):  # some systems cannot open or sync a folder
            _sync(folder)
    except OSError as error:
        raise type(error)(
            error.errno,
            f"{told} cannot be written ({error.strerror}); what was there before is unchanged",
        ) from error


def replace_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write several files that belong together, all of them or none.

    Parameters
    ----------
    folder : Path
        Made when it does not exist.
    contents : mapping of str to bytes
        By file name.

    Raises
    ------
    OSError
        When they cannot be written; what the folder held before is unchanged.
    """
    with written_aside(folder) as aside:
        for name, content in contents.items():
            (aside / name).write_bytes(content)


def replace_file(path: Path, content: bytes | str) -> None:
    """Write one file, as a whole or not at all; text is written as UTF-8.

    Raises
    ------
    OSError
        When it cannot be written; what was there before is unchanged.
    """
    content = content.encode() if isinstance(content, str) else content
    replace_files(path.parent, {path.name: content})


def _exchange(folder: Path, new: Path, old: Path, names: list[str]) -> None:
    """Put all new files in the place of the old ones, or none."""
    try:
        for name in names:
            if len(names) > 1:  # one rename is atomic, and needs no copy to undo it
                with suppress(FileNotFoundError):
                    shutil.copy2(folder / name, old / name)
        for name in names:
            os.replace(new / name, folder / name)
    except BaseException:
        for name in names:
            if (new / name).exists():
                continue  # not exchanged yet
            if (old / name).exists():
                os.replace(old / name, folder / name)
            else:
                (folder / name).unlink()
        raise


def _describes(file: Path) -> tuple[bool, str]:
    return file.suffix == ".json", file.name


def _sync(path: Path) -> None:
    """Make a file, or the names in a folder, survive a loss of power."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(folder: Path, told: str) -> Iterator[None]:
    """Keep other processes from writing into a folder; a process that is killed releases it.

    Parameters
    ----------
    folder : Path
        Made when it does not exist; keeps an empty file ``.lock``.
    told : str
        What to say when another process has it.

    Raises
    ------
    BlockingIOError
        When another process has locked it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / _LOCK)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise BlockingIOError(told) from None
    try:
        yield
    finally:
        lock.release()


def is_leftover(file: Path) -> bool:
    """Whether a file is a lock, or what a killed process has left aside."""
    return file.name == _LOCK or file.name.startswith(_ASIDE)


def remove_leftovers(folder: Path) -> None:
    """Remove what killed processes have left aside. Call it while the folder is locked."""
    for aside in folder.glob(f"{_ASIDE}*"):
        shutil.rmtree(aside, ignore_errors=True)
