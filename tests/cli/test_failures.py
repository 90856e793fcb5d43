"""The message and the exit status of a command that fails."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import pytest
import typer

from braindecode_pars.cli._failures import _ctrl_c_during_imports, report_failures
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


def catch_it():
    """Ctrl-C in an import that catches everything."""
    with suppress(BaseException):
        os.kill(os.getpid(), signal.SIGINT)


def turn_it_into_an_import_error():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        raise ImportError("numpy._core.multiarray failed to import") from None


class Interrupting:
    """Python prints a traceback of an exception in this method, and goes on."""

    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)


def raise_it_where_python_prints_it():
    Interrupting()


@pytest.mark.parametrize(
    "imported", [catch_it, turn_it_into_an_import_error, raise_it_where_python_prints_it]
)
def test_ctrl_c_during_imports_is_never_lost_and_prints_nothing(imported, capsys):
    with pytest.raises(KeyboardInterrupt), _ctrl_c_during_imports():
        imported()
    assert capsys.readouterr().err == ""
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_of_an_import_without_ctrl_c_stays():
    with pytest.raises(ImportError, match="no such package"), _ctrl_c_during_imports():
        raise ImportError("no such package")


def test_ctrl_c_that_the_shell_ignores_stays_ignored():
    """As in a script's background job."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with _ctrl_c_during_imports():
            os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
