"""Write a table for ``docs/measured``: its first lines tell where the numbers come from."""

from __future__ import annotations

import platform
import re
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd

from braindecode_pars._common.files import replace_file

__all__ = ["store_table"]


def store_table(
    table: pd.DataFrame, file: Path, command: str, *remarks: str, **options: Any
) -> None:
    """Write a table with its command, date and machine, completely or not at all.

    Parameters
    ----------
    table : pandas.DataFrame
        The numbers.
    file : Path
        File to write.
    command : str
        The command that computes them.
    remarks : str
        What else the second line tells, such as the number of threads.
    options : Any
        Arguments of ``DataFrame.to_csv``.
    """
    origin = ", ".join([str(date.today()), _processor(), *remarks])
    rows = table.to_csv(lineterminator="\n", **options)
    replace_file(file, f"# {command}\n# {origin}\n{rows}")


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")  # where platform does not know the processor
    text = cpuinfo.read_text(encoding="utf-8") if cpuinfo.exists() else ""
    name = re.search(r"model name\s*: (.*)", text)
    return name[1] if name else platform.processor() or platform.machine()
