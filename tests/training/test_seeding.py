"""Random draws follow a seed in every thread, and leave the global state as it was."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import numpy as np
import pytest
import torch
from sklearn.utils import check_random_state
from skorch import NeuralNetRegressor
from torch import nn

from braindecode_pars._common import seeding as _seeding
from braindecode_pars._common.seeding import (
    OwnDraws,
    drawing,
    globally_seeded,
    random_stream,
    seeded,
    torch_seeded,
)


def global_states() -> list:
    numpy = check_random_state(None).get_state()
    return [torch.get_rng_state().tolist(), repr(numpy), random.getstate()]


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


def test_the_draws_of_a_seed_are_those_of_manual_seed():
    with seeded(7):
        found = torch.randn(5)
    torch.manual_seed(7)
    assert torch.equal(found, torch.randn(5))


def test_a_stream_continues_where_it_stopped():
    with seeded(7):
        expected = torch.cat([torch.randn(1), torch.randn(5)])
    with random_stream(7):
        with drawing():
            first = torch.randn(1)  # torch keeps the second number of the pair
        torch.randn(1)
        with drawing(), drawing():  # lent twice is lent once
            second = torch.randn(5)
    assert torch.equal(torch.cat([first, second]), expected)


def test_draws_between_the_blocks_are_those_of_the_caller():
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    with random_stream(7):
        with drawing():
            torch.rand(10)
        found = torch.rand(3)
    assert torch.equal(found, expected)


def test_an_inner_stream_does_not_change_the_outer_one():
    with random_stream(7), drawing():
        alone = torch.rand(4)
    with random_stream(7), drawing():
        first = torch.rand(2)
        with seeded(8):
            torch.rand(5)
        assert torch.equal(torch.cat([first, torch.rand(2)]), alone)


def test_without_a_stream_the_draws_come_from_the_global_state():
    torch.manual_seed(1)
    with drawing():
        found = torch.rand(2)
    torch.manual_seed(1)
    assert torch.equal(found, torch.rand(2))


def test_an_error_takes_the_state_back():
    before = torch.get_rng_state()
    with pytest.raises(RuntimeError, match="invalid"), seeded(3):
        torch.rand(2).view(3)
    assert torch.equal(torch.get_rng_state(), before)


def test_threads_do_not_change_the_draws_of_each_other():
    def draw(seed: int) -> torch.Tensor:
        draws = []
        with random_stream(seed):
            for _ in range(300):
                with drawing():
                    draws += [torch.rand(1), torch.rand(1)]
        return torch.cat(draws)

    before = global_states()
    alone = [draw(seed) for seed in (0, 0, 1, 2)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(draw, (0, 0, 1, 2)))
    for one, other in zip(alone, together, strict=True):
        assert torch.equal(one, other)
    assert global_states() == before


def test_the_lock_is_free_between_the_draws():
    """A callback may wait for fits in other threads."""

    def draw() -> torch.Tensor:
        with seeded(1):
            return torch.rand(1)

    with random_stream(0), ThreadPoolExecutor(1) as pool:
        with drawing():
            torch.rand(1)
        assert pool.submit(draw).result(timeout=10) == draw()


class Dropout(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(self.linear(x), 0.3)


class Net(OwnDraws, NeuralNetRegressor):
    """A regressor that draws initial weights, the order of the examples and dropout."""


def test_a_net_draws_from_the_stream_only():
    X = np.linspace(0, 1, 20, dtype=np.float32)[:, None]

    def fit() -> list[float]:
        net = Net(
            Dropout,
            train_split=None,
            max_epochs=2,
            batch_size=3,
            iterator_train__shuffle=True,
            verbose=0,
        )
        with random_stream(5):
            net.fit(X, X)
        return net.history[:, "train_loss"]

    before = global_states()
    first = fit()
    assert global_states() == before
    torch.manual_seed(99)
    assert fit() == first


def test_all_global_generators_are_seeded_and_restored():
    before = global_states()
    inside = []
    for _ in range(2):
        with globally_seeded(4):
            inside.append(global_states())
            torch.rand(1)
            check_random_state(None).normal()
            random.random()
        assert global_states() == before
    assert inside[0] == inside[1] != before


@pytest.mark.parametrize("block", [seeded, torch_seeded, globally_seeded])
def test_the_state_is_restored_when_the_device_fails(block, monkeypatch):
    def fail(*args):
        raise RuntimeError("device lost")

    def draw():
        with block(3):
            torch.rand(2)
            monkeypatch.setattr(_seeding, "_get_states", fail)
            fail()

    before = global_states()
    with pytest.raises(RuntimeError, match="device lost"):
        draw()
    assert global_states() == before


def test_threads_that_share_a_stream_draw_one_after_another():
    with random_stream(7), ThreadPoolExecutor(1) as pool:
        context = copy_context()

        def draw():
            with drawing():
                return torch.rand(1)

        with drawing():
            drawn = pool.submit(context.run, draw)
            time.sleep(0.1)
            assert not drawn.done()
            first = torch.rand(1)
        second = drawn.result(timeout=10)
    with seeded(7):
        assert torch.equal(torch.cat([first, second]), torch.cat([torch.rand(1), torch.rand(1)]))


def test_torch_is_seeded_while_other_threads_draw_from_their_streams():
    def draw():
        with seeded(1):
            return torch.rand(1)

    before = global_states()
    with torch_seeded(4), ThreadPoolExecutor(1) as pool:
        first = torch.rand(1)
        assert pool.submit(draw).result(timeout=10) == draw()
        found = torch.cat([first, torch.rand(1)])
    assert global_states() == before
    with seeded(4):
        assert torch.equal(found, torch.cat([torch.rand(1), torch.rand(1)]))
