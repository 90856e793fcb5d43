"""SpectralMAE equals a slow recomputation, and asks for rhythms in all bands alike."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.pretext_contract import SIZES, PretextContract

from braindecode_pars.pretext import SpectralMAE
from braindecode_pars.pretext.spectral import frequency_bands


class TestSpectralMAE(PretextContract):
    task = SpectralMAE
    held_out_steps = 100

    def ignore_signal(self, task):
        task.reconstruct = lambda patches, order: torch.zeros(*patches.shape[:2], 50)


def test_the_bands_of_one_second_are_those_of_eeg():
    expected = dict(delta=(1, 3), theta=(4, 7), alpha=(8, 15), beta=(16, 31))
    assert frequency_bands(128) == [*expected.values(), (32, 64)]
    assert frequency_bands(200) == [*expected.values(), (32, 100)]
    assert frequency_bands(2) == [(1, 1)]
    for patch_size in range(2, 200):
        covered = [f for low, high in frequency_bands(patch_size) for f in range(low, high + 1)]
        assert covered == list(range(1, patch_size // 2 + 1))


@torch.no_grad()
def test_loss_and_target_against_a_slow_plain_recomputation():
    """One patch and one band at a time, with NumPy's Fourier transform."""
    task = SpectralMAE(480, 40, mask_ratio=0.25, **SIZES).double()
    x = torch.randn(3, 480, dtype=torch.float64).cumsum(dim=1)
    torch.manual_seed(2)
    loss = task.criterion()(*task(x)).item()
    parts = task.part_losses(*_repeat(task, x))
    torch.manual_seed(2)
    patches, order = task.patches(x), task.random_order(x)
    predictions = task.reconstruct(patches, order).numpy()

    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(40) / 40)
    spectra = np.empty((3, 12, 20))
    for b, n in np.ndindex(3, 12):
        patch = patches[b, n].numpy()
        power = np.abs(np.fft.rfft(window * (patch - patch.mean()))[1:]) ** 2
        spectra[b, n] = np.log(power / (window**2).sum() + 1e-4)
    targets = (spectra - spectra.mean(axis=(0, 1))) / spectra.std(axis=(0, 1))

    bands = {(1, 3): [], (4, 7): [], (8, 15): [], (16, 20): []}
    for (first, last), errors in bands.items():
        for b in range(3):
            for n in order[b, :3]:
                for frequency in range(first, last + 1):
                    at = b, n, frequency - 1
                    errors.append((predictions[at] - targets[at]) ** 2)
    by_band = {band: np.mean(errors) for band, errors in bands.items()}
    assert loss == pytest.approx(np.mean(list(by_band.values())), rel=1e-5)
    for (first, last), expected in by_band.items():
        assert parts[f"band_{first}_{last}"].item() == pytest.approx(expected, rel=1e-5)


def _repeat(task, x):
    torch.manual_seed(2)
    return task(x)


def test_a_patch_of_one_sample_has_no_spectrum():
    with pytest.raises(ValueError, match="patch_size"):
        SpectralMAE(100, 1, **SIZES)
