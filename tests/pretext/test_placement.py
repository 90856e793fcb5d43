"""Places of the patches of PARS."""

from __future__ import annotations

import pytest
import torch

from braindecode_pars.pretext import PARS

SIZES = dict(embed_dim=4, num_layers=1, num_heads=1, mlp_dim=4, position_mask_ratio=1.0)


@pytest.mark.parametrize(("n_times", "gap"), [(2560, 16), (2560, 0), (1000, 128), (300, 30)])
def test_a_grid_with_gaps_has_all_patches_that_fit(n_times, gap):
    expected = list(range(0, n_times - 128 + 1, 128 + gap))
    for n_patches in (None, len(expected)):
        task = PARS(n_times, 128, n_patches=n_patches, sampling="grid", min_gap=gap, **SIZES)
        assert task.n_patches == len(expected)
        for starts in task.sample_starts(20):
            assert starts.sort().values.tolist() == expected


def test_the_default_number_of_patches():
    def default(n_times, **arguments):
        return PARS(n_times, 128, **arguments, **SIZES).n_patches

    assert (default(30 * 128), default(30 * 128, overlap=False)) == (40, 20)
    # With wide gaps, as many as fit.
    assert default(20 * 128, overlap=False, min_gap=16) == 13
    assert default(20 * 128, overlap=False, min_gap=128) == 10


def test_only_overlapping_patches_are_less_than_a_patch_apart():
    for arguments, shortest in ((dict(overlap=True), 0), (dict(overlap=False, min_gap=5), 105)):
        starts = PARS(1000, 100, n_patches=8, **arguments, **SIZES).sample_starts(2000)
        assert starts.sort(dim=1).values.diff(dim=1).min() == shortest


def test_draws_follow_the_generator():
    for sampling in ("random", "grid"):
        task = PARS(1000, 100, n_patches=10, sampling=sampling, **SIZES)
        first, second = (
            task.sample_starts(3, generator=torch.Generator().manual_seed(1)) for _ in range(2)
        )
        assert torch.equal(first, second)
        assert first.shape == (3, 10)
