"""Neither Ctrl-C nor a loss of NaN passes silently."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.interrupts import InterruptAt

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
