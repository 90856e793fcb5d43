"""Files and folders: atomic writing, locks, checksums, JSON, and the comparison of settings.

A file is written completely or not at all, also when the process is killed or the power fails. What
another program wrote is never overwritten.
"""

import hashlib
import importlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from math import isfinite
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
from filelock import FileLock, Timeout

from braindecode_pars._common.checks import format_list

_ASIDE = ".writing-"
_LOCK = ".lock"
#: Age in seconds below which a temporary folder is kept: its process may not have locked it yet.
_YOUNG = 5.0


@contextmanager
def written_aside(folder: Path) -> Iterator[Path]:
    """Write files into a temporary folder, then move them into a folder once all are written.

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
        remove_abandoned(folder)
        with (
            tempfile.TemporaryDirectory(prefix=_ASIDE, dir=folder) as temporary,
            FileLock(Path(temporary, _LOCK)),  # shows other processes that this one is alive
        ):
            new = Path(temporary, "new")
            new.mkdir()
            yield new
            # JSON files describe the other files. They are moved last, so a reader that finds one
            # also finds the files that it describes.
            files = sorted(new.iterdir(), key=lambda file: (file.suffix == ".json", file.name))
            names = [file.name for file in files]
            target = folder / names[0] if len(names) == 1 else folder
            for name in names:
                _sync(new / name)
            for name in names:
                os.replace(new / name, folder / name)
        with suppress(OSError):  # some systems cannot open a folder or sync it
            _sync(folder)
    except OSError as error:
        raise type(error)(
            error.errno,
            f"{target} cannot be written ({error.strerror}); its previous content is unchanged",
        ) from error


def replace_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write several files of a folder; none is replaced before all are written.

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


def remove_abandoned(folder: Path, *, at_once: bool = False) -> list[Path]:
    """Remove temporary folders of killed processes; those of living processes are locked.

    Parameters
    ----------
    folder : Path
        Folder that files were written into.
    at_once : bool
        Whether to remove also those that are so young that their process may not have locked them.

    Returns
    -------
    list of Path
        Those that are left.
    """
    for aside in folder.glob(f"{_ASIDE}*"):
        with suppress(OSError, Timeout):  # another process has removed it, or is writing it
            # A folder of the user with such a name has other files.
            is_ours = {file.name for file in aside.iterdir()} <= {_LOCK, "new", "old"}
            if is_ours and (at_once or time.time() - aside.stat().st_mtime > _YOUNG):
                with FileLock(aside / _LOCK, blocking=False):
                    shutil.rmtree(aside)
    return list(folder.glob(f"{_ASIDE}*"))


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
    try:
        lock = FileLock(folder / _LOCK).acquire(timeout=wait)
    except Timeout:
        raise BlockingIOError(message) from None
    with lock:
        yield


def check_may_write(
    folder: Path, kind: str, *, is_ours: bool, beside: Collection[str] = ()
) -> None:
    """Check that a folder is new, empty, or of the kind that is going to be written.

    Parameters
    ----------
    folder : Path
        Folder to write.
    kind : str
        What is going to be written, for the error message, such as "a saved PARSNet".
    is_ours : bool
        Whether the folder already is of this kind.
    beside : collection of str
        Names of files that may be there, because they are not written.

    Raises
    ------
    ValueError
        When the folder is a file, or contains anything else. The message names a file in the way.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars._common.files import check_may_write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     check_may_write(Path(folder), "a store", is_ours=False)  # empty
    """
    if is_ours or not folder.exists():
        return
    if not folder.is_dir():
        raise ValueError(f"{folder} is a file; pass a folder for {kind}.")
    # A lock and temporary folders of killed processes do not count.
    names = (file.name for file in folder.iterdir() if not file.name.startswith(_ASIDE))
    others = sorted(name for name in names if name not in (*beside, _LOCK))
    if others:
        raise ValueError(
            f"{folder} contains {format_list(others, most=1)}, and is not the folder of {kind}; pass an "
            "empty or new folder."
        )


_blake2b = partial(hashlib.blake2b, digest_size=8)


def checksum_of(content: Any) -> str:
    """Return a checksum of bytes or of a C-ordered array, 16 hexadecimal digits (BLAKE2b).

    Examples
    --------
    >>> from braindecode_pars._common.files import checksum_of
    >>> checksum_of(b"ab")
    '0e52b5f187de1088'
    """
    return _blake2b(content).hexdigest()


def checksum_of_file(file: Path) -> str:
    """Return the checksum of the content of a file, without reading all of it at once."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, _blake2b).hexdigest()


def plain(value: Any) -> Any:
    """Convert one value to a type that JSON supports.

    NumPy scalars become Python numbers. Missing values (NaN, NA) become None. Any other object
    becomes its ``str``.

    Parameters
    ----------
    value : Any
        Value to convert; not a list or dict.

    Returns
    -------
    bool | int | float | str | None
        Converted value.
    """
    value = value.item() if hasattr(value, "item") else value
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return None
    is_number = isinstance(value, (bool, int)) or (isinstance(value, float) and isfinite(value))
    return value if is_number else str(value)


def to_json(value: Any) -> str:
    """Return lists, dicts and values as indented JSON that ends with a line break."""
    return json.dumps(value, indent=2, default=plain) + "\n"


def as_read(value: Any) -> Any:
    """Convert to JSON and back, to compare a value with one that was read from a file."""
    return json.loads(to_json(value))


def parse_json(text: str | bytes) -> dict[str, Any]:
    """Return a JSON object.

    Raises
    ------
    ValueError
        When the text is not JSON, or not an object.

    Examples
    --------
    >>> from braindecode_pars._common.files import parse_json
    >>> parse_json('{"sfreq": 200.0}')
    {'sfreq': 200.0}
    """
    try:
        content = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(content, dict):
        raise ValueError(f"it contains a {type(content).__name__}, not a JSON object")
    return content


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Parameters
    ----------
    path : Path
        Path of the file.

    Returns
    -------
    dict
        Content of the file.

    Raises
    ------
    FileNotFoundError
        When the file does not exist.
    ValueError
        When the file is damaged, or does not contain a JSON object.
    """
    try:
        return parse_json(path.read_bytes())
    except (ValueError, IsADirectoryError) as error:  # also for invalid UTF-8
        raise ValueError(f"{path} is damaged or not a JSON file: {error}.") from error


def write_checked(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object and its checksum, completely or not at all.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars._common.files import read_checked, write_checked
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_checked(Path(folder, "a.json"), {"sfreq": 200.0})
    ...     read_checked(Path(folder, "a.json"))
    {'sfreq': 200.0}
    """
    checksum = checksum_of(to_json(content).encode())
    replace_file(path, to_json({**content, "checksum": checksum}))


def read_checked(path: Path) -> dict[str, Any]:
    """Read what :func:`write_checked` has written.

    Raises
    ------
    FileNotFoundError
        When the file does not exist.
    ValueError
        When the file was damaged or edited.
    """
    content = read_json(path)
    if content.pop("checksum", None) != checksum_of(to_json(content).encode()):
        raise ValueError(f"{path} does not match its checksum.")
    return content


def changed_settings(
    before: Mapping[str, Any], now: Mapping[str, Any], *, ignore: Collection[str] = ()
) -> list[str]:
    """Return the differences between two sets of settings as phrases for a message.

    Parameters
    ----------
    before : mapping
        Stored settings, as read from JSON.
    now : mapping
        New settings.
    ignore : collection of str
        Names of settings that may differ.

    Returns
    -------
    list of str
        One phrase per difference, for example "lr is 0.001, was 0.0001".

    Examples
    --------
    >>> from braindecode_pars._common.files import changed_settings
    >>> changed_settings({"lr": 0.1, "task": {"name": "pars"}}, {"lr": 0.2, "task": {"name": "x"}})
    ['lr is 0.2, was 0.1', "task.name is 'x', was 'pars'"]
    """
    # Both as JSON values, so that tuples equal lists and NumPy numbers equal Python numbers.
    before, now = (
        {name: value for name, value in settings.items() if name not in ignore}
        for settings in (as_read(before), as_read(now))
    )
    return list(_differences(before, now, ""))


def _differences(before: Any, now: Any, path: str) -> Iterator[str]:
    # Only values that differ are named, by their path: "task.name", "channels[2]".
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for name in dict.fromkeys([*now, *before]):
            inner = f"{path}.{name}" if path else str(name)
            if name not in before:
                yield f"{inner} is {now[name]!r:.60}, was not set"
            elif name not in now:
                yield f"{inner} is not set, was {before[name]!r:.60}"
            else:
                yield from _differences(before[name], now[name], inner)
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for i, (old, new) in enumerate(zip(before, now, strict=True)):
            yield from _differences(old, new, f"{path}[{i}]")
    elif before != now:
        yield f"{path} is {now!r:.60}, was {before!r:.60}"


def import_file(file: Path) -> ModuleType:
    """Import a Python file as a module of its name. Its code is run, once in a process.

    Raises
    ------
    ValueError
        When it does not exist, or has the name of another module.
    """
    path, file = file, file.expanduser().resolve()
    if not file.is_file():
        raise ValueError(f"{path} does not exist; pass the path of a Python file.")
    # Worker processes have the same path, and import the module for themselves.
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    module = importlib.import_module(file.stem)
    if Path(module.__file__ or "").resolve() != file:
        raise ValueError(f"{path} has the name of another module; rename the file.")
    return module
