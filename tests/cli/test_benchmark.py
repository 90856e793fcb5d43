"""``braindecode-pars benchmark``: rows on the terminal, and a table for the documentation."""

from __future__ import annotations

from typer.testing import CliRunner

from braindecode_pars.benchmarks import Row
from braindecode_pars.cli import app

ROWS = [
    Row("slow / fast", 2.345, aim=3.0, under=2.0),
    Row("step / bare step", 1.5, aim=1.1, over=1.2),
    Row("reading", 12345.6, "windows/s"),
]


def test_an_unknown_benchmark():
    result = CliRunner().invoke(app, ["benchmark", "--only", "flying"])
    assert result.exit_code == 2
    assert "Unknown benchmark flying; known are pars-step" in result.output
