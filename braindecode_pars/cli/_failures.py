"""End a command with a short message and an exit status when it fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

__all__ = ["report_failures"]


@contextmanager
def report_failures(kept: str = "") -> Iterator[None]:
    """Print errors that a user can correct without a traceback; other errors keep theirs.

    Parameters
    ----------
    kept : str
        Sentence that is printed after Ctrl-C: which results are kept, and how to resume.
    """
    try:
        yield
    except KeyboardInterrupt:
        typer.secho(f"Interrupted. {kept}".strip(), err=True)
        raise typer.Exit(130) from None
    except (ValueError, TypeError, OSError, OverflowError, ImportError) as error:
        _exit_with(error)
    except RuntimeError as error:
        # Imported here, because the import takes seconds.
        from braindecode_pars.evaluation import FoldError

        if not isinstance(error, FoldError):
            raise
        _exit_with(error)


def _exit_with(error: Exception) -> None:
    typer.secho(f"Error: {error}", fg=typer.colors.RED, err=True)
    raise typer.Exit(1) from None
