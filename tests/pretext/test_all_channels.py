"""The tasks on all channels: what they predict, what is hidden, and what neighbors add."""

from __future__ import annotations

import mne
import numpy as np
import pytest
import torch
from torch.utils.data import Subset

from braindecode_pars import PatchEncoder
from braindecode_pars.models import SpaceTimeEncoder, electrode_positions, embed_channels
from braindecode_pars.pretext import (
    SignalFeatures,
    SpaceTimeFeatures,
    SpaceTimeJoint,
    SpaceTimeSpectralMAE,
    make_task,
)
from braindecode_pars.pretraining import PretrainingNet
from braindecode_pars.tokens import instance_norm

SIZES = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=16)
N_TIMES, PATCH, SFREQ = 400, 40, 100.0
NAMES = ("Fp1", "Fp2", "F3", "F4", "C3", "C4", "O1", "O2")
WHERE = torch.from_numpy(electrode_positions(mne.create_info(list(NAMES), SFREQ, "eeg")["chs"]))


def features_task(**arguments) -> SpaceTimeFeatures:
    task = SpaceTimeFeatures(N_TIMES, PATCH, sfreq=SFREQ, **SIZES, **arguments)
    task.prepare(lambda n: torch.randn(n, N_TIMES).cumsum(dim=1))
    return task


def spectral_task() -> SpaceTimeSpectralMAE:
    return SpaceTimeSpectralMAE(N_TIMES, PATCH, **SIZES)


@pytest.fixture
def windows() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Three windows; two channels of the first and one of the last are missing."""
    x = torch.randn(3, len(NAMES), N_TIMES).cumsum(dim=-1)
    keep = torch.ones(3, len(NAMES), dtype=torch.bool)
    keep[0, [1, 5]] = keep[2, 7] = False
    return x.masked_fill(~keep[..., None], torch.nan), WHERE.expand(3, -1, -1), keep


@torch.no_grad()
def test_features_of_channels_that_are_not_missing(windows):
    task = features_task()
    prediction, target = task(*windows)
    x, where, keep = windows
    assert prediction.shape == target.shape == (3, 8, 31)
    assert not prediction[~keep].any()
    assert not target[~keep].any()
    parts = task.part_losses(prediction, target)
    sizes = dict(trend=2, bands=21, aperiodic=1, alpha=2, hjorth=2, shape=3)
    of_parts = sum(sizes[name] * loss for name, loss in parts.items()) / 31
    torch.testing.assert_close(of_parts, task.criterion()(prediction, target))
    weight = (24 / 21) ** 0.5  # the mean over 24 channels is that over the 21 that are there
    rows = iter(zip(prediction[keep] / weight, target[keep] / weight, strict=True))
    for b, channel in keep.nonzero().tolist():
        signal = instance_norm(x[b, channel][None])
        expected = (task.measured(signal)[0] - task.mean) / task.scale
        predicted, true = next(rows)
        torch.testing.assert_close(true, expected.clamp(-5, 5), rtol=1e-4, atol=1e-4)
        # The channels of a window are encoded together, without the missing ones.
        present = keep[b]
        of_window = embed_channels(task.encoder, x[b : b + 1, present], where[b : b + 1, present])[
            0
        ]
        place = int(present[:channel].sum())
        torch.testing.assert_close(predicted, task.head(of_window[place]), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_one_channel_equals_the_single_channel_task():
    task = features_task()
    single = SignalFeatures(N_TIMES, PATCH, sfreq=SFREQ, **SIZES)
    single.load_state_dict({name: task.state_dict()[name] for name in single.state_dict()})
    x = torch.randn(4, N_TIMES)
    for actual, expected in zip(task(x[:, None]), single(x), strict=True):
        torch.testing.assert_close(actual[:, 0], expected, rtol=0, atol=1e-6)


@torch.no_grad()
def test_spectra_against_a_slow_recomputation(windows, monkeypatch):
    task = spectral_task()
    orders = []
    draw = task.random_order
    monkeypatch.setattr(task, "random_order", lambda x: orders.append(draw(x)) or orders[-1])
    prediction, target = task(*windows)
    x, _, keep = windows
    assert prediction.shape == target.shape == (3, 8, 5, 20)
    assert not prediction[~keep].any()
    assert not target[~keep].any()
    removed = orders[0][:, :5].unflatten(0, keep.shape)
    assert (removed[0, 0] != removed[0, 2]).any()  # each channel loses patches of its own
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(PATCH) / PATCH)
    spectra = {}
    for b, channel in keep.nonzero().tolist():
        signal = x[b, channel].double().numpy()
        signal = (signal - signal.mean()) / signal.std()
        for n, patch in enumerate(signal.reshape(-1, PATCH)):
            power = np.abs(np.fft.rfft(hann * (patch - patch.mean()))[1:]) ** 2
            spectra[b, channel, n] = np.log(power / (hann**2).sum() + 1e-4)
    values = np.array([*spectra.values()])
    mean, scale = values.mean(axis=0), values.std(axis=0)
    factors = (24 / 21) ** 0.5 * task.scale.numpy()
    for b, channel in keep.nonzero().tolist():
        for actual, n in zip(target[b, channel], removed[b, channel].tolist(), strict=True):
            expected = (spectra[b, channel, n] - mean) / scale * factors
            np.testing.assert_allclose(actual, expected, atol=2e-3)


def test_masked_patches_are_predicted_from_other_channels(monkeypatch):
    task = spectral_task().eval()
    x = torch.randn(1, 3, N_TIMES, requires_grad=True)
    order = torch.arange(N_TIMES // PATCH).expand(3, -1).clone()
    order[1:] = order[1:].flip(1)  # channel 0 loses patches 0 to 4, the others 5 to 9
    monkeypatch.setattr(task, "random_order", lambda x: order)
    # Without the norm, whose mean has all samples.
    monkeypatch.setattr("braindecode_pars.pretext.spectral.instance_norm", lambda x: x)
    monkeypatch.setattr(task.encoder.amplitude_code, "forward", lambda a: torch.zeros(1, 3, 16))
    prediction, _ = task(x, WHERE[None, :3])
    prediction[0, 0].sum().backward()
    seen = x.grad[0].unflatten(-1, (-1, PATCH)).abs().amax(dim=-1) > 0
    assert seen[0].tolist() == [False] * 5 + [True] * 5
    assert seen[1].tolist() == seen[2].tolist() == [True] * 5 + [False] * 5


def test_joint_adds_the_losses_of_its_tasks_on_the_same_windows(windows):
    weights = {"spectral_space_time": 2.0, "pars_space_time": 1.0}
    task = SpaceTimeJoint(N_TIMES, PATCH, tasks=weights, **SIZES)
    assert {id(part.encoder) for part in task.parts.values()} == {id(task.encoder)}
    prediction, target = task(*windows)
    losses = {n: part.criterion()(prediction[n], target[n]) for n, part in task.parts.items()}
    expected = 2 * losses["spectral_space_time"] + losses["pars_space_time"]
    torch.testing.assert_close(task.criterion()(prediction, target), expected)
    assert set(SpaceTimeJoint(N_TIMES, PATCH, sfreq=SFREQ, **SIZES).parts) == {
        "features_space_time",
        "spectral_space_time",
    }


@pytest.mark.parametrize("name", ["features", "spectral", "joint", "pars"])
def test_they_train_an_encoder_of_all_channels(name):
    encoder, arguments = SpaceTimeEncoder(PATCH, **SIZES), dict(n_times=N_TIMES, sfreq=SFREQ)
    task = make_task(f"{name}_space_time", encoder=encoder, **arguments)
    assert task.encoder is encoder
    with pytest.raises(ValueError, match=r"requires a SpaceTimeEncoder.*PatchEncoder"):
        make_task(f"{name}_space_time", encoder=PatchEncoder(PATCH, **SIZES), **arguments)
    with pytest.raises(ValueError, match="PatchEncoder"):
        make_task(task, encoder=PatchEncoder(PATCH, **SIZES), **arguments)
    with pytest.raises(ValueError, match="n_chans, 400"):
        task(torch.randn(2, N_TIMES))


def test_missing_channels_are_excluded_from_statistics(windows):
    """Zeros in the places of missing channels would move mean and standard deviation."""
    x, positions, keep = windows
    keep[:] = torch.arange(len(NAMES)) < torch.tensor([[6], [8], [7]])  # as in an example
    arguments = zip(x.nan_to_num(0.0) * keep[..., None], positions, keep, strict=True)
    examples = [({"x": signals, "positions": p, "keep": k}, 0) for signals, p, k in arguments]
    task = features_task()
    net = PretrainingNet(task, verbose=0).initialize()
    signals = net.draw_signals(Subset(examples, range(3)), None, 30)
    # Each window gives as many.
    of_each = [sum(bool((x[i] == signal).all(dim=1).any()) for signal in signals) for i in range(3)]
    assert of_each == [10, 10, 10]
    assert (signals != 0).any(dim=1).all()


@torch.no_grad()
@pytest.mark.parametrize("make", [features_task, spectral_task])
def test_a_sham_predicts_no_window_from_its_own_signal(make):
    task, predictions = make().eval(), []
    task.become_sham()
    x = torch.randn(3, len(NAMES), N_TIMES)
    other = x.clone()
    other[0] = torch.randn(len(NAMES), N_TIMES)
    for signals in (x, other):
        torch.manual_seed(0)
        predictions.append(task(signals, WHERE.expand(3, -1, -1))[0])
    is_same = [torch.allclose(one, two) for one, two in zip(*predictions, strict=True)]
    assert is_same == [True, False, True]  # the second is predicted from the first
