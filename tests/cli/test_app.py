"""The commands together: an interrupted start, and a locale without Unicode."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from braindecode_pars.cli import app
from braindecode_pars.cli.commands import _Echo

ASCII = dict(LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0", COLUMNS="20")
KEPT = "Interrupted. Finished fits are kept in out; run the same command to resume.\n"
COMMAND = [sys.executable, "-m", "braindecode_pars"]


def test_the_commands():
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    for command in ("demo", "store", "plan", "pretrain", "evaluate", "encoders", "predict"):
        assert command in result.output


def test_the_log_is_printed_once():
    for _ in range(2):
        CliRunner().invoke(app, ["store", "--help"])
    handlers = logging.getLogger("braindecode_pars").handlers
    assert sum(isinstance(handler, _Echo) for handler in handlers) <= 1


@pytest.mark.slow
def test_help_and_errors_in_a_narrow_terminal_without_unicode(tmp_path):
    missing = tmp_path / "Jörg [home]"
    commands = [["--help"], ["store", "--help"], ["store", os.fsencode(missing), "out"]]
    for arguments in commands:
        found = subprocess.run(
            [*COMMAND, *arguments], env={**os.environ, **ASCII}, cwd=tmp_path, capture_output=True
        )
        output = (found.stdout + found.stderr).decode()
        assert "Traceback" not in output
        assert found.returncode == ("--help" not in arguments)
    assert "[home]" in output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_ctrl_c_at_any_moment_of_the_start_is_one_line(tmp_path):
    """The imports take seconds. Before ``main``, Ctrl-C belongs to Python."""
    durations = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run([*COMMAND, "--help"], capture_output=True, check=True)
        durations.append(time.perf_counter() - start)  # help is written after main has begun
    until_main = 3 * max(durations)  # shared machines are slower for minutes
    outcomes = set()
    for moment in range(0, 24, 2):
        with subprocess.Popen(
            [*COMMAND, "evaluate", "compare", "--dataset", "simulated", "--out", "out"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A shell tells its background processes, and theirs, to ignore Ctrl-C.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        ) as process:
            time.sleep(until_main + 0.05 * moment**1.5)
            process.send_signal(signal.SIGINT)
            try:
                _, err = process.communicate(timeout=120)
            finally:
                process.kill()
        # Python ends with the signal itself if Ctrl-C came while an import executed a string.
        assert process.returncode in (130, -signal.SIGINT), (moment, err)
        assert "Traceback" not in err
        outcomes.add(err.splitlines(keepends=True)[-1])  # after the progress bar, if it has begun
    assert outcomes <= {"Interrupted.\n", KEPT}
    assert not (tmp_path / "out" / "scores.csv").exists()
