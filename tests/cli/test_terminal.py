"""Functions shared by all commands: help, values, tables and error handling."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
import typer

from braindecode_pars.cli.terminal import report_failures, values
from braindecode_pars.evaluation import FoldError


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


#: A command that warns.
PROGRAM = """
import sys, warnings
from braindecode_pars.cli import commands, main
def app(**_):
    warnings.warn("C3 is flat.")
    warnings.warn("other", RuntimeWarning)
commands.app = app
main()
"""


def test_warnings_for_users_have_no_line_of_code():
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert "\nWarning: C3 is flat.\n" in f"\n{result.stderr}"
    assert "RuntimeWarning: other" in result.stderr
