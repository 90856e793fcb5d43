"""Instance norm, patches and positions, compared with slow reference computations."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import signal

from braindecode_pars.tokens import (
    LogPowerSpectrum,
    PatchEmbedding,
    SpectralPatchEmbedding,
    detrended_patches,
    grid_patches,
    instance_norm,
    nonoverlapping_starts,
    random_starts,
    sinusoidal_positions,
)


def test_instance_norm_follows_the_formula():
    x = torch.randn(3, 4, 500, dtype=torch.float64) * 7 + 2
    expected = np.empty(x.shape)
    for i in range(3):
        for j in range(4):
            row = x[i, j].numpy()
            mean = sum(row) / len(row)
            variance = sum((row - mean) ** 2) / len(row)
            expected[i, j] = (row - mean) / math.sqrt(variance + 1e-20)
    np.testing.assert_allclose(instance_norm(x).numpy(), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("offset", [0.0, 3e-5, 0.1, -1234.567])
def test_instance_norm_of_a_flat_channel_is_zero(offset):
    flat = torch.full((2, 3000), offset)
    assert torch.equal(instance_norm(flat), torch.zeros(2, 3000))


def test_instance_norm_does_not_depend_on_the_unit():
    volts = torch.randn(5, 3000) * 20e-6 + 3e-4
    torch.testing.assert_close(instance_norm(volts), instance_norm(volts * 1e6), rtol=0, atol=2e-5)


def test_grid_patches_drop_the_tail():
    x = torch.arange(23.0).repeat(2, 1)
    patches = grid_patches(x, 5)
    assert patches.shape == (2, 4, 5)
    assert patches[0, 3].tolist() == [15, 16, 17, 18, 19]


def test_random_starts_are_uniform_and_reach_both_ends():
    starts = random_starts(4000, 10, n_times=25, patch_size=10)
    counts = torch.bincount(starts.flatten(), minlength=16)
    assert len(counts) == 16  # 0 .. 15
    # Each count is binomial with mean 2500 and standard deviation 48.
    assert (counts - 2500).abs().max() < 5 * 48


@pytest.mark.parametrize(("n_patches", "min_gap"), [(1, 0), (4, 0), (6, 0), (4, 3), (5, 2)])
def test_nonoverlapping_starts_keep_the_minimum_gap(n_patches, min_gap):
    starts = nonoverlapping_starts(500, n_patches, 60, 10, min_gap=min_gap)
    ordered = starts.sort(dim=1).values
    assert ordered.min() >= 0
    assert ordered.max() <= 50
    assert n_patches == 1 or (ordered.diff(dim=1) >= 10 + min_gap).all()
    assert n_patches == 1 or not torch.equal(starts, ordered)  # the order is random


@pytest.mark.parametrize(("n_times", "min_gap"), [(9, 0), (11, 1)])
def test_nonoverlapping_starts_are_uniform_over_arrangements(n_times, min_gap):
    """Three patches of two samples leave three free: C(6, 3) = 20 arrangements, equally likely."""
    starts = nonoverlapping_starts(20_000, 3, n_times, 2, min_gap=min_gap).sort(dim=1).values
    arrangements, counts = starts.unique(dim=0, return_counts=True)
    assert len(arrangements) == 20
    assert (counts - 1000).abs().max() < 5 * math.sqrt(1000)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_detrended_patches_equal_scipy(dtype):
    patches = torch.randn(3, 4, 50, dtype=dtype).cumsum(dim=-1) + 5
    expected = signal.detrend(patches.numpy(), axis=-1)
    np.testing.assert_allclose(detrended_patches(patches).numpy(), expected, atol=1e-4)
    assert detrended_patches(patches).dtype == dtype
    assert detrended_patches(patches.bfloat16()).dtype == torch.bfloat16


def test_sinusoidal_positions_follow_the_formula_at_real_times():
    times = torch.tensor([0.0, 1.0, 2.5, 28.995])
    code = sinusoidal_positions(times, 8)
    for row, time in zip(code, times.tolist(), strict=True):
        for i in range(4):
            angle = time / 10_000 ** (2 * i / 8)
            assert row[2 * i].item() == pytest.approx(math.sin(angle), abs=1e-5)
            assert row[2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-5)


def test_patch_embedding_is_one_linear_layer_with_bias():
    embedding = PatchEmbedding()
    assert sum(p.numel() for p in embedding.parameters()) == 102_912
    patches = torch.randn(2, 3, 200)
    expected = patches @ embedding.weight.T + embedding.bias
    torch.testing.assert_close(embedding(patches), expected)


def plain_log_spectrum(patch):
    """Return the log spectrum of one patch, computed with NumPy's FFT."""
    patch = np.asarray(patch, dtype=float)
    window = signal.windows.hann(len(patch), sym=False)
    power = np.abs(np.fft.rfft((patch - patch.mean()) * window)[1:]) ** 2 / np.sum(window**2)
    return np.log(power + 1e-4)


@pytest.mark.parametrize("patch_size", [2, 7, 128, 200])
def test_log_power_spectrum_against_an_fft(patch_size):
    patches = 3 + torch.randn(2, 3, patch_size, dtype=torch.float64)
    expected = [[plain_log_spectrum(patch) for patch in example] for example in patches.numpy()]
    spectrum = LogPowerSpectrum(patch_size)
    torch.testing.assert_close(
        spectrum(patches), torch.tensor(np.array(expected)), rtol=1e-4, atol=1e-5
    )
    assert spectrum(patches.float()).dtype == torch.float32
    assert not spectrum.state_dict()


def test_the_log_power_spectrum_is_computed_in_float32_under_autocast():
    patches, spectrum = torch.randn(3, 100), LogPowerSpectrum(100)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(spectrum(patches), spectrum(patches.double().float()))
        assert spectrum(patches).dtype == torch.float32
    assert torch.equal(spectrum(patches.bfloat16()), spectrum(patches.bfloat16().float()))


def test_spectral_tokens_are_the_linear_ones_plus_a_linear_map_of_the_spectrum():
    tokenizer = SpectralPatchEmbedding(100, 16).double()
    patches = torch.randn(2, 3, 100, dtype=torch.float64)
    linear = patches @ tokenizer.weight.T + tokenizer.bias
    spectra = torch.tensor(np.array([[plain_log_spectrum(p) for p in e] for e in patches.numpy()]))
    expected = linear + spectra / 4 @ tokenizer.spectrum_weight.T
    torch.testing.assert_close(tokenizer(patches), expected, rtol=1e-4, atol=1e-5)
    assert set(tokenizer.state_dict()) == {"weight", "bias", "spectrum_weight"}
