"""Ratios of two things measured in one run, printed; a bound fails only where noise cannot.

Run with ``pytest tests/benchmarks -s``; ``braindecode-pars benchmark`` makes a table of the same.
"""

from __future__ import annotations

import pytest
import torch

from braindecode_pars.benchmarks import BENCHMARKS


@pytest.mark.parametrize("name", BENCHMARKS)
def test_no_bound_is_broken(name, capsys):
    rows = []
    for row in BENCHMARKS[name]():
        rows.append(row)
        with capsys.disabled():
            print(f"\n  {row}", end="")
    assert rows or (name == "cuda" and not torch.cuda.is_available())
    assert not [str(row) for row in rows if row.failed]
