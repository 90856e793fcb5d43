"""Noise on random channels: number of channels, and amplitude."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from braindecode.augmentation import GaussianNoise, SignFlip

from braindecode_pars.estimators.augmentation import ChannelNoise, make_augmentation


@pytest.fixture
def batch():
    """Channels of three amplitudes; the last channel is flat."""
    amplitudes = torch.tensor([1e-5, 1e-4, 0.0])
    return amplitudes[:, None] * torch.randn(400, 3, 500), torch.arange(400)


def test_a_fifth_of_the_channels_receive_noise_of_their_amplitude(batch):
    X, y = batch
    noisy, labels = ChannelNoise(random_state=0)(X, y)
    assert torch.equal(labels, y)
    added = noisy - X
    changed = added.abs().amax(-1) > 0
    assert changed[:, :2].float().mean(0) == pytest.approx([0.2, 0.2], abs=0.05)
    assert not changed[:, 2].any()  # the noise of a flat channel is zero
    ratio = (added.std(-1, correction=0) / X.std(-1, correction=0))[changed]
    assert ratio.mean() == pytest.approx(1, abs=0.01)


def test_probabilities_and_std_of_the_noise(batch):
    X, y = batch
    noisy, _ = ChannelNoise(channel_probability=1.0, std=3.0, random_state=0)(X, y)
    ratio = (noisy - X)[:, :2].std(-1, correction=0) / X[:, :2].std(-1, correction=0)
    assert ratio.mean() == pytest.approx(3, rel=0.01)
    assert torch.equal(ChannelNoise(channel_probability=0.0)(X, y)[0], X)
    half, _ = ChannelNoise(0.5, channel_probability=1.0, random_state=1)(X, y)
    fraction = (half != X).flatten(1).any(1).float().mean()
    assert fraction == pytest.approx(0.5, abs=0.08)


def test_noise_is_reproducible():
    X = torch.tensor([[[0.0, 0.0, 1.0, 1.0]]])  # its standard deviation is 0.5
    noisy, _ = ChannelNoise(channel_probability=1.0, std=3.0, random_state=7)(X, torch.zeros(1))
    added = ((noisy - X) / 1.5).flatten().tolist()
    rng = np.random.RandomState(7)
    rng.random_sample(1), rng.random_sample((1, 1))  # which windows, and which channels
    assert added == pytest.approx(rng.standard_normal(4).tolist(), rel=1e-5)


def test_augmentations_by_name():
    noise, flip, custom = make_augmentation(
        [{"name": "ChannelNoise", "std": 0.5}, "SignFlip", given := GaussianNoise(0.1)]
    )
    assert (type(noise), noise.std, noise.channel_probability) == (ChannelNoise, 0.5, 0.2)
    assert (type(flip), flip.probability) == (SignFlip, 0.5)
    assert custom is given
    assert make_augmentation(None) is None
