"""The loss of distances and orders equals plain loops, and its bins are log-spaced."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from braindecode_pars.pretext.pars import DistanceLoss, relative_shifts


def slow_bin(distance: float, edges: list[float]) -> int:
    """Number of inner edges that are not above the distance."""
    return sum(distance >= edge * (1 - 1e-6) for edge in edges[1:-1])


def test_bins_are_log_spaced():
    criterion = DistanceLoss(n_bins=5, shortest=0.02, longest=0.9)
    edges = np.geomspace(0.02, 0.9, 6).tolist()
    shifts = torch.rand(2000) * 1.8 - 0.9
    near_an_edge = (shifts.abs()[:, None] / torch.tensor(edges) - 1).abs().amin(dim=1) < 1e-3
    shifts = shifts[~near_an_edge]
    expected = [slow_bin(abs(shift), edges) for shift in shifts.tolist()]
    assert criterion.bins(shifts).tolist() == expected
    assert set(expected) == {0, 1, 2, 3, 4}
    # Edges belong to the upper bin; shorter and longer distances to the outer bins.
    assert criterion.bins(torch.tensor(edges)).tolist() == [0, 1, 2, 3, 4, 4]
    assert criterion.bins(torch.tensor([0.0, 0.001, -0.99])).tolist() == [0, 0, 4]


def test_the_loss_against_loops():
    criterion = DistanceLoss(n_bins=4, shortest=0.1, longest=0.9)
    shifts = relative_shifts(torch.tensor([[0, 30, 30, 85], [10, 90, 50, 0]]), 100)
    prediction = torch.randn(2, 4, 4, 5)
    edges = np.geomspace(0.1, 0.9, 5).tolist()
    losses = []
    for b, j, k in np.ndindex(2, 4, 4):
        if j == k:
            continue
        shift, logits = shifts[b, j, k].item(), prediction[b, j, k].double()
        shares = torch.softmax(logits[:4], dim=0)
        loss = -math.log(shares[slow_bin(abs(shift), edges)])
        later = 1 / (1 + math.exp(-logits[4]))
        if shift != 0:
            loss -= math.log(later if shift > 0 else 1 - later)
        losses.append(loss)
    assert criterion(prediction, shifts).item() == pytest.approx(np.mean(losses), rel=1e-5)
    assert len(losses) == 24


def test_the_diagonal_has_no_gradient():
    criterion = DistanceLoss(4, 0.1, 0.9)
    prediction = torch.randn(3, 5, 5, 5, requires_grad=True)
    criterion(prediction, relative_shifts(torch.randint(90, (3, 5)), 100)).backward()
    gradients = prediction.grad.abs().sum(dim=(0, 3))
    assert (gradients.diag() == 0).all()
    assert ((gradients > 0) | torch.eye(5, dtype=torch.bool)).all()


def test_no_constant_is_better_than_the_best_guess():
    criterion = DistanceLoss(5, 0.05, 0.95)
    shifts = relative_shifts(torch.randint(95, (4000, 4)), 100)
    guess = criterion.best_guess(shifts)

    def loss(constant):
        return criterion(constant.expand(*shifts.shape, -1), shifts).item()

    shares = guess[:-1].exp()
    entropy = -(shares * shares.log()).sum().item()
    has_order = (shifts != 0).sum().item() / (4000 * 4 * 3)
    assert loss(guess) == pytest.approx(entropy + has_order * math.log(2), abs=1e-3)
    assert all(loss(guess + 0.1 * torch.randn(6)) > loss(guess) for _ in range(10))


def test_an_empty_bin_has_a_finite_guess():
    grid = relative_shifts(torch.tensor([[0, 25, 50, 75]]), 100)
    assert DistanceLoss(12, 0.25, 0.75).best_guess(grid).isfinite().all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(n_bins=1), "n_bins"),
        (dict(shortest=0), "shortest"),
        (dict(longest=0.05), "shortest=0.1 .* longest=0.05"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        DistanceLoss(**{**dict(n_bins=4, shortest=0.1, longest=0.9), **arguments})
