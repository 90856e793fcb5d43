"""DropPos equals a slow recomputation, and has its defining properties."""

from __future__ import annotations

import math

import pytest
import torch
from support.pretext_contract import SIZES, PretextContract, event_locked

from braindecode_pars.pretext import DropPos
from braindecode_pars.tokens import sinusoidal_positions


class TestDropPos(PretextContract):
    task = DropPos

    def eeg(self):
        return event_locked(super().eeg())

    def ignore_signal(self, task):
        def guess(patches, places):
            logits = torch.zeros(len(patches), task.n_dropped, task.n_patches)
            shown = places[:, None, task.n_dropped :].expand(-1, task.n_dropped, -1)
            return logits.scatter(2, shown, -float("inf"))

        task.classify = guess


def test_sizes():
    task = DropPos(6000)
    assert (task.n_patches, task.n_visible, task.n_dropped) == (30, 15, 11)
    assert task.chance_loss() == pytest.approx(math.log(26))
    assert sum(p.numel() for p in task.head.parameters()) == 512 * 30 + 30
    assert task.mask_token.shape == (512,)


@torch.no_grad()
def test_against_a_slow_plain_recomputation():
    task = DropPos(500, 50, embed_dim=16, num_layers=2, num_heads=2, mlp_dim=24).double()
    patches = torch.randn(2, 10, 50, dtype=torch.float64)
    places = task.random_order(patches.flatten(1))[:, : task.n_visible]
    logits = task.classify(patches, places)
    positions = sinusoidal_positions(torch.arange(10).double(), 16)
    for b in range(2):
        tokens = []
        for i, n in enumerate(places[b].tolist()):
            token = task.encoder.tokenizer.weight @ patches[b, n] + task.encoder.tokenizer.bias
            tokens.append(token + (task.mask_token if i < task.n_dropped else positions[n]))
        features = task.encoder(torch.stack(tokens)[None])[0]
        expected = [task.head(features[i]) for i in range(task.n_dropped)]
        torch.testing.assert_close(logits[b], torch.stack(expected), atol=1e-5, rtol=1e-5)


def test_the_loss_covers_dropped_tokens_only():
    task = DropPos(1000, 100, **SIZES)
    x = torch.randn(3, 1000)
    patches = task.patches(x)
    torch.manual_seed(2)
    places = task.random_order(x)[:, : task.n_visible]
    torch.manual_seed(2)
    logits, true = task(x)
    assert torch.equal(true, places[:, : task.n_dropped])
    losses = [
        -torch.log_softmax(task.classify(patches, places)[b, i], 0)[places[b, i]]
        for b in range(3)
        for i in range(task.n_dropped)
    ]
    torch.testing.assert_close(task.criterion()(logits, true), torch.stack(losses).mean())


@pytest.mark.parametrize(
    ("ratios", "n_visible", "n_dropped"),
    [((0.5, 0.75), 10, 8), ((0.0, 1.0), 20, 20), ((0.8, 0.5), 4, 2), ((0.95, 1.0), 1, 1)],
)
def test_numbers_of_visible_and_dropped_patches(ratios, n_visible, n_dropped):
    task = DropPos(2000, 100, mask_ratio=ratios[0], position_mask_ratio=ratios[1], **SIZES)
    seen = []
    task.encoder.register_forward_pre_hook(lambda _, args: seen.append(args[0].shape))
    logits, places = task(torch.randn(4, 2000))
    assert seen == [(4, n_visible, 32)]
    assert logits.shape == (4, 20, n_dropped)  # one class for each of the 20 places
    assert places.shape == (4, n_dropped)
    assert task.chance_loss() == pytest.approx(math.log(20 - n_visible + n_dropped))
