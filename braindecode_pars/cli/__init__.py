"""Command line interface ``braindecode-pars``.

Each command imports torch and other slow packages only when it runs, so that ``--help`` is fast.
"""

import sys
import warnings
from typing import Any

import lazy_loader

from braindecode_pars._common import names

# ``app`` is imported lazily, so that ``main`` can report which extra installs a missing package.
__getattr__, __dir__, _ = lazy_loader.attach(__name__, submod_attrs={"commands": ["app"]})
__all__ = ["main"]


def main() -> None:
    """Run the command line interface ``braindecode-pars``.

    Examples
    --------
    >>> from braindecode_pars.cli import main
    >>> main()  # doctest: +SKIP
    """
    # Escape characters that the terminal cannot show: an encoding error must not end a command.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    warnings.formatwarning = _plain
    # Hide the warning about montage names that braindecode 1.8 uses and MNE has deprecated.
    warnings.filterwarnings("ignore", category=FutureWarning, module="mne")
    try:
        from braindecode_pars.cli.commands import app
    except ModuleNotFoundError as error:
        sys.exit(str(names.with_extra(error)))

    app(prog_name="braindecode-pars")


def _plain(message: Any, category: type[Warning], *where: Any, **named: Any) -> str:
    """Format a warning without a line of code: it would be code of the package, not of the user."""
    if issubclass(category, UserWarning):
        return f"Warning: {message}\n"
    return _formatwarning(message, category, *where, **named)


_formatwarning = warnings.formatwarning
