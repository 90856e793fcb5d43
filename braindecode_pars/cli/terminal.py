"""Functions shared by all commands: error handling, printing and options."""

from __future__ import annotations

import functools
import inspect
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer
from rich.console import Console
from rich.table import Table

from braindecode_pars._common import names

if TYPE_CHECKING:
    import pandas as pd


#: Sentence that is printed after Ctrl-C if the command can be resumed.
RESUME = "All finished {} are stored. Run the same command again to resume."


@contextmanager
def report_failures(advice: str = "") -> Iterator[None]:
    """Context manager that prints errors without a traceback, and ends the command.

    Only errors that the user can correct are printed. All other errors are raised again.

    Parameters
    ----------
    advice : str
        Sentence that is printed after Ctrl-C, for example how to resume.
    """
    try:
        yield
    except KeyboardInterrupt:
        typer.secho(f"Interrupted. {advice}".strip(), err=True)
        raise typer.Exit(130) from None
    except (ValueError, TypeError, OSError, OverflowError, ImportError, RuntimeError) as error:
        if isinstance(error, RuntimeError):
            from braindecode_pars.evaluation import FoldError  # imported here: this takes seconds

            if not isinstance(error, FoldError):
                raise
        typer.secho(f"Error: {error}", fg=typer.colors.RED, err=True)
        raise typer.Exit(1) from None


def show(content: Any, end: str = "\n") -> None:
    """Print a text or a table without markup, line breaks or truncation.

    By default, Rich would interpret brackets in names of methods, subjects and files as markup, and
    would truncate names and tables that are wider than the terminal.

    Parameters
    ----------
    content : Any
        Text or Rich table.
    end : str
        Text that is printed after the content.
    """
    console = Console(width=10**6, markup=False, emoji=False, highlight=False, soft_wrap=True)
    console.print(content, end=end)


class ConsoleHandler(logging.Handler):
    """Log handler that prints information to standard output and warnings to standard error.

    If a message is logged several times by one command, it is printed only once.
    """

    def __init__(self) -> None:
        super().__init__()
        self.printed: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        if text not in self.printed:
            typer.echo(text, err=record.levelno >= logging.WARNING)
        self.printed.add(text)


Command = Callable[..., None]
#: Types of options that are not parameters of the function of a command. Default: a text.
_TYPES: dict[str, Any] = {
    **dict.fromkeys(("sfreq", "low", "high", "mains", "window_seconds"), float),
    "channels": Annotated[list[str], typer.Option("--channel")],
    "classes": Annotated[list[str], typer.Option("--class")],
    "settings": Annotated[list[str], typer.Option("--set")],
    "n_jobs": Annotated[int, typer.Option("--jobs")],
}


def with_options(
    source: Callable[..., Any] | None = None,
    types: Mapping[str, Any] | None = None,
    defaults: Mapping[str, str] | None = None,
    *,
    advice: str = "",
) -> Callable[[Command], Command]:
    """Return a decorator that makes a command from a function.

    Positional parameters of the function become arguments of the command, and keyword-only
    parameters become options. The help texts are in the section Options of the docstring. A boolean
    option has no ``--no-NAME``.

    The section Options may also describe additional options that are not parameters of the
    function. The values of additional options that the user passes are in the argument ``options``
    of the function, a dict.

    Parameters
    ----------
    source : callable | None
        Other function whose docstring also describes additional options in its section Options.
    types : mapping of str to type | None
        Types of additional options, by the name of the option. They override the types that this
        module defines for these names; all other options are strings.
    defaults : mapping of str to str | None
        Default values of additional options, as shown in the help.
    advice : str
        Sentence that is printed after Ctrl-C, for example how to resume.
    """

    def decorate(command: Command) -> Command:
        texts = _texts_of(command) | (_texts_of(source) if source else {})
        hints = get_type_hints(command, include_extras=True)
        signature = inspect.signature(command).parameters
        parameters = [parameter for parameter in signature.values() if parameter.name != "options"]
        further = [name for name in texts if name not in signature]
        for name in further:
            hints[name] = {**_TYPES, **(types or {})}.get(name, str)
            texts[name]["show_default"] = (defaults or {}).get(name, False)
            parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None))

        @functools.wraps(command)
        def run(**arguments: Any) -> None:
            options = {name: arguments.pop(name) for name in further}
            if "options" in signature:
                arguments["options"] = {k: x for k, x in options.items() if x is not None}
            with report_failures(advice):
                command(**arguments)

        # typer determines arguments and options from the signature of the function.
        described: Any = run
        described.__signature__ = inspect.Signature(
            [p.replace(annotation=_described(p, hints[p.name], texts)) for p in parameters]
        )
        described.__doc__ = (inspect.getdoc(command) or "").partition(_SECTION)[0]
        return run

    return decorate


_SECTION = "\nOptions\n-------\n"


def _texts_of(function: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    """Return help text and placeholder (metavar) of each option in the section Options.

    A name in braces, such as ``{TASKS}``, is replaced with all names in the table of this name in
    ``_common/names.py``.
    """
    _, _, section = (inspect.getdoc(function) or "").partition(_SECTION)
    entries = [entry.splitlines() for entry in re.split(r"\n(?=\S)", section) if entry]
    texts: dict[str, dict[str, Any]] = {}
    for head, *lines in entries:
        name, _, metavar = head.partition(" : ")
        text = re.sub(r"\{([A-Z]+)\}", _names_of_table, " ".join(map(str.strip, lines)))
        texts[name] = dict(help=text, metavar=metavar or None)
    return texts


def _names_of_table(table: re.Match[str]) -> str:
    return ", ".join(getattr(names, table[1]))


def _described(parameter: inspect.Parameter, hint: Any, texts: Mapping[str, Any]) -> Any:
    """Return the type annotation of a parameter, with its help text for typer."""
    if parameter.name not in texts:
        return hint
    if hasattr(hint, "__metadata__"):  # the annotation contains names of the option or a range
        kind, info = get_args(hint)
        info = copy(info)
    else:
        switch = [f"--{parameter.name.replace('_', '-')}"] if hint is bool else []
        is_option = parameter.kind is parameter.KEYWORD_ONLY
        kind, info = hint, typer.Option(*switch) if is_option else typer.Argument()
    vars(info).update(texts[parameter.name])
    return Annotated[kind, info]


def print_frame(
    table: pd.DataFrame, title: str = "", n_text: int = 1, *, header: bool = True
) -> None:
    """Print a DataFrame as a table, with rounded numbers.

    Underscores in column names are replaced with spaces.

    Parameters
    ----------
    table : DataFrame
        Table to print.
    title : str
        Title above the table.
    n_text : int
        Number of columns, from the left, that are aligned left.
    header : bool
        Whether to print the column names.
    """

    def text(value: Any) -> str:
        if isinstance(value, str):
            return value
        is_rounded = value == round(value) or abs(value) >= 100
        return f"{value:,.0f}" if is_rounded else f"{value:.3g}"

    drawn = Table(title=title or None, show_header=header, min_width=len(title) + 2)
    for i, name in enumerate(table):
        drawn.add_column(str(name).replace("_", " "), justify="left" if i < n_text else "right")
    for row in table.astype(object).where(table.notna(), "-").map(text).itertuples(index=False):
        drawn.add_row(*row)
    show(drawn)


def values(options: list[str] | None, name: str) -> dict[str, Any]:
    """Return the values of options ``KEY=VALUE`` by key, as converted by :func:`value_of`.

    Parameters
    ----------
    options : list of str | None
        Values of the option.
    name : str
        Name of the option, for error messages.
    """
    return {key: value_of(text) for key, text in pairs(options, name)}


def value_of(text: str) -> Any:
    """Return the value of a text that is JSON, None, True or False; return other texts as is."""
    constants = {"None": None, "True": True, "False": False}
    try:
        # NaN and Infinity remain texts, because they are not JSON and may be names.
        return constants[text] if text in constants else json.loads(text, parse_constant=str)
    except ValueError:
        return text


def pairs(options: list[str] | None, name: str, form: str = "KEY=VALUE") -> list[tuple[str, str]]:
    """Return the key and the text of each option ``KEY=TEXT``.

    Parameters
    ----------
    options : list of str | None
        Values of the option.
    name, form : str
        Name and expected form of the option, for error messages.

    Raises
    ------
    ValueError
        If the value of an option contains no ``=``.
    """
    split = [option.partition("=") for option in options or ()]
    for key, equals, _ in split:
        if not equals:
            raise ValueError(f"Invalid value {key!r} of {name}: expected the form {form}.")
    return [(key, text) for key, _, text in split]


def named_pairs(options: list[str] | None, name: str, form: str) -> dict[str, str]:
    """Return the texts of options ``KEY=TEXT`` by key. Raise a ValueError for duplicate keys.

    Parameters
    ----------
    options : list of str | None
        Values of the option.
    name, form : str
        Name and expected form of the option, for error messages.
    """
    texts = pairs(options, name, form)
    if len(dict(texts)) < len(texts):
        raise ValueError(
            f"Two values of {name} have the same name: {' '.join(options or ())}. Use unique names."
        )
    return dict(texts)
