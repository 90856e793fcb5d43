"""Sizes and times in a unit that a reader knows."""

from __future__ import annotations

import pytest

from braindecode_pars.cli import describing as _planning


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (4.11e9, "4.11 GB"),
        (1.5e12, "1.5 TB"),
        (3e15, "3e+03 TB"),
    ],
)
def test_sizes(n_bytes, text):
    assert _planning._bytes(n_bytes) == text


@pytest.mark.parametrize(
    ("hours", "text"),
    [(0.05, "3 min"), (2.5, "2.5 h"), (12.4, "12 h"), (5300, "5,300 h (221 days)")],
)
def test_times(hours, text):
    assert _planning._time(hours) == text
