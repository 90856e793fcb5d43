"""Run the commands on a page of the documentation, in this process or in a process to be killed."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import re
import shlex
import signal
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from typer.main import get_command
from typer.testing import CliRunner

from braindecode_pars.cli import app
from support.interrupts import create_progress_bar_lock


class Command(NamedTuple):
    """Arguments of ``braindecode-pars``, and the program that starts the command."""

    program: str
    arguments: list[str]

    @property
    def name(self) -> str:
        """Name of the command, without ``evaluate``."""
        return self.arguments[self.arguments[0] == "evaluate"]


def commands_of(page: Path) -> list[Command]:
    """Return the commands on a page that start ``braindecode-pars``, directly or with torchrun."""
    return list(_commands(page.read_text(encoding="utf-8")))


def _commands(text: str) -> Iterator[Command]:
    blocks = re.findall(r"\.\. code-block:: sh\n\n((?:   .*\n|\n)+)", text)
    for line in "".join(blocks).replace("\\\n", " ").splitlines():
        program, *words = shlex.split(line, comments=True) or [""]
        if program == "torchrun":
            words = words[words.index("braindecode_pars") + 1 :]
        if program in ("braindecode-pars", "torchrun"):
            yield Command(program, words)


def parse(arguments: list[str]) -> dict[str, Any]:
    """Return the options of a command; unknown options and invalid values raise an error."""
    command, remaining, context = get_command(app), list(arguments), None
    while hasattr(command, "commands"):
        context = command.make_context(command.name, remaining, parent=context)
        words = context._protected_args + context.args
        _, command, remaining = command.resolve_command(context, words)
    return command.make_context(command.name, remaining, parent=context).params


def run(arguments: list[str]) -> str:
    """Run a command in this process, and return its output."""
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, f"{arguments}\n{result.output}"
    return result.output


def run_until_killed(arguments: list[str], moment: str, nth: int) -> int | None:
    """Run a command in a forked process that is killed, and return its exit code.

    ``moment`` names a method, such as "package.module:Class.method". At the nth call of the
    method, the process sends SIGKILL to itself. All modules are imported in this process, which
    has one thread.
    """
    process = multiprocessing.get_context("fork").Process(
        target=_run_until, args=(arguments, moment, nth)
    )
    process.start()
    process.join(120)
    return process.exitcode


def _run_until(arguments: list[str], moment: str, nth: int) -> None:
    create_progress_bar_lock()
    module, _, path = moment.partition(":")
    owner: Any = import_module(module)
    *owners, name = path.split(".")
    for part in owners:
        owner = getattr(owner, part)
    original, calls = getattr(owner, name), itertools.count(1)

    def watched(*args: Any, **kwargs: Any) -> Any:
        if next(calls) == nth:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*args, **kwargs)

    setattr(owner, name, watched)
    run(arguments)
