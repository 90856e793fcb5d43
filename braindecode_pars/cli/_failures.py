"""End a command with a short message and an exit status when it fails."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType

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
        with _ctrl_c_during_imports():
            # The imports that all commands need. They take seconds.
            import braindecode_pars._hosts  # noqa: F401
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


@contextmanager
def _ctrl_c_during_imports() -> Iterator[None]:
    """Raise KeyboardInterrupt after Ctrl-C, whatever an imported package makes of it.

    Extension modules turn it into an ImportError, some packages catch it, and Python prints a
    traceback where it occurs in a callback of the import system.
    """
    # Only the main thread may set signal handlers. A shell may have told us to ignore Ctrl-C.
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    interrupted = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        sys.unraisablehook = lambda ignored: None
        raise KeyboardInterrupt

    hook = sys.unraisablehook
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except BaseException:  # after Ctrl-C, any error of an import is taken as its consequence
        if not interrupted:
            raise
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = hook
    if interrupted:
        raise KeyboardInterrupt


def _exit_with(error: Exception) -> None:
    typer.secho(f"Error: {error}", fg=typer.colors.RED, err=True)
    raise typer.Exit(1) from None
