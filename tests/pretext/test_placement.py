"""Places of patches."""

from __future__ import annotations

import pytest
import torch

from braindecode_pars.pretext._placement import Placement, default_n_patches, most_patches


@pytest.mark.parametrize(("n_times", "gap"), [(2560, 16), (2560, 0), (1000, 128), (300, 30)])
def test_a_grid_with_gaps_has_all_patches_that_fit(n_times, gap):
    expected = list(range(0, n_times - 128 + 1, 128 + gap))
    placement = Placement(n_times, 128, len(expected), sampling="grid", min_gap=gap)
    for starts in placement.draw(20):
        assert starts.sort().values.tolist() == expected
    assert most_patches(n_times, 128, gap) == len(expected)
    assert default_n_patches(n_times, 128, "grid", True, gap) == len(expected)
    assert placement.shortest_lag == 128 + gap


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
