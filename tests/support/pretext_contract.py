"""Tests that every pretext task must pass; the test class of a task inherits from it."""

from __future__ import annotations

import copy
import functools
import pickle
from typing import ClassVar

import numpy as np
import pytest
import torch
from sklearn.base import clone

from braindecode_pars import PatchEncoder, datasets
from braindecode_pars.pretext import PRETEXT_TASKS, PretextTask, make_task
from braindecode_pars.pretraining import PretrainingNet
from braindecode_pars.windows import SingleChannelWindows

SIZES = dict(embed_dim=32, num_layers=2, num_heads=4, mlp_dim=64)
#: Sizes where a model is trained and the result does not depend on its size.
SMALL = dict(embed_dim=16, num_layers=1, num_heads=2, mlp_dim=32)


def event_locked(signals: torch.Tensor) -> torch.Tensor:
    """Add a slow evoked response to every window, at 8 s with a jitter of half a second.

    Tasks that predict positions in the window require such a response. Windows of sleep contain
    almost no information about positions: boosted trees on mean, standard deviation and slope of
    thirty one-second patches reach 0.999 of the chance-level loss. Windows that are time-locked to
    an event contain this information.
    """
    times = torch.arange(signals.shape[1]) / 100
    since = times - 8 - torch.rand(len(signals), 1) + 0.5
    response = torch.where(since > 0, since * torch.exp(1 - since / 3) / 3, 0.0)
    return signals + 2 * signals.std(dim=1, keepdim=True) * response


@functools.cache
def simulated_eeg() -> torch.Tensor:
    """Return simulated EEG of five subjects, with 120 windows of 30 s per subject."""
    recordings = datasets.simulated.sleep(5, 1.0, n_chans=1, sfreq=100, random_state=5)
    windows = SingleChannelWindows(recordings)
    return torch.stack([windows[i][0] for i in range(len(windows))])


def same_targets(first, second) -> bool:
    """Return whether targets (tensors or dicts of tensors) are equal; NaN equals NaN."""
    if isinstance(first, dict):
        return all(same_targets(first[name], second[name]) for name in first)
    return torch.equal(first.nan_to_num(9.0), second.nan_to_num(9.0))


class PretextContract:
    """Contract of a pretext task.

    Subclasses define ``task`` and :meth:`ignore_signal`, and may override the other attributes.
    """

    task: type[PretextTask]
    #: Arguments without overlapping patches or visible targets, so that noise cannot be predicted.
    noise_arguments: ClassVar[dict] = {}
    #: Number of training steps before the test on a held-out subject.
    held_out_steps = 300
    #: Number of steps of sham pretraining until the loss reaches the chance level.
    sham_steps = 50

    def make(self, n_times: int = 1000, patch_size: int = 100, **arguments) -> PretextTask:
        return self.task(n_times, patch_size, **{**SIZES, **arguments})

    def ignore_signal(self, task: PretextTask) -> None:
        """Replace the prediction of the task by the best constant prediction."""
        raise NotImplementedError

    def eeg(self) -> torch.Tensor:
        return simulated_eeg()

    def loss(self, task: PretextTask, x: torch.Tensor) -> torch.Tensor:
        prediction, target = task(x)
        return task.criterion()(prediction, task.sham_target(target) if task.is_sham else target)

    def train(self, task, signals, steps, batch_size, lr=3e-3):
        """Train with AdamW on random batches; return the losses."""
        optimizer = torch.optim.AdamW(task.parameters(), lr=lr)
        losses = []
        for step in range(steps):
            for group in optimizer.param_groups:
                group["lr"] = lr * min(1.0, (step + 1) / 50) * (1 - step / steps)
            loss = self.loss(task, signals[torch.randint(len(signals), (batch_size,))])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    def test_it_is_registered_and_usable_by_name_class_and_instance(self):
        encoder = PatchEncoder(100, **SIZES)
        assert PRETEXT_TASKS[self.task.name] is self.task
        for source in (self.task.name, self.task, self.make()):
            task = make_task(source, n_times=1000, encoder=encoder, sfreq=100.0)
            assert type(task) is self.task
            assert task.encoder is encoder

    @pytest.mark.slow
    def test_on_noise_the_loss_stays_at_chance(self):
        """New noise in every step cannot be memorized, and has no structure to learn."""
        task = self.make(400, 50, **SMALL, **self.noise_arguments)
        self.train(task, torch.randn(1280, 400), 80, batch_size=16, lr=2e-3)
        with torch.no_grad():
            assert self.loss(task, torch.randn(2000, 400)).item() >= 0.98 * task.chance_loss()

    def test_chance_loss_is_that_of_the_best_constant_guess(self):
        task = self.make(**SMALL)
        self.ignore_signal(task)
        with torch.no_grad():
            constant_loss = self.loss(task, torch.randn(3000, 1000)).item()
        assert constant_loss == pytest.approx(task.chance_loss(), rel=0.02)

    @pytest.mark.slow
    def test_it_beats_chance_on_held_out_simulated_eeg(self):
        signals = self.eeg()
        task = self.make(3000)
        self.train(task, signals[:480], self.held_out_steps, batch_size=32)
        with torch.no_grad():  # the fifth subject
            held_out = np.mean([self.loss(task, signals[480:]).item() for _ in range(5)])
        assert held_out < 0.95 * task.chance_loss()

    @pytest.mark.slow
    def test_a_sham_stays_at_chance_on_its_training_data(self):
        """Train on few enough signals to memorize them, and test on the same signals."""
        task = self.make()
        task.become_sham()
        signals = self.eeg()[:64, :1000]
        task.prepare(lambda n: signals[torch.arange(n) % 64])
        self.train(task, signals, self.sham_steps, batch_size=16)
        with torch.no_grad():
            losses = [self.loss(task, signals[torch.randperm(64)]).item() for _ in range(12)]
        assert np.mean(losses) == pytest.approx(task.chance_loss(), rel=0.02)

    def test_a_sham_has_the_same_inputs_and_draws(self):
        """Inputs of the encoder and random draws are equal; the targets differ."""
        x, results, states = torch.randn(16, 1000), [], []
        for sham in (False, True):
            torch.manual_seed(7)
            task = self.make()
            if sham:
                task.become_sham()
            inputs = []
            task.encoder.register_forward_pre_hook(
                lambda _, args, inputs=inputs: inputs.append(args[0])
            )
            target = task(x)[1]
            results.append((inputs, task.sham_target(target) if sham else target))
            states.append(torch.get_rng_state())
        (real_inputs, real_targets), (sham_inputs, sham_targets) = results
        assert torch.equal(states[0], states[1])
        assert all(torch.equal(a, b) for a, b in zip(real_inputs, sham_inputs, strict=True))
        assert not same_targets(real_targets, sham_targets)

    def test_gradients_reach_every_parameter(self):
        task = self.make()
        self.loss(task, torch.randn(8, 1000)).backward()
        for name, parameter in task.named_parameters():
            assert parameter.grad is not None, name
            # The bias of the keys adds a constant to all logits of a query; softmax removes it.
            assert parameter.grad.abs().max() > 0 or name.endswith("key.bias"), name

    @pytest.mark.parametrize(("batch_size", "n_times"), [(1, 999), (2, 400), (7, 3000)])
    def test_any_batch_size_and_window_length(self, batch_size, n_times):
        task = self.make(n_times)
        prediction, target = task(torch.randn(batch_size, n_times))
        assert task.criterion()(prediction, target).isfinite()

    def test_bfloat16_without_nan(self):
        task = self.make()
        x = torch.randn(4, 1000) * 20e-6
        with torch.autocast("cpu", torch.bfloat16):
            loss = self.loss(task, x)
        loss.backward()
        assert loss.isfinite()
        assert all(p.grad.isfinite().all() for p in task.parameters())
        assert self.loss(task.bfloat16(), x.bfloat16()).isfinite()

    def test_a_flat_channel_gives_finite_numbers(self):
        task = self.make()
        loss = self.loss(task, torch.zeros(3, 1000))
        loss.backward()
        assert loss.isfinite()
        assert all(p.grad.isfinite().all() for p in task.parameters())

    def test_same_seed_same_numbers(self):
        x = torch.randn(4, 1000)
        results = []
        for _ in range(2):
            torch.manual_seed(7)
            results.append(self.make()(x))
        for first, second in zip(*results, strict=True):
            assert torch.equal(first, second)
        torch.manual_seed(8)
        assert not torch.equal(results[0][0], self.make()(x)[0])

    def test_clone_set_params_pickle_and_state_dict(self):
        task = self.make()
        net = clone(PretrainingNet(task, max_epochs=1, batch_size=4, verbose=0))
        net.set_params(lr=1e-3)
        net.fit(np.random.default_rng(0).normal(size=(8, 1000)).astype(np.float32))
        assert net.history[-1, "train_loss_relative"] > 0

        x = torch.randn(2, 1000)
        fresh = self.make()
        fresh.load_state_dict(task.state_dict())
        for copied in (pickle.loads(pickle.dumps(task)), copy.deepcopy(task), fresh):
            torch.manual_seed(3)
            expected = task(x)[0]
            torch.manual_seed(3)
            assert torch.equal(copied(x)[0], expected)
