"""Synthetic signals of an experiment: equations, spectra, random seeds, and pretraining."""

from __future__ import annotations

import numpy as np
import pytest
from make_encoder import command_of
from synthetic_signals import NOISE, SyntheticSignals

from braindecode_pars.pretrained import load_encoder


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# Noise --------------------------------------------------------------------------------------------


def test_the_default_is_the_noise_of_the_published_experiments():
    """Encoders in the published experiments were pretrained on this noise, normalized."""
    draws = rng(3)
    f = np.fft.rfftfreq(384, 1 / 128)
    exponent = draws.uniform(0, 3, (50, 1))
    knee = draws.uniform(0, 8, (50, 1)) * (draws.random((50, 1)) < 0.5)
    amplitude = ((f >= 0.5) & (f <= 45)) / np.sqrt(np.maximum(f, 0.5) ** exponent + knee**exponent)
    z = draws.standard_normal((50, len(f))) + 1j * draws.standard_normal((50, len(f)))
    expected = np.fft.irfft(z * amplitude, 384)
    signals = SyntheticSignals().draw(50, 384, rng(3))
    assert np.allclose(signals / 1e-5, expected / expected.std(axis=1, keepdims=True), atol=1e-4)


# Draws --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_times", [1, 2, 3, 77, 384])
def test_crops_of_any_length_depend_on_the_seed(n_times):
    source = SyntheticSignals(100)
    crops, repeated, other_seed = (source.draw(5, n_times, rng(seed)) for seed in (1, 1, 2))
    assert (crops.dtype, crops.shape) == (np.float32, (5, n_times))
    assert np.array_equal(crops, repeated)
    assert not np.allclose(crops, other_seed, atol=1e-7)
    assert np.isfinite(crops).all()
    assert source.draw(0, n_times, rng()).shape == (0, n_times)


def test_the_band_ends_at_half_of_a_low_sampling_rate():
    assert SyntheticSignals(250).preprocessing.band == (0.5, 45)
    assert SyntheticSignals(64).preprocessing.band == (0.5, None)
    assert SyntheticSignals(64).draw(3, 200, rng()).std(axis=1) == pytest.approx(1e-5)


# Training -----------------------------------------------------------------------------------------


def test_the_default_settings_are_the_settings_of_the_encoder_small():
    command = load_encoder("small").card.about["command"]
    assert command_of(NOISE) == command
