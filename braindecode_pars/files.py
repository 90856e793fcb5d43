"""Files that are there as a whole or not at all, whenever the machine stops."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows has none; there nothing keeps two writers apart
    fcntl = None

__all__ = ["locked", "replace_file"]


@contextmanager
def locked(descriptor: int, told: str) -> Iterator[None]:
    """Keep other processes from what is open; one that is killed lets go of it.

    Raises
    ------
    BlockingIOError
        When another process has it, with the sentence ``told``.
    """
    if fcntl is None:
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise BlockingIOError(told) from error
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file aside, sync it, and put it in the place of the old one.

    What a kill leaves aside is overwritten by the next writing under the same name.

    Raises
    ------
    OSError
        When it cannot be written; what was there before is unchanged.
    """
    aside = path.with_name(f".writing-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
        _sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            aside.unlink()
        raise type(error)(
            error.errno, f"{path} cannot be written ({error.strerror}); what was kept is unchanged"
        ) from error


def _sync_folder(folder: Path) -> None:
    """Make the new name outlive a loss of power, where a folder can be opened and synced."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
