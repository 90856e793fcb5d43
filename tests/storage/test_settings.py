"""Comparison of settings: one phrase per difference."""

from __future__ import annotations

import numpy as np
import pytest

from braindecode_pars._common.files import differences


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ({"lr": 0.1}, {"lr": np.float64(0.1)}, []),
        ({"lr": 0.1}, {"lr": 0.2}, ["lr is 0.2, was 0.1"]),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, ["a.b is 2, was 1"]),
        ({"a": [1, 2]}, {"a": (1, 3)}, ["a[1] is 3, was 2"]),
        ({"a": [1, 2]}, {"a": [1]}, ["a is [1], was [1, 2]"]),
        ({}, {"a": 1}, ["a is 1, was not set"]),
        ({"a": 1}, {}, ["a is not set, was 1"]),
        ({"a": 1, "device": "cpu"}, {"a": 1, "device": "cuda"}, []),
    ],
)
def test_differences(before, now, expected):
    assert differences(before, now, ignore=("device",)) == expected


def test_long_values_are_cut():
    (phrase,) = differences({"a": "x" * 100}, {"a": 1})
    assert len(phrase) < 90
