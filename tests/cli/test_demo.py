"""``braindecode-pars demo`` with small data."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from braindecode_pars.cli import app

runner = CliRunner()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pretext", "parts"], "Unknown pretext task 'parts'; known are"),
        (["--data", "nowhere"], "nowhere contains none of the runs"),
        (["--all", "--pretext", "mae"], "--all compares all tasks; omit --pretext"),
        (["--simulated", "--data", "x"], "--simulated simulates recordings; omit --data"),
    ],
)
def test_user_errors_end_without_a_traceback(arguments, message, tmp_path):
    result = runner.invoke(app, ["demo", "--out", str(tmp_path / "out"), *arguments])
    assert result.exit_code != 0
    assert message in " ".join(result.output.replace("│", " ").split())
    assert "Traceback" not in result.output


def test_help():
    result = runner.invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "demo" in result.output
