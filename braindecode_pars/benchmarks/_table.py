"""The results as a table for the documentation, with date, machine and versions."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from datetime import date
from importlib.metadata import version
from pathlib import Path

import torch

from braindecode_pars.benchmarks._measuring import Row

__all__ = ["as_rst", "circumstances"]


def circumstances(day: date | None = None) -> str:
    """Return date, machine and versions as one sentence.

    Parameters
    ----------
    day : datetime.date | None
        Date of the measurement. None means today.

    Returns
    -------
    str
        Sentence for the documentation.

    Examples
    --------
    >>> from datetime import date
    >>> from braindecode_pars.benchmarks._table import circumstances
    >>> circumstances(date(2026, 11, 21))
    'Measured on 2026-11-21, ..., Python ..., torch ..., braindecode ..., skorch ...'
    """
    devices = [f"{_processor()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads"]
    if torch.cuda.is_available():
        devices.append(torch.cuda.get_device_name())
    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "braindecode", "skorch"))
    return (
        f"Measured on {day or date.today()}, {' and '.join(devices)}, Python "
        f"{platform.python_version()}, {versions}."
    )


def as_rst(rows: Iterable[Row], where: str) -> str:
    """Return the results as a list-table in reStructuredText.

    Parameters
    ----------
    rows : iterable of Row
        Results.
    where : str
        Sentence above the table, such as the output of :func:`circumstances`.

    Returns
    -------
    str
        Sentence and table.

    Examples
    --------
    >>> from braindecode_pars.benchmarks import Row
    >>> from braindecode_pars.benchmarks._table import as_rst
    >>> print(as_rst([Row("reading", 1200, "windows/s")], "Measured here."))
    Measured here.
    <BLANKLINE>
    .. list-table::
       :header-rows: 1
    <BLANKLINE>
       * - what
         - measured
         - aim
         - fails
       * - reading
         - 1,200 windows/s
         -
         -
    <BLANKLINE>
    """
    lines = [where, "", ".. list-table::", "   :header-rows: 1", ""]
    for cells in [
        ("what", "measured", "aim", "fails"),
        *((row.what, row.measured, _number(row.aim), row.bound) for row in rows),
    ]:
        lines += [f"   {'*' if i == 0 else ' '} - {cell}".rstrip() for i, cell in enumerate(cells)]
    return "\n".join(lines) + "\n"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _processor() -> str:
    """Return the processor's name on Linux, else its architecture."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.exists() else []
    names = [line for line in lines if line.startswith("model name")]
    return names[0].partition(":")[2].strip() if names else platform.processor()
