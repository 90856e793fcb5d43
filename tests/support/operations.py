"""Tokens and floating-point operations of a training, for the page on the paper's scale."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from braindecode_pars.pretext import PretextTask
from braindecode_pars.runs.planning import noise_for


def count(task: PretextTask, n_windows: int, n_chans: int = 1) -> tuple[int, int]:
    """Return the tokens of the encoder and the operations of one training step on noise.

    The operations are those of matrix products and convolutions in floating point; a
    multiplication and an addition are two. Others, such as norms, are not counted.
    """
    n_tokens = []

    def add(encoder: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
        n_tokens.append(arguments[0].shape[:-1].numel())

    task.zero_grad()
    hook = task.encoder.register_forward_pre_hook(add)
    noise = noise_for(task, n_windows, n_chans)
    # torch has no count for its fast attention on the CPU; the plain one has the same products.
    with hook, sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        task.criterion()(*task(noise)).backward()
    return sum(n_tokens), counter.get_total_flops()


def count_steps(
    task: PretextTask, n_steps: int, n_examples: int, n_chans: int = 1
) -> tuple[float, float]:
    """Return the tokens and the operations of all steps of a training, from two small steps.

    A step needs a fixed number of operations, and a number for each example.
    """
    two, four = (np.array(count(task, n, n_chans)) for n in (2, 4))
    each = (four - two) / 2
    tokens, flops = ((two - 2 * each) * n_steps + each * n_examples).tolist()
    return tokens, flops
