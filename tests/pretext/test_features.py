"""SignalFeatures: every feature equals a slow recomputation, and training is what predicts them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
import scipy.signal
import scipy.stats
import torch
from skorch.dataset import ValidSplit
from support.pretext_contract import SIZES, PretextContract
from support.small_runs import interrupt, last_checkpoint, make_store, noise, run
from torch.utils.data import TensorDataset

from braindecode_pars import PatchEncoder
from braindecode_pars.pretext import MAE, Joint, SignalFeatures, make_task
from braindecode_pars.pretext.features import (
    FEATURES,
    alpha,
    hjorth,
)
from braindecode_pars.pretraining import PretrainingNet, PretrainingSettings, pretrain_encoder
from braindecode_pars.runs.steps import Steps
from braindecode_pars.signal_store import SignalStore
from braindecode_pars.tokens import instance_norm


def unrelated(x, sfreq):
    """Features that have nothing to do with the signal; many, for a mean loss close to chance."""
    return torch.randn(len(x), 100)


class TestSignalFeatures(PretextContract):
    task = SignalFeatures
    held_out_steps = 50
    noise_arguments: ClassVar = dict(features={"unrelated": unrelated})
    #: Signals for mean and standard deviation; more where the loss is compared with chance.
    n_prepared = 100

    def make(self, n_times=1000, patch_size=100, **arguments):
        task = super().make(n_times, patch_size, sfreq=100, **arguments)
        task.N_PREPARED = self.n_prepared
        task.prepare(lambda n: torch.randn(n, n_times))
        return task

    def train(self, task, signals, *args, **kwargs):
        task.prepare(lambda n: signals)
        return super().train(task, signals, *args, **kwargs)

    def ignore_signal(self, task):
        task.predict = lambda patches: torch.zeros(len(patches), 31)

    def test_chance_loss_is_that_of_the_best_constant_guess(self):
        self.n_prepared = 2000
        super().test_chance_loss_is_that_of_the_best_constant_guess()


# The features, one signal at a time, with NumPy and SciPy.


def slow_densities(x, sfreq):
    """Frequencies, and the periodogram of each segment."""
    n = round(sfreq)
    densities = []
    for start in range(0, len(x) - n + 1, n // 2):
        segment = x[start : start + n]
        frequencies, density = scipy.signal.periodogram(segment, sfreq, "hann")
        densities.append(density)
    return frequencies, np.array(densities)


def slow_trend(x, sfreq):
    curvature, slope, _ = np.polyfit(np.linspace(-1, 1, len(x)), x, 2)
    return [slope, curvature]


def slow_bands(x, sfreq):
    frequencies, densities = slow_densities(x, sfreq)
    features = []
    edges = [(0.5, 4), (4, 8), (8, 10), (10, 13), (13, 20), (20, 30), (30, 45)]
    for low, high in edges:
        if high > sfreq / 2:
            continue
        inside = [i for i, f in enumerate(frequencies) if low <= f < high]
        power = [np.log(np.mean([density[i] for i in inside]) + 1e-8) for density in densities]
        half = len(power) // 2
        change = np.mean(power[len(power) - half :]) - np.mean(power[:half])
        features += [np.mean(power), np.std(power), change]
    return features


def slow_line(x, sfreq):
    frequencies, density = scipy.signal.welch(
        x, sfreq, "hann", round(sfreq), round(sfreq) - round(sfreq) // 2
    )
    fitted = [f for f in frequencies if 2 <= f <= 40 and f < sfreq / 2]
    power = [np.log(p + 1e-8) for f, p in zip(frequencies, density, strict=True) if f in fitted]
    slope, intercept, *_ = scipy.stats.theilslopes(power, np.log(fitted), method="joint")
    return np.array(fitted), np.array(power) - intercept - slope * np.log(fitted), slope


def slow_aperiodic(x, sfreq):
    return [-slow_line(x, sfreq)[2]]


def slow_alpha(x, sfreq):
    frequencies, residuals, _ = slow_line(x, sfreq)
    inside = (frequencies >= 7) & (frequencies <= 14)
    peak = np.average(frequencies[inside], weights=np.exp(2 * residuals[inside]))
    return [peak, residuals[inside].max()]


def slow_hjorth(x, sfreq):
    first = np.diff(x) * sfreq
    second = np.diff(first) * sfreq
    mobility = np.std(first) / np.std(x)
    return [np.log(mobility), np.log(np.std(second) / np.std(first) / mobility)]


def slow_shape(x, sfreq):
    length = np.abs(np.diff(x)).sum() / (len(x) - 1) * sfreq
    kurtosis = scipy.stats.kurtosis(x, fisher=False)
    return [np.log(kurtosis), np.tanh(scipy.stats.skew(x)), np.log(length)]


SLOW = {
    "trend": slow_trend,
    "bands": slow_bands,
    "aperiodic": slow_aperiodic,
    "alpha": slow_alpha,
    "hjorth": slow_hjorth,
    "shape": slow_shape,
}


def signals(n: int, n_times: int, sfreq: float, seed: int = 0) -> torch.Tensor:
    """White, pink and brown noise with a rhythm at 10 Hz, float64."""
    rng = np.random.default_rng(seed)
    frequencies = np.fft.rfftfreq(n_times, 1 / sfreq)
    exponent = rng.uniform(0, 3, size=(n, 1))
    white = np.fft.rfft(rng.normal(size=(n, n_times)))
    x = np.fft.irfft(white / np.maximum(frequencies, 0.5) ** (exponent / 2), n_times)
    x += rng.uniform(0, 1, (n, 1)) * np.sin(20 * np.pi * np.arange(n_times) / sfreq)
    return instance_norm(torch.from_numpy(x))


@pytest.mark.parametrize(
    ("sfreq", "n_times"), [(128, 384), (97.6, 500), (125, 1001), (60, 300), (61, 305)]
)
def test_every_feature_equals_a_slow_recomputation(sfreq, n_times):
    x = signals(7, n_times, sfreq)
    for name, function in FEATURES.items():
        actual = function(x, sfreq).reshape(len(x), -1).numpy()
        expected = [SLOW[name](row, sfreq) for row in x.numpy()]
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5, err_msg=name)
        single = function(x.float(), sfreq).reshape(len(x), -1)
        np.testing.assert_allclose(single, actual, atol=2e-3, err_msg=name)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (dict(sfreq=None), ValueError, r'pretext_params=\{"sfreq"'),
        (dict(n_times=399, sfreq=200), ValueError, "two seconds"),
        (dict(features={"mine": lambda x, sfreq: x.mean()}), TypeError, r"'mine'.*\(batch,\)"),
    ],
)
def test_mistakes_are_explained(arguments, error, message):
    with pytest.raises(error, match=message):
        SignalFeatures(**{**dict(n_times=400, patch_size=100, sfreq=100), **SIZES, **arguments})


def test_bands_above_half_the_sampling_rate_are_left_out_with_a_warning():
    with pytest.warns(UserWarning, match=r"30 to 45 Hz.*80 Hz.*40 Hz"):
        task = SignalFeatures(320, 80, sfreq=80, **SIZES)
    assert task.head.out_features == 28


def test_features_are_picked_and_added():
    def largest(x, sfreq):
        return torch.stack([x.amax(1), x.amin(1)], dim=1).double()

    task = SignalFeatures(400, 100, sfreq=100, features=["hjorth", "alpha"], **SIZES)
    x = instance_norm(torch.randn(3, 400))
    expected = torch.cat([hjorth(x, 100), alpha(x, 100)], dim=1)
    assert torch.equal(task.measured(x), expected)
    task = SignalFeatures(400, 100, sfreq=100, features={**FEATURES, "mine": largest}, **SIZES)
    assert torch.equal(task.measured(x)[:, 31:], largest(x, 100).float())
    assert list(task.part_losses(*task(x))) == [*FEATURES, "mine"]
    own = {"mine": lambda x, sfreq: x.amax(1) / 0}
    with pytest.raises(ValueError, match="'mine' is NaN or infinite"):
        SignalFeatures(400, 100, sfreq=100, features=own, **SIZES).prepare(
            lambda n: torch.randn(n, 400)
        )


@torch.no_grad()
def test_loss_and_target_against_a_slow_plain_recomputation():
    task = SignalFeatures(400, 100, sfreq=100, **SIZES).double()
    first, x = signals(15, 400, 100), signals(4, 400, 100, seed=1)
    x[0, 200] = 500.0  # an artifact, whose features are limited
    task.prepare(lambda n: first)
    loss = task.criterion()(*task(x)).item()
    parts = task.part_losses(*task(x))

    def slow(rows):
        rows = instance_norm(rows).numpy()
        return np.array([np.concatenate([f(row, 100) for f in SLOW.values()]) for row in rows])

    mean, sd = slow(first).mean(axis=0), slow(first).std(axis=0)
    targets = np.clip((slow(x) - mean) / (sd + 1e-4), -5, 5)
    assert np.abs(targets[0]).max() == 5
    patches = instance_norm(x).reshape(4, 4, 100)
    tokens = task.encoder.tokenize(patches)
    pooled = task.encoder(tokens + task.positions(tokens)).mean(dim=1)
    errors = (task.head(pooled).numpy() - targets) ** 2
    assert loss == pytest.approx(errors.mean(), rel=1e-4)
    assert parts["bands"].item() == pytest.approx(errors[:, 2:23].mean(), rel=1e-4)
    assert parts["shape"].item() == pytest.approx(errors[:, 28:].mean(), rel=1e-4)


def test_masked_patches_are_not_encoded():
    task = SignalFeatures(1000, 100, sfreq=100, mask_ratio=0.4, **SIZES)
    assert task.n_masked == 4
    patches = torch.randn(2, 10, 100)
    torch.manual_seed(3)
    visible = task.random_order(patches)[:, 4:]
    seen = []
    task.encoder.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    torch.manual_seed(3)
    prediction = task.predict(patches)
    assert seen[0].shape == (2, 6, 32)
    tokens = task.encoder.tokenize(patches)
    places = task.positions(tokens)
    for b in range(2):
        expected = tokens[b, visible[b]] + places[visible[b]]
        torch.testing.assert_close(seen[0][b], expected)
    pooled = task.encoder(seen[0]).mean(dim=1)
    torch.testing.assert_close(prediction, task.head(pooled))
    # The target is of the whole signal, with any patches hidden.
    x = torch.randn(2, 1000)
    assert torch.equal(task(x)[1], task(x)[1])


# Sampling rate and first pass.


class Watched(MAE):
    """A task that remembers what it was given to measure."""

    def prepare(self, draw):
        self.drawn = [draw(30), draw(30)]


def test_the_first_pass_is_random_crops_and_changes_no_other_draw(short_nights, tiny):
    nets = []
    for task in (Watched, MAE):
        settings = PretrainingSettings(task, epochs=2)
        torch.manual_seed(1)
        encoder = PatchEncoder(100, **tiny)
        arguments = dict(n_times=500, seed=0, verbose=0)
        nets.append(pretrain_encoder(encoder, short_nights, settings, **arguments))
    assert nets[0].history[:, "train_loss"] == nets[1].history[:, "train_loss"]
    first, again = nets[0].task_.drawn
    assert first.shape == (30, 500)
    assert torch.equal(first, again)
    assert len(first.unique(dim=0)) == 30
    windows = torch.tensor(np.concatenate([window for window, *_ in short_nights]))
    places = (windows[:, :2501] == first[0, 0]).nonzero().tolist()
    assert any(torch.equal(windows[i, start : start + 500], first[0]) for i, start in places)


def test_few_signals_are_drawn_several_times_and_validation_never():
    x = np.arange(10, dtype=np.float32)[:, None].repeat(200, 1)
    net = PretrainingNet(Watched(200, 100, **SIZES), max_epochs=1, verbose=0).initialize()
    actual = net.draw_signals(x, None, 25)[:, 0].int()
    assert sorted(np.bincount(actual.numpy())) == [2] * 5 + [3] * 5
    net.set_params(train_split=ValidSplit(5))
    assert len(net.draw_signals(x, None, 25).unique(dim=0)) == 8


def test_the_rate_comes_from_windows_or_argument(short_nights, tiny, monkeypatch):
    monkeypatch.setattr(SignalFeatures, "N_PREPARED", 50)
    encoder = PatchEncoder(100, **tiny)
    for task in ("features", Joint):
        more = {"task_params": {"tasks": {"features": 1.0}}} if task is Joint else {}
        settings = PretrainingSettings(task, epochs=1, **more)
        arrays = TensorDataset(torch.randn(4, 2, 300))
        with pytest.raises(ValueError, match="sampling rate"):
            pretrain_encoder(encoder, arrays, settings, verbose=0)
        net = pretrain_encoder(encoder, arrays, settings, sfreq=90, verbose=0)
        assert net.task_.sfreq == 90
        net = pretrain_encoder(encoder, short_nights, settings, sfreq=90, verbose=0)
        assert net.task_.sfreq == 100


def test_different_sampling_rate_raises():
    encoder = PatchEncoder(100, **SIZES)
    for task, params in (
        ("features", {"sfreq": 128}),
        ("joint", {"tasks": {"features": 1}, "task_params": {"features": {"sfreq": 128}}}),
    ):
        with pytest.raises(ValueError, match=r"100 Hz.*128 Hz"):
            make_task(task, n_times=400, encoder=encoder, task_params=params, sfreq=100.0)
        assert make_task(task, n_times=400, encoder=encoder, task_params=params) is not None


# Runs.

JOINT = dict(task="joint", task_params={"tasks": {"features": 1.0, "spectral": 1.0, "pars": 0.5}})


def test_resumed_run_uses_saved_mean_and_standard_deviation(tmp_path, monkeypatch):
    settings = dict(JOINT, epochs=2)
    store = make_store(tmp_path / "store")
    monkeypatch.setattr(SignalFeatures, "N_PREPARED", 100)
    whole = last_checkpoint(run(store, tmp_path / "whole", **settings))
    with monkeypatch.context() as patch:
        interrupt(patch, step=5)
        with pytest.raises(KeyboardInterrupt):
            run(store, tmp_path / "run", **settings)
    # Nothing is measured again.
    monkeypatch.setattr(SignalFeatures, "N_PREPARED", 0)
    resumed = last_checkpoint(run(store, tmp_path / "run", resume=True, **settings))
    assert whole.keys() == resumed.keys()
    assert sum(name.endswith((".mean", ".scale")) for name in whole) == 2
    for name, tensor in whole.items():
        assert torch.equal(resumed[name], tensor), name


def test_crops_of_the_first_pass_are_the_same_in_every_process(tmp_path):
    store = SignalStore.create(tmp_path / "store", noise(), dtype="float32", verbose=0)
    parts = [Steps(store, 300, 8, seed=3, process=p, n_processes=2) for p in (0, 1)]
    one, other = (steps.first_pass(50) for steps in parts)
    assert one.shape == (50, 300)
    assert torch.equal(one, other)
    assert not torch.equal(one, Steps(store, 300, 8, seed=4).first_pass(50))
    assert len(one.unique(dim=0)) == 50


# Estimators and callbacks.
