"""Places of patches, and the losses of pairs by their lag."""

from __future__ import annotations

import pytest
import torch

from braindecode_pars.pretext._placement import Placement, default_n_patches, most_patches
from braindecode_pars.pretext.lags import lag_bins, losses_by_lag


@pytest.mark.parametrize(("n_times", "gap"), [(2560, 16), (2560, 0), (1000, 128), (300, 30)])
def test_a_grid_with_gaps_has_all_patches_that_fit(n_times, gap):
    expected = list(range(0, n_times - 128 + 1, 128 + gap))
    placement = Placement(n_times, 128, len(expected), sampling="grid", min_gap=gap)
    for starts in placement.draw(20):
        assert starts.sort().values.tolist() == expected
    assert most_patches(n_times, 128, gap) == len(expected)
    assert default_n_patches(n_times, 128, "grid", True, gap) == len(expected)
    assert (placement.shortest_lag, placement.longest_lag) == (128 + gap, n_times - 128)


def test_the_default_number_of_patches():
    def default(n_times, sampling="random", overlap=True, gap=0):
        return default_n_patches(n_times, 128, sampling, overlap, gap)

    assert (default(30 * 128), default(30 * 128, overlap=False)) == (40, 20)
    # With wide gaps, as many as fit.
    assert default(20 * 128, overlap=False, gap=16) == 13
    assert default(20 * 128, overlap=False, gap=128) == 10


def test_only_overlapping_patches_have_lags_below_a_patch():
    assert Placement(1000, 100, 8).shortest_lag == 0
    assert Placement(1000, 100, 8, overlap=False, min_gap=5).shortest_lag == 105


def test_patches_that_do_not_fit():
    with pytest.raises(ValueError, match="at most 8"):
        Placement(1000, 100, 10, overlap=False, min_gap=20).draw(1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(min_gap=5), "overlap"),
        (dict(min_gap=20, sampling="grid"), "8 patches"),
    ],
)
def test_contradictions_are_explained(arguments, message):
    with pytest.raises(ValueError, match=message):
        Placement(1000, 100, 10, **arguments)


def test_draws_follow_the_generator():
    for sampling in ("random", "grid"):
        placement = Placement(1000, 100, 10, sampling)
        first, second = (
            placement.draw(3, generator=torch.Generator().manual_seed(1)) for _ in range(2)
        )
        assert torch.equal(first, second)
        assert first.shape == (3, 10)


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
