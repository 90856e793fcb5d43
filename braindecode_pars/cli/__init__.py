"""Command line interface ``braindecode-pars``.

Each command imports torch and other slow packages only when it runs, so that ``--help`` is fast.
"""

import os
import signal
import sys
import warnings
from types import FrameType
from typing import Any

import lazy_loader

from braindecode_pars._common import names

# ``app`` is imported lazily, so that ``main`` handles Ctrl-C during the imports.
__getattr__, __dir__, _ = lazy_loader.attach(__name__, submod_attrs={"commands": ["app"]})
__all__ = ["main"]


def main() -> None:
    """Run the command line interface ``braindecode-pars``.

    Examples
    --------
    >>> from braindecode_pars.cli import main
    >>> main()  # doctest: +SKIP
    """
    # Characters that the terminal cannot show must not stop a command after hours of computing.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    # Keep the setting of a shell that ignores Ctrl-C.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)
    warnings.formatwarning = _plain
    try:
        from braindecode_pars.cli.commands import app
    except ModuleNotFoundError as error:
        sys.exit(str(names.with_extra(error)))

    app(prog_name="braindecode-pars")


def leave(number: int, frame: FrameType | None) -> None:
    """End the process immediately after Ctrl-C during the imports.

    A KeyboardInterrupt during an import is unreliable: extension modules convert it to an
    ImportError or abort the process, some packages catch it, and Python prints a traceback if it
    occurs in a callback of the import system. No files have been written at this time.
    """
    os.write(2, b"Interrupted.\n")
    os._exit(130)


def _plain(message: Any, category: type[Warning], *where: Any, **named: Any) -> str:
    """Format a warning without the line of code, which is not code of the user in a command."""
    if issubclass(category, UserWarning):
        return f"Warning: {message}\n"
    return _formatwarning(message, category, *where, **named)


_formatwarning = warnings.formatwarning
