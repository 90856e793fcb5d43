"""Run all benchmarks, print the results, and check them against wide bounds.

Run it with ``pytest tests/benchmarks -s``. Select a benchmark with ``-k``, such as ``-k cuda``, and
write a table of the results with ``--table FILE``.
"""

from __future__ import annotations

import pytest
import torch
from benchmarks.prediction_speed import predict_raw
from benchmarks.reading_speed import reading
from benchmarks.training_steps import (
    cuda_loop,
    decoder_memory,
    pars_step,
    task_steps,
    training_loop,
)

BENCHMARKS = {
    "pars-step": pars_step,
    "task-steps": task_steps,
    "decoder-memory": decoder_memory,
    "reading": reading,
    "training-loop": training_loop,
    "predict-raw": predict_raw,
    "cuda": cuda_loop,
}


@pytest.mark.parametrize("name", BENCHMARKS)
def test_no_value_is_beyond_its_bound(name, rows, capsys):
    if name == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device is available")
    measured = []
    for row in BENCHMARKS[name]():
        measured.append(row)
        with capsys.disabled():
            print(f"\n  {row}", end="")
    rows += measured
    assert measured
    assert not [str(row) for row in measured if row.failed]
