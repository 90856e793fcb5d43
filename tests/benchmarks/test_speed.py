"""Run and print all benchmarks; their bounds are so wide that noise alone does not fail them.

Run it with ``pytest tests/benchmarks -s``. ``braindecode-pars benchmark`` writes the same results
as a table.
"""

from __future__ import annotations

import pytest
import torch

from braindecode_pars.benchmarks import BENCHMARKS


@pytest.mark.parametrize("name", BENCHMARKS)
def test_no_value_is_beyond_its_bound(name, capsys):
    rows = []
    for row in BENCHMARKS[name]():
        rows.append(row)
        with capsys.disabled():
            print(f"\n  {row}", end="")
    assert rows or (name == "cuda" and not torch.cuda.is_available())
    assert not [str(row) for row in rows if row.failed]
