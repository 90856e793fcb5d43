"""Write a table for ``docs/measured``, with its provenance in the first lines."""

from __future__ import annotations

import platform
import re
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd

from braindecode_pars._common.files import replace_file

__all__ = ["add_rows", "store_table"]


def store_table(
    table: pd.DataFrame, file: Path, command: str, *remarks: str, **options: Any
) -> None:
    """Write a table with its command, date and machine, atomically.

    Parameters
    ----------
    table : pandas.DataFrame
        The numbers.
    file : Path
        File to write.
    command : str
        The command that computes them.
    remarks : str
        Further text of the second line, such as the number of threads.
    options : Any
        Arguments of ``DataFrame.to_csv``.
    """
    _write(table, file, {f"# {command}": _origin(*remarks)}, **options)


def add_rows(rows: pd.DataFrame, file: Path, command: str, keys: list[str], **options: Any) -> None:
    """Add rows to a stored table, with their own command, date and machine.

    Parameters
    ----------
    rows : pandas.DataFrame
        The new numbers, with the columns of the table.
    file : Path
        The table that :func:`store_table` has written.
    command : str
        The command that computes the new rows.
    keys : list of str
        Columns that identify rows; stored rows with the same values as a new row are replaced.
    options : Any
        Arguments of ``DataFrame.to_csv``.
    """
    header = [line for line in file.read_text(encoding="utf-8").splitlines() if line[:1] == "#"]
    origins = dict(zip(header[::2], header[1::2], strict=True)) | {f"# {command}": _origin()}
    stored = pd.read_csv(file, comment="#")
    replaced = stored.set_index(keys).index.isin(rows.set_index(keys).index)
    _write(pd.concat([stored[~replaced], rows]), file, origins, **options)


def _write(table: pd.DataFrame, file: Path, origins: dict[str, str], **options: Any) -> None:
    lines = [f"{line}\n" for origin in origins.items() for line in origin]
    replace_file(file, "".join(lines) + table.to_csv(lineterminator="\n", **options))


def _origin(*remarks: str) -> str:
    return f"# {', '.join([str(date.today()), _processor(), *remarks])}"


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")  # if platform returns no processor
    text = cpuinfo.read_text(encoding="utf-8") if cpuinfo.exists() else ""
    name = re.search(r"model name\s*: (.*)", text)
    return name[1] if name else platform.processor() or platform.machine()
