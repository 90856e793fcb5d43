"""The rows as a table for the documentation, with where and when they were measured."""

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
    """Date, machine and versions, as one sentence.

    Parameters
    ----------
    day : datetime.date | None
        None means today.

    Returns
    -------
    str

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
    """A list-table in reStructuredText, below a sentence on the circumstances.

    Parameters
    ----------
    rows : iterable of Row
        What was measured.
    where : str
        The sentence, such as that of :func:`circumstances`.

    Returns
    -------
    str

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
    """The processor's name where the system tells it, else its architecture."""
    told = Path("/proc/cpuinfo")
    names = (
        [line for line in told.read_text().splitlines() if line.startswith("model name")]
        if (told.exists())
        else []
    )
    return names[0].partition(":")[2].strip() if names else platform.processor()
