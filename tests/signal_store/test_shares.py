"""Shares of corpora in the examples of pretraining."""

from __future__ import annotations

import math

import numpy as np
import pytest

from braindecode_pars.runs.steps import windows_of_a_pass
from braindecode_pars.signal_store.writing import check_shares


@pytest.mark.parametrize("seed", range(5))
def test_a_pass_is_the_largest_that_repeats_no_window(seed):
    """Compared with a search over all sizes of a pass."""
    rng = np.random.default_rng(seed)
    names = ["a", "b", "c"]
    n_windows = dict(zip(names, rng.integers(50, 2000, 3).tolist(), strict=True))
    shares = dict(zip(names, rng.uniform(0.2, 3, 3).tolist(), strict=True))
    total = sum(shares.values())
    for size in range(sum(n_windows.values()), 0, -1):
        parts = {name: size * share / total for name, share in shares.items()}
        if all(parts[name] <= n_windows[name] for name in names):
            break
    found = windows_of_a_pass(n_windows, shares)
    for name in names:
        assert abs(found[name] - parts[name]) <= 1.5
        assert found[name] <= n_windows[name]
    assert any(found[name] == n_windows[name] for name in names)
    assert windows_of_a_pass({"a": 10, "b": 1}, {"a": 1e-9, "b": 1.0}) == {"a": 1, "b": 1}
    assert windows_of_a_pass({}, {}) == {}


@pytest.mark.parametrize(
    ("shares", "error", "message"),
    [
        ({"tueg": 1}, ValueError, "tueg, ysyw"),
        ({"tueg": 1, "ysyv": 1}, ValueError, "ysyv"),
        ({"tueg": 0, "ysyw": 1}, ValueError, "tueg.* 0"),
        ({"tueg": math.nan, "ysyw": 1}, ValueError, "tueg.* nan"),
        ({"tueg": "x", "ysyw": 1}, TypeError, "'x'"),
    ],
)
def test_impossible_shares(shares, error, message):
    with pytest.raises(error, match=message):
        check_shares(shares, ["tueg", "ysyw"])
    with pytest.raises(ValueError, match="no corpora"):
        check_shares({"a": 1}, [])
    assert check_shares({}, ["a"]) == {}
    assert check_shares({"a": np.float32(1)}, ["a"]) == {"a": 1.0}
