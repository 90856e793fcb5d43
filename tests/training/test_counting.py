"""Counted operations and tokens equal plain formulas."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from braindecode_pars import PatchEncoder
from braindecode_pars._common.computing import count, count_steps
from braindecode_pars.pretext import PRETEXT_TASKS

SIZES = dict(embed_dim=16, num_layers=2, num_heads=2, mlp_dim=24)


def plain_flops(n_examples: int, n_patches: int) -> int:
    """Multiplications and additions of the matrix products of an encoder."""
    d, m = SIZES["embed_dim"], SIZES["mlp_dim"]
    projections = 4 * n_patches * d * d  # queries, keys, values, output
    attention = 2 * n_patches * n_patches * d  # logits and weighted values, over all heads
    feed_forward = 2 * n_patches * d * m
    return n_examples * SIZES["num_layers"] * 2 * (projections + attention + feed_forward)


def test_an_encoder():
    encoder, tokens = PatchEncoder(20, **SIZES), torch.randn(3, 7, 16)
    assert count(lambda: encoder(tokens), encoder) == (3 * 7, plain_flops(3, 7))
    # A backward pass has two products for each product of the forward pass.
    both = count(lambda: encoder(tokens).sum().backward(), encoder)
    assert both == (3 * 7, 3 * plain_flops(3, 7))
    assert not encoder._forward_pre_hooks


def test_tokens_of_nothing_are_zero():
    layer = nn.Linear(3, 4)
    assert count(lambda: layer(torch.ones(2, 3))) == (0, 2 * 2 * 3 * 4)


@pytest.mark.parametrize("name", ["pars", "mae", "mp3", "droppos"])
def test_all_steps_of_a_task_from_two_small_ones(name):
    task = PRETEXT_TASKS[name](200, 20, **SIZES)

    def step(n_examples: int) -> None:
        task.criterion()(*task(torch.randn(n_examples, 200))).backward()

    # 13 examples in batches of five.
    sizes = (5, 5, 3)
    whole = [count(lambda n=n: step(n), task.encoder) for n in sizes]
    found = count_steps(step, task.encoder, len(sizes), sum(sizes))
    assert found.flops == pytest.approx(sum(one.flops for one in whole))
    assert found.tokens == sum(one.tokens for one in whole)
    visible = {"pars": 13, "mae": 5, "mp3": 10, "droppos": 5}
    assert found.tokens == 13 * visible[name]
