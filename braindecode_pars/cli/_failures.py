"""How a command ends when it cannot go on: one sentence, and an exit status."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

__all__ = ["failures_told"]


@contextmanager
def failures_told(kept: str = "") -> Iterator[None]:
    """Turn what a user can mend into one sentence; anything else keeps its traceback.

    Parameters
    ----------
    kept : str
        What is kept, to be said when Ctrl-C ends the command.
    """
    try:
        yield
    except KeyboardInterrupt:
        typer.secho(f"Interrupted. {kept}".strip(), err=True)
        raise typer.Exit(130) from None
    except (ValueError, TypeError, OSError, OverflowError, ImportError) as error:
        _tell(error)
    except RuntimeError as error:
        from braindecode_pars.evaluation import FoldError

        if not isinstance(error, FoldError):
            raise
        _tell(error)


def _tell(error: Exception) -> None:
    typer.secho(f"Error: {error}", fg=typer.colors.RED, err=True)
    raise typer.Exit(1) from None
