"""Tasks on a grid of patches: order, visible patches, removed patches, and guesses."""

from __future__ import annotations

import pytest
import torch
from support.pretext_contract import SIZES

from braindecode_pars.pretext import MAE, MP3, DropPos
from braindecode_pars.pretext.grid import GridTask


def test_patches_and_positions():
    task = GridTask(1050, 100, **SIZES)
    x = torch.randn(2, 1050)
    patches = task.patches(x)
    assert patches.shape == (2, 10, 100)
    normed = (x - x.mean(1, keepdim=True)) / x.std(1, correction=0, keepdim=True)
    torch.testing.assert_close(patches[1, 3], normed[1, 300:400])
    positions = task.positions(patches)
    for n in range(10):
        for i in range(0, 32, 2):
            angle = torch.tensor(n / 10_000 ** (i / 32))
            torch.testing.assert_close(positions[n, i], angle.sin())
            torch.testing.assert_close(positions[n, i + 1], angle.cos())


def test_orders_are_permutations_and_every_place_is_equally_likely():
    task = GridTask(500, 100, **SIZES)
    order = task.random_order(torch.zeros(20_000, 500))
    assert torch.equal(order.sort(dim=1).values, torch.arange(5).expand(20_000, -1))
    for place in range(5):
        shares = (order == place).float().mean(dim=0)
        torch.testing.assert_close(shares, torch.full((5,), 0.2), atol=0.02, rtol=0)


@pytest.mark.parametrize(
    ("task", "arguments", "message"),
    [
        (MAE, dict(mask_ratio=-0.1), "mask_ratio"),
        (MAE, dict(mask_ratio=0.1), "between 1 and 3.*between 0.25 and 0.75"),
        (MAE, dict(loss_on="visible"), "loss_on"),
        (MP3, dict(mask_ratio=0.9), "between 0 and 3"),
        (DropPos, dict(position_mask_ratio=0.1), "between 1 and 2.*between 0.5 and 1"),
        (DropPos, dict(mask_ratio=0, position_mask_ratio=0.25), "between 2 and 4"),
    ],
)
def test_bad_arguments(task, arguments, message):
    with pytest.raises(ValueError, match=message):
        task(800, 200, **SIZES, **arguments)
