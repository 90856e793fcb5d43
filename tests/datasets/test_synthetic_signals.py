"""Synthetic signals: their equations and spectra, their seeds, and training on them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from braindecode_pars import PARSClassifier, PatchEncoder
from braindecode_pars.callbacks import Pretraining
from braindecode_pars.datasets import SyntheticSignals, synthetic_signals
from braindecode_pars.datasets.synthetic_signals import noise
from braindecode_pars.pretraining import PretrainingSettings, pretrain_encoder
from braindecode_pars.windows import SingleChannelWindows

BAND = (0.5, 45)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# Noise --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_times", [40, 64, 65, 300])
def test_noise_is_a_sum_of_waves(n_times):
    """Of frequencies in the band, with these powers; of at least a period of the lower edge."""
    exponent, knee, sfreq = np.array([0.0, 1.3, 3.0]), np.array([0.0, 5.0, 2.0]), 32
    found = noise(n_times, sfreq, exponent, knee, BAND, rng())

    period = max(n_times, 64)  # two seconds
    frequencies = [i * sfreq / period for i in range(period // 2 + 1)]
    draws = rng()
    real, imaginary = (draws.standard_normal((3, len(frequencies))) for _ in range(2))
    for i, (chi, k) in enumerate(zip(exponent, knee, strict=True)):
        x = np.zeros(period)
        for j, f in enumerate(frequencies):
            if 0.5 <= f <= 45:
                p = 1 / (f**chi + k**chi)
                is_last = 2 * f == sfreq  # it has no sine, and half the power
                for t in range(period):
                    wave = 2 * math.pi * f * t / sfreq
                    value = real[i, j] * math.cos(wave) - imaginary[i, j] * math.sin(wave)
                    x[t] += (0.5 if is_last else 1) * math.sqrt(p) * value
        assert np.allclose(found[i], (x / x.std())[:n_times])


def test_the_default_is_noise_of_the_published_experiments():
    """Normalised, it is the generator of which the scores of encoders without EEG are."""
    draws = rng(3)
    f = np.fft.rfftfreq(384, 1 / 128)
    exponent = draws.uniform(0, 3, (50, 1))
    knee = draws.uniform(0, 8, (50, 1)) * (draws.random((50, 1)) < 0.5)
    amplitude = ((f >= 0.5) & (f <= 45)) / np.sqrt(np.maximum(f, 0.5) ** exponent + knee**exponent)
    z = draws.standard_normal((50, len(f))) + 1j * draws.standard_normal((50, len(f)))
    expected = np.fft.irfft(z * amplitude, 384)
    found = SyntheticSignals().draw(50, 384, rng(3))
    assert np.allclose(found / 1e-5, expected / expected.std(axis=1, keepdims=True), atol=1e-4)


def test_half_of_the_signals_have_a_knee(monkeypatch):
    drawn = {}

    def remembered(n_times, sfreq, exponent, knee, band, rng):
        drawn.update(exponent=exponent, knee=knee)
        return np.zeros((len(knee), n_times))

    monkeypatch.setattr(synthetic_signals, "noise", remembered)
    SyntheticSignals(exponent=(1, 2), knee=(4, 6)).draw(4000, 10, rng())
    assert (drawn["knee"] > 0).mean() == pytest.approx(0.5, abs=0.03)
    some = drawn["knee"][drawn["knee"] > 0]
    assert (some.min(), some.max()) == pytest.approx((4, 6), abs=0.01)
    assert some.mean() == pytest.approx(5, abs=0.05)
    assert (drawn["exponent"].min(), drawn["exponent"].max()) == pytest.approx((1, 2), abs=0.01)
    assert drawn["exponent"].mean() == pytest.approx(1.5, abs=0.03)


# Draws --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_times", [1, 2, 3, 77, 384])
def test_crops_of_any_length_follow_the_seed(n_times):
    source = SyntheticSignals(100)
    one, same, other = (source.draw(5, n_times, rng(seed)) for seed in (1, 1, 2))
    assert (one.dtype, one.shape) == (np.float32, (5, n_times))
    assert np.array_equal(one, same)
    assert not np.allclose(one, other, atol=1e-7)
    assert np.isfinite(one).all()
    assert source.draw(0, n_times, rng()).shape == (0, n_times)


def test_a_low_rate_has_what_is_below_half_of_it():
    assert SyntheticSignals(250).preprocessing.band == (0.5, 45)
    assert SyntheticSignals(64).preprocessing.band == (0.5, None)
    assert SyntheticSignals(64).draw(3, 200, rng()).std(axis=1) == pytest.approx(1e-5)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (dict(sfreq=0), ValueError, "sfreq"),
        (dict(exponent=(2, 1)), ValueError, "exponent must be a lower and an upper number"),
        (dict(exponent=1.0), TypeError, "exponent"),
        (dict(knee=(-1, 8)), ValueError, "from 0 to 1000"),
        (dict(band=(0, 45)), ValueError, "from 0.01"),
        (dict(band=(20, 20)), ValueError, "less than 0.01 Hz"),
        (dict(sfreq=30, band=(15, 45)), ValueError, "below 15 Hz, half the sampling rate"),
        (dict(n_windows=0), ValueError, "n_windows"),
    ],
)
def test_errors(given, error, message):
    with pytest.raises(error, match=message):
        SyntheticSignals(**given)


def test_settings_are_plain_numbers_as_json_has_them():
    given = SyntheticSignals(np.float32(128), exponent=[0, np.int64(3)], n_windows=np.int64(6400))
    assert given == SyntheticSignals()
    assert json.loads(json.dumps(vars(given)))["exponent"] == [0.0, 3.0]


# Training -----------------------------------------------------------------------------------------


def test_every_visit_draws_other_signals_that_follow_torchs_seed():
    examples = SingleChannelWindows(SyntheticSignals(n_windows=5), 200)
    assert (len(examples), examples.sfreq) == (5, 128)
    torch.manual_seed(0)
    one, two = examples[3][0], examples[3][0]
    torch.manual_seed(0)
    assert torch.equal(examples[3][0], one)
    assert one.shape == (200,)
    assert not torch.isclose(one, two).any()


def trained(tiny, windows, seed=0, **given) -> PatchEncoder:
    torch.manual_seed(0)
    encoder = PatchEncoder(64, **tiny)
    settings = PretrainingSettings("mae", epochs=1, batch_size=8)
    net = pretrain_encoder(encoder, windows, settings, seed=seed, verbose=0, **given)
    assert sum(batch["train_batch_size"] for batch in net.history[-1]["batches"]) == len(
        net.get_dataset(SingleChannelWindows(windows, 400))
    )
    return encoder


def test_pretrain_encoder_follows_its_seed(tiny):
    source = SyntheticSignals(n_windows=20)
    one, same, other = (trained(tiny, source, seed, n_times=400) for seed in (0, 0, 1))
    pairs = [
        [torch.equal(a, b) for a, b in zip(one.parameters(), each.parameters(), strict=True)]
        for each in (same, other)
    ]
    assert all(pairs[0])
    assert not all(pairs[1])
    with pytest.raises(ValueError, match="pass n_times"):
        trained(tiny, source)


def test_noise_and_recordings_are_mixed(tiny, nights):
    source = SyntheticSignals(100, n_windows=20)
    trained(tiny, [nights, source], n_times=400)
    with pytest.raises(ValueError, match="128 Hz"):
        trained(tiny, [nights, SyntheticSignals()], n_times=400)


def test_the_callback_pretrains_on_noise_beside_the_windows_of_fit(tiny, nights):
    source = SyntheticSignals(100, n_windows=64)
    callback = Pretraining("mae", epochs=1, unlabeled=source, batch_size=32, verbose=0)
    clf = PARSClassifier(
        None, **tiny, validation=0, finetune_epochs=1, callbacks=[callback], verbose=0
    )
    clf.fit(nights)
    (row,) = dict(clf.net_.callbacks_)["Pretraining"].net_.history
    assert sum(batch["train_batch_size"] for batch in row["batches"]) == len(nights) + 64


def test_an_estimator_that_pretrains_on_it_too_has_no_further_subjects(tiny, nights):
    clf = PARSClassifier("mae", **tiny, pretrain_epochs=1, finetune_epochs=1, verbose=0)
    clf.fit(nights, unlabeled=SyntheticSignals(100, n_windows=32))  # warns of nothing
    assert clf.encoder_card_.n_windows > 32
    assert clf.encoder_card_.subjects
    assert set(clf.encoder_card_.subjects) <= {1, 2, 3, 4}
