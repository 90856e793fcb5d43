"""The message and the exit status of a command that fails."""

from __future__ import annotations

import pytest
import typer

from braindecode_pars.cli._failures import report_failures
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
