"""The progress bar of all that takes long; a log file gets it once a minute."""

from __future__ import annotations

import sys
from typing import Any

import tqdm.auto
import tqdm.std

#: Seconds between two states of the bar in a log file.
_INTERVAL = 60.0

#: In a notebook, the bar is a widget.
_IS_WIDGET = tqdm.auto.tqdm.display is not tqdm.std.tqdm.display


class ProgressBar(tqdm.auto.tqdm):
    """A bar of tqdm that writes to a log file at its start and end, and once a minute.

    A bar is drawn again and again over itself, which a file keeps as hundreds of states.

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
        is_terminal = getattr(options.get("file") or sys.stderr, "isatty", bool)()
        if not (_IS_WIDGET or is_terminal):
            options = {"mininterval": _INTERVAL, **options}
        super().__init__(*arguments, **options)
