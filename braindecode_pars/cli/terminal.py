"""What commands share: their end when they fail, their console, options, tables, and names.

Names that commands accept are repeated here, because importing the registries takes seconds.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import current_thread, main_thread
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

if TYPE_CHECKING:
    import pandas as pd


@contextmanager
def report_failures(kept: str = "") -> Iterator[None]:
    """Print errors that a user can correct without a traceback; other errors keep theirs.

    Parameters
    ----------
    kept : str
        Sentence that is printed after Ctrl-C: which results are kept, and how to resume.
    """
    try:
        with _ctrl_c_during_imports(kept):
            # The imports that all commands need. They take seconds.
            import braindecode_pars._common.hosts  # noqa: F401
        with _plain_warnings():
            yield
    except KeyboardInterrupt:
        typer.secho(f"Interrupted. {kept}".strip(), err=True)
        raise typer.Exit(130) from None
    except (ValueError, TypeError, OSError, OverflowError, ImportError, RuntimeError) as error:
        if isinstance(error, RuntimeError):
            # Imported here, because the import takes seconds.
            from braindecode_pars.evaluation import FoldError

            if not isinstance(error, FoldError):
                raise
        typer.secho(f"Error: {error}", fg=typer.colors.RED, err=True)
        raise typer.Exit(1) from None


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Print warnings for users without a line of code, which is not theirs in a command."""
    given = warnings.formatwarning

    def formatted(message: Any, category: type[Warning], *where: Any, **named: Any) -> str:
        if issubclass(category, UserWarning):
            return f"Warning: {message}\n"
        return given(message, category, *where, **named)

    warnings.formatwarning = formatted
    try:
        yield
    finally:
        warnings.formatwarning = given


@contextmanager
def _ctrl_c_during_imports(kept: str) -> Iterator[None]:
    """End the process at once after Ctrl-C, whatever an imported package would make of it.

    A KeyboardInterrupt in an import is no safe way to end: extension modules turn it into an
    ImportError or abort the process, some packages catch it, and Python prints a traceback where
    it occurs in a callback of the import system. Nothing is written yet that could be lost.
    """
    # Only the main thread may set signal handlers. A shell may have told us to ignore Ctrl-C.
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return

    def leave(number: int, frame: FrameType | None) -> None:
        os.write(sys.stderr.fileno(), f"Interrupted. {kept}".strip().encode() + b"\n")
        os._exit(130)

    signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def make_console() -> Console:
    """Return a console that changes no text.

    Names of methods, subjects and files may contain brackets, which Rich would read as markup, and
    may be longer than a line of the terminal, where Rich would cut them.
    """
    return Console(markup=False, emoji=False, highlight=False, soft_wrap=True)


def given_options(context: typer.Context) -> list[str]:
    """Return the options on the command line of a command, such as ``--dtype``."""
    sources = {
        p.opts[0]: context.get_parameter_source(p.name or "") for p in context.command.params
    }
    return [name for name, source in sources.items() if source and source.name == "COMMANDLINE"]


Command = Callable[..., None]


def texts_of(function: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    """Return text and metavar of each entry in the section Options of a docstring."""
    _, _, section = (inspect.getdoc(function) or "").partition("\nOptions\n-------\n")
    entries = [entry.splitlines() for entry in re.split(r"\n(?=\S)", section) if entry]
    found = {}
    for head, *lines in entries:
        name, _, metavar = head.partition(" : ")
        found[name] = dict(help=" ".join(map(str.strip, lines)), metavar=metavar or None)
    return found


def documented(command: Command) -> Command:
    """Take the help of arguments and options from the docstring of a command.

    Parameters before the star are arguments, the others options. One that is False has no
    ``--no-NAME``.
    """
    hints, texts = get_type_hints(command, include_extras=True), texts_of(command)
    for name, parameter in inspect.signature(command).parameters.items():
        if name not in texts:
            continue
        if hasattr(hints[name], "__metadata__"):  # with names or a range of its own
            (info,) = hints[name].__metadata__
        else:
            switch = [f"--{name.replace('_', '-')}"] if hints[name] is bool else []
            is_option = parameter.kind is parameter.KEYWORD_ONLY
            info = typer.Option(*switch) if is_option else typer.Argument()
            hints[name] = Annotated[hints[name], info]
        vars(info).update(texts[name])
    command.__annotations__ = hints
    command.__doc__ = (inspect.getdoc(command) or "").partition("\nOptions\n-------\n")[0]
    return command


def option(kind: Any, text: Mapping[str, Any], *names: str, **more: Any) -> Any:
    """Return the type of an option that is None where it is not given."""
    return Annotated[kind | None, typer.Option(*names, **{**text, **more})]


def with_options(options: Mapping[str, Any]) -> Callable[[Command], Command]:
    """Add options to a command, which receives those that were given as ``given``.

    Parameters
    ----------
    options : mapping of str to type
        Types by name, from :func:`option`.
    """

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_given(**arguments: Any) -> None:
            found = {name: arguments.pop(name) for name in options}
            given = {name: value for name, value in found.items() if value is not None}
            command(**arguments, given=given)

        # typer reads the parameters of a command from its signature and its annotations.
        own = inspect.signature(command, eval_str=True).parameters.values()
        added = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in options.items()
        ]
        parameters = [*(parameter for parameter in own if parameter.name != "given"), *added]
        described: Any = with_given
        described.__signature__ = inspect.Signature(parameters)
        described.__annotations__ = {one.name: one.annotation for one in parameters}
        return with_given

    return decorate


def print_frame(console: Console, table: pd.DataFrame, title: str = "", n_text: int = 1) -> None:
    """Print a table; of its columns, the first ``n_text`` are aligned left."""

    def text(value: Any) -> str:
        if isinstance(value, str):
            return value
        return f"{value:,.0f}" if value == round(value) and value < 1e7 else f"{value:.3g}"

    header = [str(name).replace("_", " ") for name in table]
    rows = table.astype(object).where(table.notna(), "-").map(text).to_numpy().tolist()
    print_table(console, rows, header, title=title, text=header[:n_text])


def print_table(
    console: Console,
    rows: Iterable[Sequence[str]],
    header: Sequence[str] = (),
    *,
    title: str = "",
    text: Container[str] = (),
) -> None:
    """Print rows of cells in full, also where the terminal is narrower than the table.

    Columns with a name in ``text`` are aligned left, the others right; without a header, all left.
    """
    table = Table(title=title or None, show_header=bool(header), min_width=len(title) + 2)
    for name in header:
        table.add_column(name, justify="left" if name in text else "right")
    for row in rows:
        table.add_row(*row)
    unbounded = console.options.update(max_width=10**6, no_wrap=True)
    table.width = Measurement.get(console, unbounded, table).maximum
    console.print(table)


def values(options: list[str] | None, name: str) -> dict[str, Any]:
    """Return values by key; a value is a Python or JSON literal, or else a string."""
    found: dict[str, Any] = {}
    for key, text in pairs(options, name):
        found[key] = text
        # JSON first, for true, false and null.
        for read in (json.loads, ast.literal_eval):
            with suppress(ValueError, SyntaxError):
                found[key] = read(text)
    return found


def pairs(options: list[str] | None, name: str, form: str = "KEY=VALUE") -> list[tuple[str, str]]:
    """Return pairs of key and text.

    Raises
    ------
    ValueError
        When an option has no ``=``.
    """
    for option in options or ():
        if "=" not in option:
            raise ValueError(f"{name} {option!r} is not of the form {form}.")
    return [(key, text) for key, _, text in (option.partition("=") for option in options or ())]


TASKS = ("pars", "mae", "spectral", "features", "mp3", "droppos", "joint")
GRIDS = ("masking", "sampling", "decoder", "overlap", "joint")
CONTROLS = ("slow", "detrended", "eyes", "phase", "amplitude", "order", "labels")
