"""The progress bar of all that takes long: in a terminal or notebook a bar, in a log file lines."""

from __future__ import annotations

import time
from typing import Any

import tqdm.auto
import tqdm.std

#: Seconds between two lines in a log file.
_INTERVAL = 60.0

#: In a notebook, the bar is a widget.
_IS_WIDGET = tqdm.auto.tqdm.display is not tqdm.std.tqdm.display


class ProgressBar(tqdm.auto.tqdm):
    """A bar of tqdm that writes to a log file at its start and end, and a line a minute.

    A bar is drawn again and again over itself, which a file keeps as hundreds of lines.

    Parameters
    ----------
    *arguments, **options
        As in ``tqdm.tqdm``.

    Examples
    --------
    >>> import io
    >>> from braindecode_pars._common.progress import ProgressBar
    >>> log = io.StringIO()
    >>> for _ in ProgressBar(range(1000), file=log):
    ...     pass
    >>> log.getvalue().count("it/s")
    2
    """

    def __init__(self, *arguments: Any, **options: Any):
        self._next_line = 0.0
        super().__init__(*arguments, **options)

    @property
    def _writes_lines(self) -> bool:
        is_terminal = getattr(self.fp, "isatty", None)  # a log that takes texts may have none
        return not (_IS_WIDGET or (is_terminal is not None and is_terminal()))

    def display(self, msg: str | None = None, pos: int | None = None, **options: Any) -> Any:
        """Draw the bar, or write a line if it is time for one."""
        if not self._writes_lines:
            return super().display(msg, pos, **options)
        if msg is None and time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + _INTERVAL
            self.fp.write(f"{self}\n")
            self.fp.flush()
        return False  # there is nothing to clear

    def clear(self, *arguments: Any, **options: Any) -> None:
        """Clear the bar; a line stays."""
        if not self._writes_lines:
            super().clear(*arguments, **options)

    def close(self) -> None:
        """End the bar; a log file gets its last state."""
        if not self.disable and self._writes_lines:
            self._next_line = 0.0
            self.display()
            self.leave = False  # tqdm would draw it once more
        super().close()
