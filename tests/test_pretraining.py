"""PretrainingNet: loss, history, random draws of validation, weight decay and Ctrl-C."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from skorch.dataset import ValidSplit
from support.interrupts import InterruptAt
from torch import nn
from torch.utils.data import TensorDataset

from braindecode_pars.pretext import PARS
from braindecode_pars.pretraining import PretrainingNet
from braindecode_pars.windows import SingleChannelWindows


@pytest.fixture
def signals():
    return np.random.default_rng(0).normal(size=(24, 600)).astype(np.float32)


def make(tiny, **arguments):
    task = PARS(600, 100, **tiny)
    return PretrainingNet(task, **{"batch_size": 8, "max_epochs": 2, "verbose": 0, **arguments})


def test_loss_is_criterion_of_prediction_and_target(tiny, signals):
    net = make(tiny).initialize()
    task = net.module_
    x = torch.from_numpy(signals[:4])
    torch.manual_seed(1)
    prediction, target = task(x)
    torch.manual_seed(1)
    step = net.validation_step((x, torch.zeros(4)))
    assert step["loss"].item() == pytest.approx(nn.functional.mse_loss(prediction, target).item())


def test_an_instance_is_trained_in_place(tiny, signals):
    net = make(tiny)
    before = [p.clone() for p in net.module.encoder.parameters()]
    net.fit(signals)
    assert net.module_ is net.module
    changed = [
        not torch.equal(a, b) for a, b in zip(before, net.module.encoder.parameters(), strict=True)
    ]
    assert any(changed)


def test_history_has_the_loss_relative_to_chance(tiny, signals):
    net = make(tiny, train_split=ValidSplit(3)).fit(signals)
    chance = net.module_.chance_loss()
    for row in net.history:
        assert row["train_loss_relative"] == pytest.approx(row["train_loss"] / chance)
        assert row["valid_loss_relative"] == pytest.approx(row["valid_loss"] / chance)


def test_validation_draws_are_the_same_in_every_epoch(tiny, signals):
    """With a learning rate of zero, only the random draws can differ between epochs."""
    net = make(tiny, train_split=ValidSplit(3), lr=0.0, max_epochs=4).fit(signals)
    assert len(set(net.history[:, "valid_loss"])) == 1
    assert len(set(net.history[:, "train_loss"])) == 4
    other = make(tiny, train_split=ValidSplit(3), lr=0.0, validation_seed=1).fit(signals)
    assert other.history[-1, "valid_loss"] != net.history[-1, "valid_loss"]


def test_weight_decay_excludes_norms_biases_and_tokens(tiny):
    net = make(tiny, optimizer__weight_decay=0.3).initialize()
    names = {id(p): name for name, p in net.module_.named_parameters()}
    decayed = {
        names[id(p)]
        for group in net.optimizer_.param_groups
        if group["weight_decay"] > 0
        for p in group["params"]
    }
    assert decayed == {
        name for name in names.values() if name.endswith("weight") and "norm" not in name
    }
    assert all(g["weight_decay"] in (0.0, 0.3) for g in net.optimizer_.param_groups)


def test_ctrl_c_is_raised_again_after_training_has_ended(tiny, signals):
    net = make(tiny, max_epochs=5, callbacks=[InterruptAt(3)])
    before = [p.clone() for p in net.module.parameters()]
    with pytest.raises(KeyboardInterrupt):
        net.fit(signals)
    assert len(net.history) == 3
    assert any(not torch.equal(a, b) for a, b in zip(before, net.module_.parameters(), strict=True))


def test_several_corpora_at_once(tiny):
    """Corpora with 6 and 19 channels and other window lengths give the same number of examples."""
    six = TensorDataset(torch.randn(20, 6, 900))
    nineteen = TensorDataset(torch.randn(4, 19, 700))
    net = make(tiny, max_epochs=1).fit(SingleChannelWindows([six, nineteen], 600, balance=True))
    assert np.isfinite(net.history[-1]["train_loss"])
    assert sum(batch["train_batch_size"] for batch in net.history[-1]["batches"]) == 40
