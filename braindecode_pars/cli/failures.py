"""How a command ends when it cannot go on: one sentence, and an exit status."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from braindecode_pars.evaluation import FoldError

__all__ = ["told"]


@contextmanager
def told(kept: str = "") -> Iterator[None]:
    """Turn what a user can mend into one sentence; ``kept`` is said when Ctrl-C ends the command.

    Anything else is a mistake of ours and keeps its traceback.
    """
    try:
        yield
    except KeyboardInterrupt:
        typer.secho(f"Interrupted. {kept}".strip(), err=True)
        raise typer.Exit(130) from None
    except (ValueError, TypeError, OSError, OverflowError, FoldError) as error:
        typer.secho(f"Error: {error}", fg=typer.colors.RED, err=True)
        raise typer.Exit(1) from None
