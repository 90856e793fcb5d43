"""PretrainingNet: loss, history, random draws of validation, weight decay and Ctrl-C."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from braindecode import EEGClassifier
from skorch.callbacks import Freezer
from skorch.dataset import ValidSplit
from support.interrupts import InterruptAt

from braindecode_pars import PARSNet, PatchEncoder
from braindecode_pars.callbacks import Pretraining
from braindecode_pars.pretext import PARS
from braindecode_pars.pretraining import PretrainingNet, PretrainingSettings, pretrain_encoder
from braindecode_pars.windows import SingleChannelWindows


@pytest.fixture
def signals():
    return np.random.default_rng(0).normal(size=(24, 600)).astype(np.float32)


def make(tiny, **arguments):
    task = PARS(600, 100, **tiny)
    return PretrainingNet(task, **{"batch_size": 8, "max_epochs": 2, "verbose": 0, **arguments})


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


def test_pretrain_encoder_trains_in_place_and_repeats_itself(tiny, nights):
    encoders, two_epochs = [], PretrainingSettings("mae", epochs=2)
    for _ in range(2):
        torch.manual_seed(0)
        encoders.append(PatchEncoder(100, **tiny))
        before = torch.get_rng_state()
        net = pretrain_encoder(encoders[-1], nights, two_epochs, seed=3, verbose=0)
        assert torch.equal(torch.get_rng_state(), before)
    assert net.task_.encoder is encoders[1]
    assert len(net.history) == 2
    pairs = zip(encoders[0].parameters(), encoders[1].parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    torch.manual_seed(0)
    assert not torch.equal(
        next(encoders[0].parameters()), next(PatchEncoder(100, **tiny).parameters())
    )


def test_pretrain_encoder_takes_windows_or_single_channels(tiny, nights):
    """One road with two beginnings: the same draws give the same losses."""
    losses = []
    for given in (nights, SingleChannelWindows(nights)):
        torch.manual_seed(0)
        encoder = PatchEncoder(100, **tiny)
        net = pretrain_encoder(encoder, given, PretrainingSettings(epochs=1), seed=3, verbose=0)
        losses.append(net.history[-1, "train_loss"])
    assert losses[0] == losses[1]


def test_the_net_is_handed_over_after_ctrl_c_too(tiny, nights):
    seen = []
    with pytest.raises(KeyboardInterrupt):
        pretrain_encoder(
            PatchEncoder(100, **tiny),
            nights,
            PretrainingSettings(epochs=5),
            callbacks=[InterruptAt(3)],
            on_end=seen.append,
            verbose=0,
        )
    (net,) = seen
    assert len(net.history) == 3


def test_an_encoder_that_cannot_be_trained_is_refused(tiny, signals):
    """Otherwise its random weights would come back as pretrained ones."""
    settings, small = PretrainingSettings("mae", epochs=1), dict(patch_size=100, **tiny)
    windows = signals[:, None]
    for task in ("mae", "pars"):
        with pytest.raises(ValueError, match=r"is frozen.*requires_grad_\(True\)"):
            pretrain_encoder(
                PatchEncoder(**small).requires_grad_(False),
                windows,
                PretrainingSettings(task, epochs=1),
                verbose=0,
            )
    with pytest.raises(ValueError, match=r"torch\.float64.*\.float\(\)"):
        pretrain_encoder(PatchEncoder(**small).double(), windows, settings, verbose=0)
    with torch.inference_mode():
        made_inside = PatchEncoder(**small)
    with pytest.raises(ValueError, match=r"inference_mode.*outside"):
        pretrain_encoder(made_inside, windows, settings, verbose=0)
    broken = PatchEncoder(**small)
    torch.nn.init.constant_(next(broken.parameters()), torch.nan)
    for encoder in (broken, PatchEncoder(**small).to("meta")):
        with pytest.raises(ValueError, match=r"NaN, infinite, or on the device 'meta'"):
            pretrain_encoder(encoder, windows, settings, verbose=0)
    # Some frozen layers are the choice of the user.
    encoder = PatchEncoder(**small)
    encoder.tokenizer.requires_grad_(False)
    pretrain_encoder(encoder, windows, settings, verbose=0)


def test_callbacks_that_freeze_all_of_the_encoder_are_refused(tiny, signals):
    windows, freezer = signals[:, None], Freezer("encoder.*")
    with pytest.raises(ValueError, match="is frozen"):
        pretrain_encoder(
            PatchEncoder(patch_size=100, **tiny),
            windows,
            PretrainingSettings("mae", epochs=1),
            callbacks=[freezer],
            verbose=0,
        )
    module = PARSNet(n_outputs=2, n_chans=1, n_times=600, sfreq=100.0, patch_size=100, **tiny)
    module.encoder.requires_grad_(False)
    callback = Pretraining("mae", epochs=1, verbose=0)
    options = dict(classes=[0, 1], train_split=None, max_epochs=1, batch_size=8, verbose=0)
    with pytest.raises(ValueError, match="is frozen"):
        EEGClassifier(module, callbacks=[callback], **options).fit(windows, np.arange(24) % 2)
