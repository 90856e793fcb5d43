"""The learning rate of every step, in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from skorch.callbacks import Callback

from braindecode_pars.callbacks import WarmupCosine
from braindecode_pars.pretext import PARS
from braindecode_pars.pretraining import PretrainingNet


class Rates(Callback):
    """Store the learning rates of every training step."""

    def on_train_begin(self, net, **kwargs):
        self.rates_ = []

    def on_batch_end(self, net, training=False, **kwargs):
        if training:
            self.rates_.append({group["lr"] for group in net.optimizer_.param_groups})


def test_warmup_and_cosine_in_closed_form(tiny):
    """Ten epochs of three batches: a tenth of the steps is warm-up, from a tenth of the rate."""
    signals = np.zeros((12, 600), dtype=np.float32)
    net = PretrainingNet(
        PARS(600, 100, **tiny),
        lr=1e-3,
        max_epochs=10,
        batch_size=4,
        verbose=0,
        callbacks=[("schedule", WarmupCosine()), ("rates", Rates())],
    )
    net.fit(signals)
    rates = dict(net.callbacks_)["rates"].rates_
    assert len(rates) == 30
    for step, found in enumerate(rates):
        progress = step / 30
        if progress < 0.1:
            expected = 1e-3 * (0.1 + 0.9 * progress / 0.1)
        else:
            expected = 1e-3 * 0.5 * (1 + math.cos(math.pi * (progress - 0.1) / 0.9))
        assert len(found) == 1
        assert found.pop() == pytest.approx(expected)
    assert WarmupCosine().factor(0) == pytest.approx(0.1)
    assert WarmupCosine().factor(1) == pytest.approx(0)
    with pytest.raises(ValueError, match="warmup must be a number in"):
        PretrainingNet(PARS(600, 100, **tiny), callbacks=[WarmupCosine(warmup=1.0)], verbose=0).fit(
            signals
        )
