"""MAE equals a slow recomputation, and has its defining properties."""

from __future__ import annotations

from typing import ClassVar

import pytest
import torch
from support.pretext_contract import SIZES, PretextContract

from braindecode_pars.pretext import MAE
from braindecode_pars.pretext.grid import take
from braindecode_pars.pretraining import PretrainingNet
from braindecode_pars.tokens import sinusoidal_positions


class TestMAE(PretextContract):
    task = MAE
    sham_steps = 200
    noise_arguments: ClassVar[dict] = dict(loss_on="masked")

    def ignore_signal(self, task):
        task.reconstruct = lambda patches, order: torch.zeros_like(patches)


def test_sizes():
    task = MAE(6000)
    assert (task.n_patches, task.n_masked) == (30, 15)
    assert task.mask_token.shape == (512,)
    assert sum(p.numel() for p in task.decoder.parameters()) == 1_577_984
    assert sum(p.numel() for p in task.head.parameters()) == 512 * 200 + 200
    prediction, target = MAE(1000, 100, loss_on="masked", mask_ratio=0.36, **SIZES)(
        torch.randn(2, 1000)
    )
    assert prediction.shape == target.shape == (2, 4, 100)  # rounded


@torch.no_grad()
def test_against_a_slow_plain_recomputation():
    task = MAE(500, 50, embed_dim=16, num_layers=2, num_heads=2, mlp_dim=24).double()
    patches = torch.randn(2, 10, 50, dtype=torch.float64)
    order = task.random_order(patches.flatten(1))
    reconstructed = task.reconstruct(patches, order)
    positions = sinusoidal_positions(torch.arange(10).double(), 16)
    for b in range(2):
        removed = set(order[b, :5].tolist())
        visible = [n for n in range(10) if n not in removed]
        tokens = torch.stack(
            [
                task.encoder.tokenizer.weight @ patches[b, n]
                + task.encoder.tokenizer.bias
                + positions[n]
                for n in visible
            ]
        )
        features = dict(zip(visible, task.encoder(tokens[None])[0], strict=True))
        whole = torch.stack(
            [(task.mask_token if n in removed else features[n]) + positions[n] for n in range(10)]
        )
        expected = task.head(task.decoder(whole[None])[0])
        torch.testing.assert_close(reconstructed[b], expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_prediction_and_target_have_the_removed_patches_first():
    task = MAE(1000, 100, **SIZES)
    x = torch.randn(2, 1000)
    patches = task.patches(x)
    torch.manual_seed(4)
    prediction, target = task(x)
    torch.manual_seed(4)
    order = task.random_order(x)
    assert torch.equal(target, take(patches, order))
    assert torch.equal(prediction, take(task.reconstruct(patches, order), order))
    removed = (prediction - target)[:, : task.n_masked].square().mean()
    torch.testing.assert_close(task.part_losses(prediction, target)["masked"], removed)


@pytest.mark.parametrize(("mask_ratio", "n_visible"), [(0.5, 5), (0.8, 2), (0.1, 9)])
def test_only_visible_tokens_enter_the_encoder(mask_ratio, n_visible):
    task = MAE(1000, 100, mask_ratio=mask_ratio, **SIZES)
    seen = []
    task.encoder.register_forward_pre_hook(lambda _, args: seen.append(args[0].shape))
    task(torch.randn(4, 1000))
    assert seen == [(4, n_visible, 32)]


def test_the_loss_on_removed_patches_is_logged():
    net = PretrainingNet(MAE(1000, 100, **SIZES), max_epochs=2, batch_size=4, verbose=0)
    net.fit(torch.randn(8, 1000).numpy())
    assert {"train_loss_relative", "train_loss_relative_masked"} <= set(net.history[-1])
    masked = PretrainingNet(
        MAE(1000, 100, loss_on="masked", **SIZES), max_epochs=1, batch_size=4, verbose=0
    )
    masked.fit(torch.randn(8, 1000).numpy())
    assert "train_loss_relative_masked" not in masked.history[-1]
