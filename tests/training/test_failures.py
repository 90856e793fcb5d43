"""Neither Ctrl-C nor a loss of NaN passes silently."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from skorch import NeuralNetRegressor
from support.interrupts import InterruptAt

from braindecode_pars._common.training import NoSilentFailure
from braindecode_pars.pretext import PARS
from braindecode_pars.pretraining import PretrainingNet


@pytest.fixture
def signals():
    return np.random.default_rng(0).normal(size=(24, 600)).astype(np.float32)


def make(tiny, **arguments):
    task = PARS(600, 100, **tiny)
    return PretrainingNet(task, **{"batch_size": 8, "max_epochs": 2, "verbose": 0, **arguments})


def test_ctrl_c_is_raised_again_after_training_has_ended(tiny, signals):
    net = make(tiny, max_epochs=5, callbacks=[InterruptAt(3)])
    before = [p.clone() for p in net.module.parameters()]
    with pytest.raises(KeyboardInterrupt):
        net.fit(signals)
    assert len(net.history) == 3
    assert any(not torch.equal(a, b) for a, b in zip(before, net.module_.parameters(), strict=True))


def test_ctrl_c_before_the_loop_begins_is_not_swallowed(monkeypatch):
    """skorch catches Ctrl-C as soon as it calls fit_loop, before any line of it."""

    class Interrupted(NoSilentFailure, NeuralNetRegressor):
        pass

    net = Interrupted(torch.nn.Linear(1, 1), max_epochs=1, train_split=None, verbose=0)
    x = np.ones((4, 1), "float32")
    net.fit(x, x)

    def interrupt(self, *args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(Interrupted, "fit_loop", interrupt)
    with pytest.raises(KeyboardInterrupt):
        net.partial_fit(x, x)
