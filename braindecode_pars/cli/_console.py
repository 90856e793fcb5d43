"""The console of the commands: text is shown as it is, in full."""

from __future__ import annotations

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

__all__ = ["make_console", "print_table"]


def make_console() -> Console:
    """Return a console that changes no text.

    Names of methods, subjects and files may contain brackets, which Rich would read as markup, and
    may be longer than a line of the terminal, where Rich would cut them.
    """
    return Console(markup=False, emoji=False, highlight=False, soft_wrap=True)


def print_table(console: Console, table: Table) -> None:
    """Print a table with all its cells, also where the terminal is narrower than the table."""
    unbounded = console.options.update(max_width=10**6, no_wrap=True)
    table.width = Measurement.get(console, unbounded, table).maximum
    console.print(table)
