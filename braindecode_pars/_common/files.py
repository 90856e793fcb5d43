"""Files: atomic writing, checksums, JSON, and comparison of settings.

A file is written completely or not at all, even if the process is killed or the power fails.
"""

import hashlib
import importlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from math import isfinite
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
from filelock import FileLock, Timeout

#: Prefix of temporary folders.
ASIDE = ".writing-"
#: Name of lock files.
LOCK = ".lock"
#: Minimum age in seconds of an unlocked temporary folder that is removed. A younger folder may
#: belong to a running process that has not locked it yet.
_YOUNG = 5.0


@contextmanager
def written_aside(folder: Path) -> Iterator[Path]:
    """Write files to a temporary folder, and move them to the target folder when all are written.

    Other processes never read an incomplete file. Several processes may write to the same folder at
    the same time.

    Parameters
    ----------
    folder : Path
        Target folder. Created if it does not exist.

    Yields
    ------
    Path
        Empty temporary folder. At the end of the context, its files replace the files with the same
        names in ``folder``.

    Raises
    ------
    OSError
        If the files cannot be written. Each file in ``folder`` then has either its previous or its
        new content.
    """
    target = folder  # path that is shown in the error message
    try:
        folder.mkdir(parents=True, exist_ok=True)
        remove_abandoned(folder)
        with (
            tempfile.TemporaryDirectory(prefix=ASIDE, dir=folder) as temporary,
            FileLock(Path(temporary, LOCK)),  # prevents removal by other processes
        ):
            new = Path(temporary, "new")
            new.mkdir()
            yield new
            # JSON files describe the other files. They are moved last, so that the files that they
            # describe exist when a JSON file is read.
            files = sorted(new.iterdir(), key=lambda file: (file.suffix == ".json", file.name))
            names = [file.name for file in files]
            target = folder / names[0] if len(names) == 1 else folder
            for name in names:
                _sync(new / name)
            for name in names:
                os.replace(new / name, folder / name)
        with suppress(OSError):  # some systems cannot open or sync a folder
            _sync(folder)
    except OSError as error:
        raise type(error)(
            error.errno,
            f"{target} cannot be written ({error.strerror}). No file is damaged: each file has "
            "either its previous or its new content. Fix the problem, and repeat the call.",
        ) from error


def replace_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write several files to a folder. Existing files are replaced only when all are written.

    Parameters
    ----------
    folder : Path
        Folder of the files. Created if it does not exist.
    contents : mapping of str to bytes
        Content of each file, by file name.

    Raises
    ------
    OSError
        If the files cannot be written, see :func:`written_aside`.
    """
    with written_aside(folder) as aside:
        for name, content in contents.items():
            (aside / name).write_bytes(content)


def replace_file(path: Path, content: bytes | str) -> None:
    """Write a file completely or not at all. Text is encoded as UTF-8.

    Raises
    ------
    OSError
        If the file cannot be written. An existing file is then unchanged.
    """
    content = content.encode() if isinstance(content, str) else content
    replace_files(path.parent, {path.name: content})


def remove_abandoned(folder: Path, *, at_once: bool = False) -> list[Path]:
    """Remove temporary folders of killed processes.

    Temporary folders of running processes are locked, and are not removed.

    Parameters
    ----------
    folder : Path
        Folder to which :func:`written_aside` wrote files.
    at_once : bool
        If False, temporary folders in subfolders, and temporary folders younger than 5 seconds, are
        not removed. (A running process may not have locked a young folder yet.) If True, all
        temporary folders that are not locked are removed. Use True only if no other process uses
        the folder.

    Returns
    -------
    list of Path
        Temporary folders directly in ``folder`` that were not removed.
    """
    for aside in folder.glob(f"**/{ASIDE}*" if at_once else f"{ASIDE}*"):
        with suppress(OSError, Timeout):  # removed by another process, or locked
            # If a temporary folder contains other files, it was not created by this package.
            is_ours = {file.name for file in aside.iterdir()} <= {LOCK, "new", "old"}
            if is_ours and (at_once or time.time() - aside.stat().st_mtime > _YOUNG):
                with FileLock(aside / LOCK, blocking=False):
                    shutil.rmtree(aside)
    return list(folder.glob(f"{ASIDE}*"))


def _sync(path: Path) -> None:
    """Flush a file or a directory entry to disk, so that it survives a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_blake2b = partial(hashlib.blake2b, digest_size=8)


def checksum_of(content: Any) -> str:
    """Return the BLAKE2b checksum of bytes or of a C-ordered array, as 16 hexadecimal digits.

    Examples
    --------
    >>> from braindecode_pars._common.files import checksum_of
    >>> checksum_of(b"ab")
    '0e52b5f187de1088'
    """
    return _blake2b(content).hexdigest()


def checksum_of_file(file: Path) -> str:
    """Return the checksum of the content of a file, without loading the whole file into memory."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, _blake2b).hexdigest()


def plain(value: Any) -> Any:
    """Convert a scalar to a JSON-serializable value.

    NumPy scalars become Python numbers. Missing values (NaN, NA) become None. All other objects,
    and infinite numbers, are converted with ``str``.

    Parameters
    ----------
    value : Any
        Value to convert. It must not be a list or dict.

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
    """Convert nested lists and dicts to indented JSON that ends with a line break."""
    return json.dumps(value, indent=2, default=plain) + "\n"


def as_read(value: Any) -> Any:
    """Convert a value to JSON and back, so that it equals the same value read from a JSON file."""
    return json.loads(to_json(value))


def parse_json(text: str | bytes) -> dict[str, Any]:
    """Parse a text that contains a JSON object.

    Raises
    ------
    ValueError
        If the text is not valid JSON, or not a JSON object.

    Examples
    --------
    >>> from braindecode_pars._common.files import parse_json
    >>> parse_json('{"sfreq": 200.0}')
    {'sfreq': 200.0}
    """
    content = json.loads(text)
    if not isinstance(content, dict):
        raise ValueError(f"expected a JSON object, got a {type(content).__name__}")
    return content


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file.

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
        If the file does not exist.
    ValueError
        If the file is not valid JSON, or does not contain a JSON object.
    """
    try:
        return parse_json(path.read_bytes())
    except ValueError as error:  # also for invalid UTF-8
        raise ValueError(
            f"{path} is not a valid JSON file: {error}. Correct the file, or create it again."
        ) from error


def write_checked(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object with a checksum to a file, completely or not at all.

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
    """Read a JSON object written by :func:`write_checked`, and verify its checksum.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If the file does not match its checksum, because it was modified or damaged.
    """
    content = read_json(path)
    if content.pop("checksum", None) != checksum_of(to_json(content).encode()):
        raise ValueError(
            f"{path} does not match its checksum: the file was modified or damaged after it was "
            "written. Restore the original file, or create it again."
        )
    return content


def changed_settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Describe the differences between two sets of settings, for a message.

    Parameters
    ----------
    before : mapping
        Stored settings, as read from JSON.
    now : mapping
        New settings.

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
    # Converted to JSON and back, so that tuples equal lists, and NumPy equals Python numbers.
    return list(_differences(as_read(before), as_read(now), ""))


def _differences(before: Any, now: Any, path: str) -> Iterator[str]:
    # Differing values are named by their path in the settings: "task.name" or "channels[2]".
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
    """Import a Python file as a module with the name of the file.

    The code in the file is run once per process.

    Raises
    ------
    ValueError
        If the file does not exist, or if another module has the same name.
    """
    path, file = file, file.expanduser().resolve()
    if not file.is_file():
        raise ValueError(f"{path} does not exist. Pass the path of an existing Python file.")
    # The folder is added to sys.path, so that worker processes can also import the module.
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    module = importlib.import_module(file.stem)
    if Path(module.__file__ or "").resolve() != file:
        raise ValueError(f"{path} has the same name as another Python module. Rename the file.")
    return module
