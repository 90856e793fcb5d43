"""The command line ``braindecode-pars``.

Each command imports torch and other slow packages only when it runs, so that ``--help`` is fast.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType

import lazy_loader

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
    # Until a command begins, there is nothing to keep. A shell may have told us to ignore Ctrl-C.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    from braindecode_pars.cli.commands import app

    app(prog_name="braindecode-pars")


def _leave(number: int, frame: FrameType | None) -> None:
    sys.stderr.write("Interrupted.\n")
    sys.exit(130)
