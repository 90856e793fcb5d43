"""The summary of predicted recordings: time in each class, sleep statistics, findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table

from braindecode_pars.cli._console import print_table
from braindecode_pars.predictions import sleep_statistics
from braindecode_pars.sleep_stages import are_stages
from braindecode_pars.storage._json import plain

__all__ = ["show_summary", "summary_row", "summary_table"]

_MINUTES = "minutes_"
#: Counts of a frame that are no findings about the recording.
_COUNTS = ("windows", "windows_not_predicted")


def summary_row(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the row of one recording, as values that JSON supports.

    Parameters
    ----------
    frame : DataFrame
        Predictions of a recording, as from ``predict_raw``.

    Returns
    -------
    dict of str to Any
        Counts of windows, minutes in each class, for sleep stages the sleep statistics, and number
        and names of the findings.
    """
    classes = frame.attrs["classes"]
    minutes = frame.groupby("label")["duration"].sum() / 60
    findings = [name for name in frame.attrs.get("findings", {}) if name not in _COUNTS]
    row = {
        "windows": len(frame),
        "windows_not_predicted": int(frame["label"].isna().sum()),
        **{f"{_MINUTES}{name}": float(minutes.get(name, 0)) for name in classes},
        **(sleep_statistics(frame) if are_stages(classes) else {}),
        "n_findings": len(findings),
        "findings": ", ".join(findings),
    }
    return {name: plain(value) for name, value in row.items()}


def summary_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the rows of all recordings as a table, with the problem of those that failed last."""
    table = pd.DataFrame(list(rows))
    counts = table.columns.intersection([*_COUNTS, "n_findings"])
    table[counts] = table[counts].astype("Int64")  # integers also beside a row that failed
    return table[[*(name for name in table if name != "problem"), "problem"]]


def show_summary(console: Console, table: pd.DataFrame) -> None:
    """Print the time in each class, and what a user looks at first."""
    shown = {
        "recording": "recording",
        **{name: f"{name.removeprefix(_MINUTES)} (min)" for name in table if _is_time(name)},
        "SE": "sleep efficiency (%)",
        "SOL": "sleep latency (min)",
        "windows_not_predicted": "not predicted",
        "n_findings": "findings",
        "problem": "problem",
    }
    columns = [name for name in shown if name in table and table[name].notna().any()]
    view = Table()  # why a recording failed would make it wider than a terminal
    for name in columns:
        is_text = name in ("recording", "problem")
        view.add_column(shown[name], justify="left" if is_text else "right")
    for _, row in table.iterrows():
        view.add_row(*(_cell(name, row[name]) for name in columns))
    print_table(console, view)


def _is_time(name: Any) -> bool:
    return str(name).startswith(_MINUTES)


def _cell(name: str, value: Any) -> str:
    if pd.isna(value):
        return ""
    if name == "problem":
        return "failed"
    if name in ("windows_not_predicted", "n_findings"):
        return str(int(value))
    return f"{value:.1f}" if isinstance(value, float) else str(value)
