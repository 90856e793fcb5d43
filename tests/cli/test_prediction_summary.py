"""The summary of predicted recordings."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

from braindecode_pars.cli.predicting import show_summary, summary_row, summary_table
from braindecode_pars.cli.terminal import make_console
from braindecode_pars.predictions import sleep_statistics


def frame(classes, labels, **findings):
    columns = {f"probability_{name}": 1 / len(classes) for name in classes}
    onset = 30.0 * np.arange(len(labels))
    table = pd.DataFrame(dict(onset=onset, duration=30.0, label=labels, **columns))
    counts = dict(windows=len(labels), windows_not_predicted=labels.count(None))
    table.attrs = dict(recording="a.edf", classes=classes, findings={**findings, **counts})
    return table


SLEEP = frame(["W", "N1", "R"], ["W", "W", None, "N1", "N1", "N1"], missing_channels=["C3"])


def test_minutes_statistics_and_findings():
    row = summary_row(SLEEP)
    assert (row["windows"], row["windows_not_predicted"]) == (6, 1)
    assert [row[f"minutes_{name}"] for name in ("W", "N1", "R")] == [1.0, 1.5, 0.0]
    expected = {k: None if np.isnan(v) else v for k, v in sleep_statistics(SLEEP).items()}
    assert {name: row[name] for name in expected} == expected
    assert (row["n_findings"], row["findings"]) == (1, "missing_channels")
    assert json.loads(json.dumps(row, allow_nan=False)) == row


def test_other_classes_have_no_sleep_statistics():
    row = summary_row(frame(["rest", "arithmetic"], ["rest", "arithmetic", "rest"]))
    counts = ["windows", "windows_not_predicted"]
    minutes = ["minutes_rest", "minutes_arithmetic"]
    assert list(row) == [*counts, *minutes, "n_findings", "findings"]


def test_the_table_has_those_that_failed_and_integers(capsys):
    rows = [
        dict(recording="[a]", problem="It is short."),
        dict(recording="b", **summary_row(SLEEP), problem=None),
    ]
    table = summary_table(rows)
    assert table.columns[[0, -1]].tolist() == ["recording", "problem"]
    assert table["windows"].tolist() == [pd.NA, 6]
    assert "6,1,1.0,1.5" in table.to_csv(index=False)
    show_summary(make_console(), table)
    text = capsys.readouterr().out
    for word in ("[a]", "failed", "W (min)", "sleep efficiency (%)", "50.0", "findings"):
        assert word in text
