"""The command line ``braindecode-pars``.

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

# ``app`` is imported when it is used, so that ``main`` handles Ctrl-C from the first moment.
__getattr__, __dir__, _ = lazy_loader.attach(__name__, submod_attrs={"commands": ["app"]})
__all__ = ["main"]


def main() -> None:
    """Run the command line ``braindecode-pars``.

    Examples
    --------
    >>> from braindecode_pars.cli import main
    >>> main()  # doctest: +SKIP
    """
    # A name that the terminal cannot show must not end a command that has computed for hours.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    # A shell may have told us to ignore Ctrl-C.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)
    warnings.formatwarning = _plain
    try:
        from braindecode_pars.cli.commands import app
    except ModuleNotFoundError as error:
        sys.exit(str(names.with_extra(error)))

    app(prog_name="braindecode-pars")


def leave(number: int, frame: FrameType | None) -> None:
    """End the process at once after Ctrl-C during the imports, whatever a package makes of it.

    A KeyboardInterrupt in an import is no safe way to end: extension modules turn it into an
    ImportError or abort the process, some packages catch it, and Python prints a traceback where
    it occurs in a callback of the import system. Nothing is written yet that could be lost.
    """
    os.write(2, b"Interrupted.\n")
    os._exit(130)


def _plain(message: Any, category: type[Warning], *where: Any, **named: Any) -> str:
    """Format a warning for users without a line of code, which is not theirs in a command."""
    if issubclass(category, UserWarning):
        return f"Warning: {message}\n"
    return _formatwarning(message, category, *where, **named)


_formatwarning = warnings.formatwarning
