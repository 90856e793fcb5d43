"""Joint: several tasks on one encoder, with losses relative to chance."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.pretext_contract import SIZES, PretextContract

from braindecode_pars import PatchEncoder
from braindecode_pars.pretext import MAE, PARS, Joint, SignalFeatures
from braindecode_pars.pretext.joint import SeveralLengths
from braindecode_pars.pretraining import PretrainingNet


class TestJoint(PretextContract):
    task = Joint
    sham_steps = 120
    # The loss is the sum of those of the parts (below), which have this test.
    test_on_noise_the_loss_stays_at_chance = None

    def make(self, n_times=1000, patch_size=100, **arguments):
        return super().make(n_times, patch_size, **arguments)

    def ignore_signal(self, task):
        pars, mae = task.parts["pars"], task.parts["mae"]
        size = pars.n_masked
        pars.predict_shifts = lambda x, starts: torch.zeros(len(x), size, size)
        mae.reconstruct = lambda patches, order: torch.zeros_like(patches)

    def test_same_seed_same_numbers(self):
        x = torch.randn(4, 1000)
        losses = []
        for seed in (7, 7, 8):
            torch.manual_seed(seed)
            losses.append(self.loss(self.make(), x).item())
        assert losses[0] == losses[1] != losses[2]

    def test_clone_set_params_pickle_and_state_dict(self):
        import pickle

        task = self.make()
        fresh = self.make()
        fresh.load_state_dict(task.state_dict())
        x = torch.randn(2, 1000)
        expected = None
        for other in (task, pickle.loads(pickle.dumps(task)), fresh):
            torch.manual_seed(3)
            loss = self.loss(other, x)
            assert expected is None or torch.equal(loss, expected)
            expected = loss
            assert all(part.encoder is other.encoder for part in other.parts.values())


def test_the_weighted_sum_by_hand():
    task = Joint(1000, 100, tasks={"pars": 2.0, "mp3": 0.5}, **SIZES)
    prediction, target = task(torch.randn(4, 1000))
    pars, mp3 = task.parts["pars"], task.parts["mp3"]
    expected = 2.0 * torch.nn.functional.mse_loss(prediction["pars"], target["pars"])
    expected = expected / pars.chance_loss()
    entropy = torch.nn.functional.cross_entropy(prediction["mp3"], target["mp3"])
    expected = expected + 0.5 * entropy / mp3.chance_loss()
    torch.testing.assert_close(task.criterion()(prediction, target), expected)
    assert task.chance_loss() == 2.5


def test_joint_with_one_weight_equals_that_task():
    torch.manual_seed(1)
    # Parameters of a weight of zero are accepted: a grid search can then include it.
    params = {"mae": {"mask_ratio": 0.3}, "pars": {"n_patches": 5}}
    joint = Joint(1000, 100, tasks={"mae": 3.0, "pars": 0}, task_params=params, **SIZES)
    assert list(joint.parts) == ["mae"]
    torch.manual_seed(1)
    mae = MAE(1000, 100, mask_ratio=0.3, **SIZES)
    x = torch.randn(2, 1000)
    torch.manual_seed(2)
    loss = joint.criterion()(*joint(x))
    torch.manual_seed(2)
    torch.testing.assert_close(loss, 3 * mae.criterion()(*mae(x)))


def test_all_parts_share_one_encoder_and_each_trains_it():
    task = Joint(1000, 100, tasks=dict.fromkeys(("pars", "mae", "mp3", "droppos"), 1.0), **SIZES)
    x = torch.randn(4, 1000)
    for name, part in task.parts.items():
        task.zero_grad()
        part.criterion()(*part(x)).backward()
        assert task.encoder.tokenizer.weight.grad.abs().max() > 0, name
    parameters = sum(p.numel() for p in task.parameters())
    apart = sum(p.numel() for part in task.parts.values() for p in part.parameters())
    encoder = sum(p.numel() for p in task.encoder.parameters())
    assert parameters == apart - 3 * encoder


def test_relative_loss_of_each_part_is_logged():
    task = Joint(1000, 100, **SIZES)
    net = PretrainingNet(task, max_epochs=1, batch_size=4, verbose=0)
    net.fit(torch.randn(6, 1000).numpy())
    row = net.history[-1]
    parts = [row[f"train_loss_relative_{name}"] for name in ("pars", "mae")]
    assert row["train_loss"] == pytest.approx(sum(parts))
    assert row["train_loss_relative"] == pytest.approx(sum(parts) / 2)
    assert row["train_loss_relative_mae_masked"] > 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (dict(tasks={"joint": 1}), ValueError, "'joint'"),
        (dict(tasks={"pars": -1}), ValueError, "'pars'.*-1"),
        (dict(tasks={"pars": 0, "mae": 0.0}), ValueError, "'pars': 0, 'mae': 0"),
        (dict(task_params={"mp3": {}}), ValueError, "'mp3'"),
        (dict(task_params={"mae": {"ratio": 1}}), TypeError, "'ratio'"),
    ],
)
def test_mistakes_are_explained(arguments, error, message):
    with pytest.raises(error, match=message):
        Joint(1000, 100, **SIZES, **arguments)


def test_several_lengths_use_the_relative_loss_of_each_length():
    encoder = PatchEncoder(100, **SIZES)
    short, long = (PARS(n, 100, encoder=encoder, n_patches=n // 100) for n in (500, 1000))
    task = SeveralLengths([long, short])
    assert short.chance_loss() != long.chance_loss()
    for part in (short, long):
        x = torch.randn(4, part.n_times)
        results = []
        for model in (part, task):
            torch.manual_seed(0)
            prediction, target = model(x)
            loss = model.criterion()(prediction, target).item() / model.chance_loss()
            parts = {k: v.item() for k, v in model.part_losses(prediction, target).items()}
            results.append({"loss": loss, **parts})
        assert results[0] == pytest.approx(results[1], rel=1e-6, nan_ok=True)
        assert results[0]["loss"] > 0
    assert task.n_times == 1000
    fresh = PatchEncoder(100, **SIZES)
    task.use_encoder(fresh)
    assert all(part.encoder is fresh for part in (task, *task.parts.values()))


def test_each_length_is_measured_before_the_first_step():
    encoder = PatchEncoder(100, **SIZES)
    tasks = [SignalFeatures(n, 100, sfreq=100, encoder=encoder) for n in (300, 1000)]
    signals = torch.randn(50, 1000)
    SeveralLengths(tasks).prepare(lambda n: signals)
    for task, x in zip(tasks, (signals[:, :300], signals), strict=True):
        expected = task.measured(task.normalized(x)).mean(dim=0)
        torch.testing.assert_close(task.mean, expected)


def test_all_parts_of_a_sham_are_shams():
    """MP3 has targets that are the same for all examples, and DropPos another chance level."""
    task = Joint(1000, 100, tasks={"mp3": 1.0, "droppos": 1.0, "mae": 1.0}, **SIZES)
    task.become_sham()
    assert task.chances["droppos"] == pytest.approx(np.log(10))
    target = task.sham_target(task(torch.randn(8, 1000))[1])
    assert sorted(target) == ["droppos", "mae", "mp3"]
    in_order = torch.arange(10)
    assert not any(torch.equal(places, in_order) for places in target["mp3"])
    assert all(torch.equal(places.sort().values, in_order) for places in target["mp3"])
