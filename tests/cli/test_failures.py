"""The message and the exit status of a command that fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest
import typer

from braindecode_pars.cli.terminal import _ctrl_c_during_imports, report_failures
from braindecode_pars.evaluation import FoldError


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
def test_ctrl_c_during_imports_ends_the_process_with_one_line(imported):
    code = f"""
import os, signal
from contextlib import suppress
from braindecode_pars.cli.terminal import _ctrl_c_during_imports
interrupt = lambda: os.kill(os.getpid(), signal.SIGINT)
with _ctrl_c_during_imports("Folds are kept."):
{textwrap.indent(imported, "    ")}
print("it went on")
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 130
    assert (found.stdout, found.stderr) == ("", "Interrupted. Folds are kept.\n")


def test_an_error_of_an_import_without_ctrl_c_stays():
    with pytest.raises(ImportError, match="no such package"), _ctrl_c_during_imports(""):
        raise ImportError("no such package")


def test_ctrl_c_that_the_shell_ignores_stays_ignored():
    """As in a script's background job."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with _ctrl_c_during_imports(""):
            os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_warnings_for_users_have_no_line_of_code():
    command = "import warnings\nfrom braindecode_pars.cli.terminal import report_failures\n"
    command += "with report_failures():\n    warnings.warn('C3 is flat.')\n"
    command += "warnings.warn('after')\n"
    result = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True)
    assert "\nWarning: C3 is flat.\n" in f"\n{result.stderr}"
    assert "UserWarning: after" in result.stderr
