"""Losses by lag: octaves in patches, relative to a guess on the same pairs."""

from __future__ import annotations

import pytest
import torch

from braindecode_pars.pretext.lags import lag_bins, losses_by_lag


@pytest.mark.parametrize(
    ("shortest", "longest", "expected"),
    [
        (0, 29, [(0, 1), (1, 2), (2, 4), (4, 8), (8, 16), (16, 29)]),
        (0, 3, [(0, 1), (1, 2), (2, 3)]),
        (0, 0.5, [(0, 1)]),
        (0, 1.2, [(0, 2)]),
        (1, 3, [(1, 2), (2, 3)]),
        (1, 17, [(1, 2), (2, 4), (4, 8), (8, 17)]),
        (2, 29, [(2, 4), (4, 8), (8, 16), (16, 29)]),
        (40, 50, [(32, 50)]),
    ],
)
def test_bins_are_octaves_that_occur(shortest, longest, expected):
    assert lag_bins(shortest, longest) == expected


def test_against_loops():
    starts = torch.rand(5, 6) * 9
    lags = (starts[:, :, None] - starts[:, None]).abs()
    losses, guessed = torch.rand(2, 5, 6, 6)
    bins = lag_bins(0, 9)
    parts = losses_by_lag(losses, guessed, lags, bins)
    assert list(parts) == ["lag_0_1", "lag_1_2", "lag_2_4", "lag_4_9"]
    for (low, high), part in zip(bins, parts.values(), strict=True):
        total = reference = 0.0
        for b in range(5):
            for j in range(6):
                for k in range(6):
                    if j != k and low <= lags[b, j, k] < high:
                        total += losses[b, j, k].item()
                        reference += guessed[b, j, k].item()
        assert part.item() == pytest.approx(total / reference)


def test_the_last_bin_has_the_longest_lag_and_an_empty_one_is_nan():
    lags = torch.tensor([[[0.0, 4.0], [4.0, 0.0]]])
    parts = losses_by_lag(torch.ones(1, 2, 2), torch.full((1, 2, 2), 2.0), lags, [(1, 2), (2, 4)])
    assert parts["lag_1_2"].isnan()
    assert parts["lag_2_4"] == 0.5
