"""Random draws under a seed leave the global state as it was."""

from __future__ import annotations

import torch

from braindecode_pars.training._seeding import seeded


def test_the_same_seed_draws_the_same_and_restores_the_state():
    before = torch.get_rng_state()
    draws = []
    for _ in range(2):
        with seeded(7):
            draws.append(torch.rand(3))
    assert torch.equal(*draws)
    assert torch.equal(torch.get_rng_state(), before)
    with seeded(8):
        assert not torch.equal(torch.rand(3), draws[0])
