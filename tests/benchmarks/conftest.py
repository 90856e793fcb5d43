"""Option ``--table FILE``: write the results of the benchmarks as a table for the documentation."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.measuring import Row, as_rst, circumstances


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--table", type=Path, help="file to which the table of results is written")


@pytest.fixture(scope="session")
def rows(pytestconfig: pytest.Config):
    """Collect the rows of all benchmarks, and write them at the end if ``--table`` is used."""
    measured: list[Row] = []
    yield measured
    if file := pytestconfig.getoption("--table"):
        file.write_text(as_rst(measured, circumstances()), "utf-8")
