"""``pytest tests/benchmarks --table FILE`` writes the results as a table for the documentation."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.measuring import Row, as_rst, circumstances


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--table", type=Path, help="file for the table of results")


@pytest.fixture(scope="session")
def rows(pytestconfig: pytest.Config):
    """The rows of all benchmarks; written at the end, where ``--table`` names a file."""
    measured: list[Row] = []
    yield measured
    if file := pytestconfig.getoption("--table"):
        file.write_text(as_rst(measured, circumstances()), "utf-8")
