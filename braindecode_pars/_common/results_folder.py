"""Folder for results: protects other files, locks the folder, and compares settings of calls."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from filelock import FileLock, Timeout

from braindecode_pars._common import checks, files

#: Maximum time in seconds to wait for the lock of a folder that only one process may use. Workers
#: of a killed process may hold the lock for a short time.
_WAIT_ALONE = 2.0
#: Maximum time in seconds to wait for the lock of a folder that several processes may use.
_WAIT_SHARED = 60.0
#: Maximum number of differing settings that an error message contains.
_MAX_DIFFERENCES = 10


@dataclass(frozen=True)
class ResultsFolder:
    """Folder for results of one kind, such as a signal store, a run, an evaluation or predictions.

    Several calls may write to the same folder, one after the other. If the folder contains files of
    other programs, or results that were computed with different settings, an error is raised.

    Attributes
    ----------
    path : Path
        Path of the folder.
    what : str
        Kind of the results, for messages, such as "a signal store".
    settings : mapping
        Settings on which all results depend. The values must be JSON serializable.
    marks : tuple of str
        Relative paths of files, or of folders if the path ends with a slash. If a folder contains
        one of these files or folders, it is considered a folder with results of this kind. Other
        programs may use the same names, so functions that read these files must check the content.
    grows : tuple of str
        Names of settings to which a later call may add entries, such as the methods of an
        evaluation.
    may_differ : tuple of str
        Names of settings that may differ between calls.
    allowed_files : tuple of str
        Names of other files that the folder may contain before results are written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from braindecode_pars._common.results_folder import ResultsFolder
    >>> with tempfile.TemporaryDirectory() as path:
    ...     folder = ResultsFolder(Path(path), "a result", {"seed": 0}, marks=("result.json",))
    ...     with folder.opened():
    ...         folder.put("result.json", {"score": 0.5})
    ...     folder.is_ours, folder.get("result.json")
    (True, {'score': 0.5})
    """

    path: Path
    what: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    marks: tuple[str, ...] = ()
    grows: tuple[str, ...] = ()
    may_differ: tuple[str, ...] = ()
    allowed_files: tuple[str, ...] = ()

    @property
    def is_ours(self) -> bool:
        """Whether the folder contains results of this kind."""
        return any(any(self.path.glob(mark)) for mark in self.marks)

    def check(self) -> None:
        """Check that the folder is new, empty, or contains results of this kind.

        Raises
        ------
        ValueError
            If the path is a file, or if the folder contains other files but no results of this
            kind. The message names one of these files.
        """
        if self.is_ours or not self.path.exists():
            return
        if not self.path.is_dir():
            raise ValueError(
                f"{self.path} is a file, but a folder for {self.what} is required. Pass the path "
                "of a new or empty folder."
            )
        # Locks and temporary folders of killed processes are ignored.
        names = (file.name for file in self.path.iterdir() if not file.name.startswith(files.ASIDE))
        other_files = sorted(
            name for name in names if name not in (*self.allowed_files, files.LOCK)
        )
        if other_files:
            raise ValueError(
                f"{self.path} contains other files ({checks.format_list(other_files, 1)}), but not "
                f"{self.what}. Pass a new or empty folder."
            )

    @contextmanager
    def opened(self, *, exclusive: bool = True) -> Iterator[Self]:
        """Create the folder if necessary, check it, and lock it inside the context.

        If a process is killed, the operating system releases its lock. An empty file ``.lock``
        remains in the folder.

        Parameters
        ----------
        exclusive : bool
            If True, only one process at a time may use the folder, and temporary folders of killed
            processes are removed immediately. If False, several processes may use the folder at the
            same time, and each process should hold the lock only while it compares and writes the
            settings.

        Raises
        ------
        ValueError
            As in :meth:`check`.
        BlockingIOError
            If another process holds the lock until the maximum waiting time has passed.
        """
        self.check()
        self.path.mkdir(parents=True, exist_ok=True)
        wait = _WAIT_ALONE if exclusive else _WAIT_SHARED
        try:
            lock = FileLock(self.path / files.LOCK).acquire(timeout=wait)
        except Timeout:
            raise BlockingIOError(
                f"Another process is writing to {self.path}. Wait until that process has finished."
            ) from None
        with lock:
            self.check()  # another process may have written to the folder in the meantime
            files.remove_abandoned(self.path, at_once=exclusive)
            yield self

    def check_settings(self, stored: Mapping[str, Any], advice: str = "") -> dict[str, Any]:
        """Check that the results in the folder were computed with the settings of this call.

        Parameters
        ----------
        stored : mapping
            Settings of the results in the folder, as read from JSON.
        advice : str
            Additional sentence at the end of the error message.

        Returns
        -------
        dict
            Settings to store: the settings of this call, to which the stored entries of the
            settings in ``grows`` are added.

        Raises
        ------
        ValueError
            If settings differ. The message contains the differences.
        """
        settings = files.as_read(self.settings)
        before, now = dict(stored), dict(settings)
        for name in self.grows:  # with the entries of both, so that added entries do not differ
            before[name] = {**settings[name], **stored.get(name, {})}
            now[name] = {**stored.get(name, {}), **settings[name]}
        compared = (
            {name: value for name, value in values.items() if name not in self.may_differ}
            for values in (before, now)
        )
        if changes := files.changed_settings(*compared):
            raise ValueError(
                f"{self.path} already contains {self.what} with different settings: "
                f"{'; '.join(changes[:_MAX_DIFFERENCES])}. Use the same settings, or pass another "
                f"folder. {advice}".rstrip()
            )
        return now

    def get(self, name: str) -> dict[str, Any] | None:
        """Return the content of a JSON file written by :meth:`put`; None if missing or damaged.

        Warns
        -----
        UserWarning
            If the file is damaged or was modified.
        """
        try:
            return files.read_checked(self.path / name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except ValueError as error:
            checks.warn_user(f"{error} In this call, the file is ignored.")
            return None

    def put(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a JSON file with a checksum to the folder, completely or not at all."""
        files.write_checked(self.path / name, content)
