"""Benchmarks are printed row by row, and written as a table."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from braindecode_pars import benchmarks
from braindecode_pars.benchmarks import Row
from braindecode_pars.cli import app

ROWS = [
    Row("slow / fast", 2.345, aim=3.0, under=2.0),
    Row("step / bare step", 1.5, aim=1.1, over=1.2),
    Row("reading", 12345.6, "windows/s"),
]


@pytest.fixture
def two_benchmarks(monkeypatch):
    # A new dict: deleting and restoring entries would change the order of the registry.
    registry = {"ratios": lambda: iter(ROWS[:2]), "reading": lambda: iter(ROWS[2:])}
    monkeypatch.setattr(benchmarks, "BENCHMARKS", registry)


def test_the_command_measures_prints_and_writes(tmp_path, two_benchmarks):
    out = tmp_path / "measured" / "cpu.rst"
    result = CliRunner().invoke(app, ["benchmark", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "slow / fast: 2.35 (aim 3, fails under 2)" in result.output
    text = out.read_text()
    assert all(row.what in text for row in ROWS)
    assert "Measured on " in text


def test_only_the_named_benchmarks_run(two_benchmarks):
    result = CliRunner().invoke(app, ["benchmark", "--only", "reading"])
    assert "reading: 12,346" in result.output
    assert "slow / fast" not in result.output


def test_another_file_is_not_overwritten(two_benchmarks, tmp_path, monkeypatch):
    notes = tmp_path / "notes.rst"
    notes.write_text("my notes\n\n.. list-table::\n")
    monkeypatch.setitem(benchmarks.BENCHMARKS, "reading", pytest.fail)
    for file in (notes, tmp_path):
        result = CliRunner().invoke(app, ["benchmark", "--only", "reading", "--out", str(file)])
        assert result.exit_code == 1
        assert "is not a table of benchmarks" in " ".join(result.output.split())
    assert notes.read_text() == "my notes\n\n.. list-table::\n"


def test_ctrl_c_keeps_the_finished_benchmarks(tmp_path, two_benchmarks):
    def interrupted():
        raise KeyboardInterrupt
        yield

    benchmarks.BENCHMARKS["reading"] = interrupted
    out = tmp_path / "cpu.rst"
    result = CliRunner().invoke(app, ["benchmark", "--out", str(out)])
    assert result.exit_code == 130
    assert "slow / fast" in out.read_text(encoding="utf-8")
