"""Run all benchmarks, print the results, and check them against wide bounds.

Run it with ``pytest tests/benchmarks -s``. Select a benchmark with ``-k``, such as ``-k cuda``, and
write a table of the results with ``--table FILE``.
"""

from __future__ import annotations

import pytest
import torch
from benchmarks.prediction_speed import estimators, inference, predict_raw
from benchmarks.reading_speed import labels, reading
from benchmarks.training_steps import (
    channel_drop,
    cuda_loop,
    decoder_memory,
    decoder_time,
    long_sequence,
    pars_step,
    task_steps,
    tokenizers,
    training_loop,
)

BENCHMARKS = {
    "pars-step": pars_step,
    "task-steps": task_steps,
    "tokenizers": tokenizers,
    "decoder-time": decoder_time,
    "decoder-memory": decoder_memory,
    "long-sequence": long_sequence,
    "channel-drop": channel_drop,
    "reading": reading,
    "labels": labels,
    "training-loop": training_loop,
    "estimators": estimators,
    "inference": inference,
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
