"""Command line interface ``braindecode-pars``.

Each command imports torch and other slow packages only when it runs, so that ``--help`` is fast.
"""

import sys
import warnings
from typing import Any

import lazy_loader

from braindecode_pars._common import names

# ``app`` is imported lazily, so that ``main`` can name the extra of a missing package.
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
    warnings.formatwarning = _plain
    # braindecode 1.8 uses montage names that are deprecated in MNE.
    warnings.filterwarnings("ignore", category=FutureWarning, module="mne")
    try:
        from braindecode_pars.cli.commands import app
    except ModuleNotFoundError as error:
        sys.exit(str(names.with_extra(error)))

    app(prog_name="braindecode-pars")


def _plain(message: Any, category: type[Warning], *where: Any, **named: Any) -> str:
    """Format a warning without the line of code, which is not code of the user in a command."""
    if issubclass(category, UserWarning):
        return f"Warning: {message}\n"
    return _formatwarning(message, category, *where, **named)


_formatwarning = warnings.formatwarning
