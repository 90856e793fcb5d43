"""Functions shared by all commands: help, values, tables and error handling."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
import typer

from braindecode_pars.cli import evaluate
from braindecode_pars.cli.terminal import (
    report_failures,
    values,
)
from braindecode_pars.evaluation import GRIDS, FoldError


def test_names_of_grids_are_those_of_the_ablation():
    assert tuple(GRIDS) == evaluate.GRIDS


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


@pytest.mark.parametrize("error", [ValueError, OSError, FoldError])
def test_user_errors_are_printed_without_a_traceback(error, capsys):
    with pytest.raises(typer.Exit) as info, report_failures():
        raise error("too short")
    assert info.value.exit_code == 1
    assert capsys.readouterr().err == "Error: too short\n"


def test_other_errors_keep_their_traceback():
    with pytest.raises(KeyError), report_failures():
        raise KeyError("a fault")


#: Ctrl-C in an import that catches everything, and in a method where Python prints exceptions and
#: goes on.
IMPORTS = {
    "caught": "with suppress(BaseException): interrupt()",
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
