"""The grid of adjacent patches, and numbers of patches from ratios."""

from __future__ import annotations

import pytest
import torch
from support.pretext_contract import SIZES

from braindecode_pars.pretext import MAE, MP3, DropPos
from braindecode_pars.pretext.grid import GridTask, number_of, take


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


def test_take_selects_tokens_by_place():
    tokens = torch.arange(12.0).reshape(2, 3, 2)
    taken = take(tokens, torch.tensor([[2, 0], [1, 1]]))
    assert taken.tolist() == [[[4, 5], [0, 1]], [[8, 9], [8, 9]]]


def test_number_of_patches_from_a_ratio():
    assert number_of(0.5, 30, "mask_ratio", least=1, most=29, does="removes") == 15
    assert number_of(0.75, 15, "mask_ratio", least=1, most=15, does="removes") == 11
    with pytest.raises(ValueError, match=r"must be a number in \[0, 1\], got nan"):
        number_of(float("nan"), 3, "ratio", least=0, most=3, does="removes")


@pytest.mark.parametrize("task", [MAE, MP3, DropPos])
def test_a_window_of_less_than_two_patches(task):
    with pytest.raises(
        ValueError, match=rf"{task.__name__} needs a grid of at least two patches; a window of 399 "
    ):
        task(399, 200, **SIZES)
    assert task(400, 200, **SIZES).n_patches == 2


@pytest.mark.parametrize(
    ("task", "arguments", "message"),
    [
        (MAE, dict(mask_ratio=1.2), r"mask_ratio must be a number in \[0, 1\], got 1.2"),
        (MAE, dict(mask_ratio=-0.1), r"mask_ratio must be a number in \[0, 1\], got -0.1"),
        (
            MAE,
            dict(mask_ratio=0.1),
            "mask_ratio=0.1 of 4 patches removes 0, but it must be 1 to 3: mask_ratio between 0.25 "
            "and 0.75 fits, or longer windows",
        ),
        (MAE, dict(mask_ratio=1.0), "mask_ratio=1 of 4 patches removes 4, but it must be 1 to 3"),
        (MAE, dict(loss_on="visible"), "loss_on must be one of 'all', 'masked', got 'visible'"),
        (MP3, dict(mask_ratio=0.9), "mask_ratio=0.9 of 4 patches masks 4, but it must be 0 to 3"),
        (MP3, dict(mask_ratio=3), r"mask_ratio must be a number in \[0, 1\], got 3"),
        (DropPos, dict(mask_ratio=1.0), "removes 4, but it must be 0 to 3"),
        (DropPos, dict(position_mask_ratio=1.5), "position_mask_ratio must be a number in"),
        (
            DropPos,
            dict(position_mask_ratio=0.1),
            "position_mask_ratio=0.1 of 2 visible patches drops the positions of 0, but it must be "
            "1 to 2: position_mask_ratio between 0.5 and 1 fits",
        ),
        (
            DropPos,
            dict(mask_ratio=0, position_mask_ratio=0.25),
            "of 4 visible patches drops the positions of 1, but it must be 2 to 4",
        ),
    ],
)
def test_bad_arguments(task, arguments, message):
    with pytest.raises(ValueError, match=message):
        task(800, 200, **SIZES, **arguments)
