"""Number of operations that the benchmarks count."""

from __future__ import annotations

import pytest
from benchmarks.training_steps import flops_of_window

from braindecode_pars.pretext import PARS


def test_operations_of_forward_and_backward_passes_are_counted():
    """The expected number has two operations per product in linear layers and attention."""
    n, width, layers = 40, 64, 2
    task = PARS(6000, embed_dim=width, num_layers=layers, num_heads=4, mlp_dim=width)
    tokenizer = n * 200 * width
    blocks = layers * (6 * n * width**2 + 2 * n**2 * width)
    encoder = 2 * (2 * tokenizer + 3 * blocks)  # the signals have no gradient
    assert encoder < flops_of_window(task) < 1.7 * encoder
    assert flops_of_window(task, batch_size=8) == pytest.approx(flops_of_window(task), rel=0.15)
