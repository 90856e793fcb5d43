"""Spatial filters as a function of electrode position."""

from __future__ import annotations

import mne
import pytest
import torch

from braindecode_pars.models import SpatialFilter, electrode_positions

NAMES = ("Fp1", "Fp2", "C3", "Cz", "C4", "O1", "O2")


def positions(*names: str) -> torch.Tensor:
    chs_info = mne.create_info(list(names), 100.0, "eeg")["chs"]
    return torch.from_numpy(electrode_positions(chs_info)).double()


@pytest.fixture
def pool() -> SpatialFilter:
    return SpatialFilter(n_features=5, n_gains=3).double()


@pytest.fixture
def features() -> torch.Tensor:
    return torch.randn(4, len(NAMES), 5, dtype=torch.float64)


def slow(pool, features, positions, keep) -> torch.Tensor:
    """The same in plain loops."""
    gains = pool.gains(positions).reshape(len(positions), 3, 5)
    result = torch.zeros(len(features), 15, dtype=torch.float64)
    for b in range(len(features)):
        channels = [c for c in range(len(positions)) if keep[b, c]]
        for k in range(3):
            for f in range(5):
                products = [gains[c, k, f] * features[b, c, f] for c in channels]
                result[b, k * 5 + f] = sum(products) / len(channels)
    return result


@torch.no_grad()
def test_against_plain_loops(pool, features):
    where, keep = positions(*NAMES), torch.rand(4, len(NAMES)) > 0.4
    keep[:, 0] = True
    everything = torch.ones_like(keep)
    torch.testing.assert_close(pool.pool(features, where), slow(pool, features, where, everything))
    pooled = slow(pool, features, where, keep)
    torch.testing.assert_close(pool.pool(features, where, keep), pooled)
    # Layer norm.
    centred = pooled - pooled.mean(dim=1, keepdim=True)
    normed = centred / (centred.square().mean(dim=1, keepdim=True) + 1e-5).sqrt()
    expected = normed * pool.norm.weight + pool.norm.bias
    torch.testing.assert_close(pool(features, where, keep), expected)


@torch.no_grad()
def test_a_missing_channel_is_an_absent_one(pool, features):
    where, kept = positions(*NAMES), [0, 1, 3, 6]
    keep = torch.zeros(4, len(NAMES), dtype=torch.bool)
    keep[:, kept] = True
    features[~keep] = torch.nan
    torch.testing.assert_close(pool(features, where, keep), pool(features[:, kept], where[kept]))


@torch.no_grad()
def test_each_window_can_have_its_own_positions(pool, features):
    where = torch.stack([positions(*NAMES).roll(shift, dims=0) for shift in range(4)])
    together = pool(features, where)
    for b in range(4):
        torch.testing.assert_close(together[b], pool(features[b : b + 1], where[b])[0])


def test_all_electrodes_of_the_10_10_system_can_have_any_gains():
    names = mne.channels.make_standard_montage("biosemi64").ch_names
    codes = SpatialFilter(5).gains.features(positions(*names))
    assert torch.linalg.matrix_rank(codes) == 64
