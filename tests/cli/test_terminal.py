"""Functions shared by all commands: help, values, tables and error handling."""

from __future__ import annotations

import io
import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from braindecode_pars._common.tables import SCORES
from braindecode_pars.baselines import METHODS
from braindecode_pars.cli import app, commands, evaluate
from braindecode_pars.cli.evaluate import PROTOCOLS
from braindecode_pars.cli.evaluation_report import show_differences, show_scores
from braindecode_pars.cli.terminal import (
    ConsoleHandler,
    pairs,
    print_frame,
    report_failures,
    values,
)
from braindecode_pars.datasets import RECIPES
from braindecode_pars.evaluation import GRIDS, FoldError
from braindecode_pars.evaluation.controls import CONTROLS
from braindecode_pars.evaluation.metrics import METRICS

ASCII = dict(LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0", COLUMNS="20")
COMMAND = [sys.executable, "-m", "braindecode_pars"]


def test_the_log_is_printed_once():
    for _ in range(2):
        CliRunner().invoke(app, ["store", "--help"])
    handlers = logging.getLogger("braindecode_pars").handlers
    assert sum(isinstance(handler, ConsoleHandler) for handler in handlers) <= 1


def test_a_line_of_the_log_comes_once_with_its_number(capsys):
    echo = ConsoleHandler()
    for text in ("Channel X is not used.", "Read.", "Channel X is not used."):
        echo.emit(logging.makeLogRecord(dict(msg=text, levelno=logging.INFO)))
    echo.end()
    echo.end()
    shown = capsys.readouterr().out.splitlines()
    assert shown == ["Channel X is not used.", "Read.", "Repeated 2 times: Channel X is not used."]


@pytest.mark.slow
def test_help_and_errors_in_a_narrow_terminal_without_unicode(tmp_path):
    missing = tmp_path / "Jörg [home]"
    commands = [["--help"], ["store", "--help"], ["store", os.fsencode(missing), "out"]]
    for arguments in commands:
        completed = subprocess.run(
            [*COMMAND, *arguments], env={**os.environ, **ASCII}, cwd=tmp_path, capture_output=True
        )
        output = (completed.stdout + completed.stderr).decode()
        assert "Traceback" not in output
        assert completed.returncode == ("--help" not in arguments)
    assert "[home]" in output
    assert list(tmp_path.iterdir()) == []


def test_names_of_grids_are_those_of_the_ablation():
    assert tuple(GRIDS) == evaluate.GRIDS


def test_help_lists_the_names_of_the_registries():
    helped = {command.name: command for command in get_command(app).commands.values()}

    def text(command, option):
        (help_text,) = [p.help for p in helped[command].params if f"--{option}" in p.opts]
        return f" {help_text} "

    for command, option, title, names in (
        *(
            (command, "task", "Pretext task", commands.METHODS[:-1])
            for command in ("plan", "pretrain")
        ),
        ("store", "recipe", "Recipes", sorted(RECIPES)),
        ("evaluate", "dataset", "simulated", sorted(RECIPES)),
        ("evaluate", "method", "Method", METHODS),
        ("evaluate", "metric", "Metric", METRICS),
        ("evaluate", "grid", "settings to vary", GRIDS),
        ("evaluate", "control", "control signals", CONTROLS),
    ):
        listed = text(command, option).partition(f"{title}")[2].lstrip(":, ")
        assert listed.startswith(", ".join(names)), (command, option)
    assert f"pretrain on, {', '.join(commands.METHODS[:-1])}, FILE.py" in text("fit", "method")
    (protocol,) = [p.help for p in helped["evaluate"].params if p.name == "protocol"]
    assert protocol == f"{', '.join(PROTOCOLS)}."


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_help_of_a_protocol_has_what_it_takes_and_only_that(protocol):
    def options(*arguments):
        result = CliRunner().invoke(app, ["evaluate", *arguments, "--help"])
        assert result.exit_code == 0, result.output
        return set(re.findall(r"^│[ *]{1,5}(--[a-z-]+)", result.output, re.MULTILINE))

    special = {option for names in PROTOCOLS.values() for option in names}
    shared = options() - special
    assert {"--dataset", "--out"} <= shared
    assert special <= options()
    assert options(protocol) == shared | set(PROTOCOLS[protocol])


def test_help_imports_no_heavy_library_and_the_package_prints_nothing():
    """Help must be fast; torch, MNE and scikit-learn take seconds to import.

    Where NumPy and torch are not imported, their random states are not changed either.
    """
    code = (
        "import sys, typer.testing\n"
        "from braindecode_pars.cli import app\n"
        "for command in ([], ['study'], ['store'], ['plan'], ['pretrain'], ['encoders'], "
        "['fit'], ['predict'], ['evaluate', 'compare']):\n"
        "    result = typer.testing.CliRunner().invoke(app, [*command, '--help'])\n"
        "    assert result.exit_code == 0, result.output\n"
        "heavy = {'torch', 'mne', 'sklearn', 'pandas', 'numpy', 'braindecode', 'matplotlib'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert time.perf_counter() - start < 30


def test_values_are_json_or_constants_of_python_or_texts():
    options_of_set = [
        "n=3",
        "lr=1e-3",
        "name=pars",
        "on=true",
        "grid=[1, 2]",
        "text=a=b",
        "none=None",
        "off=False",
    ]
    expected = dict(
        n=3, lr=1e-3, name="pars", on=True, grid=[1, 2], text="a=b", none=None, off=False
    )
    texts = dict(subject="1_2", code="0x10", site="NaN", far="-Infinity", label="001")
    assert values([f"{key}={text}" for key, text in texts.items()], "--load") == texts
    assert values(options_of_set, "--set") == expected
    assert values(None, "--set") == {}


def test_an_option_without_a_value_is_refused():
    with pytest.raises(ValueError, match="--set 'n'"):
        pairs(["n"], "--set")


#: Names that Rich would read as markup or as an emoji, or cut.
NAMES = ["PARS [ours]", "[bold]", "a:smile:b", "a name of more than twenty letters", "[/]"]


@pytest.fixture
def printed(monkeypatch):
    """Function that returns what is printed in a terminal of some columns and letters."""

    def call(
        show: Callable[..., None], *arguments: Any, width: int = 20, encoding: str = "utf-8"
    ) -> str:
        file = io.TextIOWrapper(io.BytesIO(), encoding, errors="backslashreplace")
        with monkeypatch.context() as terminal:
            terminal.setenv("COLUMNS", str(width))
            terminal.setattr("sys.stdout", file)
            show(*arguments)
        file.flush()
        return file.buffer.getvalue().decode(encoding)

    return call


def scores() -> pd.DataFrame:
    rows = [
        ("compare", dataset, method, subject, 2, 0, metric, subject / 10)
        for method in NAMES
        for dataset in ("nights [home]", "clinic")
        for subject in (1, 2, 3)
        for metric in ("kappa", "balanced_accuracy", "accuracy")
    ]
    return pd.DataFrame(rows, columns=SCORES)


def test_names_and_numbers_are_shown_in_full(printed):
    text = printed(show_scores, scores(), "subjects", width=20)
    for name in [*NAMES, "nights [home]", "balanced accuracy"]:
        assert name in text
    assert text.count("0.200 ± 0.100") == len(NAMES) * 2 * 3


def test_brackets_stay_in_the_sentence_on_differences(printed, tmp_path):
    table = scores()
    text = printed(show_differences, table[table["dataset"] == "clinic"], None, tmp_path)
    assert "PARS [ours]" in text


def test_a_terminal_without_unicode(printed):
    text = printed(show_scores, scores(), "subjects", encoding="ascii")
    assert r"0.200 \xb1 0.100" in text


def test_numbers_of_a_table_are_short(printed):
    numbers = [1234.0, 9_999_999, 2.3456e12, 0.123456, float("nan")]
    rows = printed(print_frame, pd.DataFrame({"n": numbers})).splitlines()[3:-1]
    assert [row.strip("│ ") for row in rows] == ["1,234", "9,999,999", "2.35e+12", "0.123", "-"]


def test_a_table_is_not_wider_than_needed(printed):
    text = printed(print_frame, pd.DataFrame({"one": ["1"], "two": ["2"]}))
    assert max(map(len, text.splitlines())) == len("│ one │ two │")


@pytest.mark.parametrize("error", [ValueError, TypeError, OSError, ImportError, FoldError])
def test_user_errors_are_printed_without_a_traceback(error, capsys):
    with pytest.raises(typer.Exit) as info, report_failures():
        raise error("too short")
    assert info.value.exit_code == 1
    assert capsys.readouterr().err == "Error: too short\n"


def test_ctrl_c_prints_what_is_kept(capsys):
    with pytest.raises(typer.Exit) as info, report_failures("Folds are kept."):
        raise KeyboardInterrupt
    assert info.value.exit_code == 130
    assert capsys.readouterr().err == "Interrupted. Folds are kept.\n"


@pytest.mark.parametrize("error", [RuntimeError, KeyError, ZeroDivisionError])
def test_other_errors_keep_their_traceback(error):
    with pytest.raises(error), report_failures():
        raise error("a fault")


#: Ctrl-C in an import that catches everything, in one that raises another error, and in a method
#: where Python prints exceptions and goes on.
IMPORTS = {
    "caught": "with suppress(BaseException): interrupt()",
    "another error": """
try:
    interrupt()
except KeyboardInterrupt:
    raise ImportError("numpy._core.multiarray failed to import") from None
""",
    "printed": "type('Interrupting', (), {'__del__': lambda self: interrupt()})()",
}


@pytest.mark.parametrize("imported", IMPORTS.values(), ids=list(IMPORTS))
def test_ctrl_c_during_imports_ends_the_process_with_one_line(tmp_path, imported):
    (tmp_path / "imported.py").write_text(f"""
import os, signal
from contextlib import suppress
interrupt = lambda: os.kill(os.getpid(), signal.SIGINT)
{imported}
""")
    # A shell may have started the tests so that they ignore Ctrl-C, which a child inherits.
    code = f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from braindecode_pars import cli
sys.path.insert(0, {str(tmp_path)!r})
sys.modules["braindecode_pars.cli.commands"] = type(sys)("commands")
sys.modules["braindecode_pars.cli.commands"].app = lambda **_: __import__("imported")
cli.main()
print("it went on")
"""
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert completed.returncode == 130
    assert (completed.stdout, completed.stderr) == ("", "Interrupted.\n")


#: A command that prints what Ctrl-C does while it computes, and warns.
PROGRAM = """
import signal, sys, warnings
# What all commands import, which takes seconds.
sys.modules["braindecode_pars._common.hosts"] = type(sys)("hosts")
from braindecode_pars.cli import commands, main
from braindecode_pars.cli.terminal import report_failures
def app(**_):
    with report_failures():
        print(signal.getsignal(signal.SIGINT))
        warnings.warn("C3 is flat.")
        warnings.warn("other", RuntimeWarning)
commands.app = app
for at_start in (signal.SIG_IGN, signal.default_int_handler):
    signal.signal(signal.SIGINT, at_start)
    main()
"""


def test_ctrl_c_interrupts_a_command_unless_the_shell_ignores_it():
    """A shell ignores it in a script's background job."""
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    handlers = [str(each) for each in (signal.SIG_IGN, signal.default_int_handler)]
    assert result.stdout.splitlines() == handlers, result.stderr
    # Warnings for users have no line of code.
    assert "\nWarning: C3 is flat.\n" in f"\n{result.stderr}"
    assert "RuntimeWarning: other" in result.stderr
