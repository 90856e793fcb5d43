"""Count tokens and floating-point operations of a training, for the page on the paper's scale."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from braindecode_pars.pretext import PretextTask
from braindecode_pars.runs.planning import noise_for


def count(task: PretextTask, n_windows: int, n_chans: int = 1) -> tuple[int, int]:
    """Return the number of tokens and of floating-point operations of one training step on noise.

    Matrix products and convolutions are counted, with two operations for a multiplication and an
    addition. Other operations, such as norms, are not counted.
    """
    n_tokens = []

    def add(encoder: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
        n_tokens.append(arguments[0].shape[:-1].numel())

    task.zero_grad()
    hook = task.encoder.register_forward_pre_hook(add)
    noise = noise_for(task, n_windows, n_chans)
    # torch cannot count its fast attention on the CPU; SDPBackend.MATH has the same products.
    with hook, sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        task.criterion()(*task(noise)).backward()
    return sum(n_tokens), counter.get_total_flops()


def count_steps(
    task: PretextTask, n_steps: int, n_examples: int, n_chans: int = 1
) -> tuple[float, float]:
    """Return the number of tokens and of operations of a whole training, from two small steps.

    A step has a fixed number of operations, plus a fixed number of operations per example.
    """
    two, four = (np.array(count(task, n, n_chans)) for n in (2, 4))
    per_example = (four - two) / 2
    per_step = two - 2 * per_example
    tokens, flops = (per_step * n_steps + per_example * n_examples).tolist()
    return tokens, flops
