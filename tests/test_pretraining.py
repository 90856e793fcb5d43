"""Pretraining: its net, the function and the callback."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from braindecode import EEGClassifier
from skorch.callbacks import Callback, Freezer
from skorch.dataset import ValidSplit
from skorch.helper import predefined_split
from skorch.history import History
from support.counting import Counting
from support.interrupts import InterruptAt
from torch.utils.data import Subset, TensorDataset

from braindecode_pars import PARSNet, PatchEncoder
from braindecode_pars.callbacks import Pretraining
from braindecode_pars.pretext import PARS, PRETEXT_TASKS
from braindecode_pars.pretraining import (
    PretrainingNet,
    PretrainingSettings,
    RelativeLoss,
    pretrain_encoder,
)
from braindecode_pars.windows import SingleChannelWindows


@pytest.fixture
def signals():
    return np.random.default_rng(0).normal(size=(24, 600)).astype(np.float32)


def make(tiny, **arguments):
    task = PARS(600, 100, **tiny)
    return PretrainingNet(task, **{"batch_size": 8, "max_epochs": 2, "verbose": 0, **arguments})


def test_a_part_of_a_loss_is_the_mean_over_the_examples_that_have_it():
    """Axes without a known position have no loss: NaN in their batches, or in all of an epoch."""
    batches = [(3, dict(x=np.nan, t=1.0, z=np.nan)), (2, dict(x=0.5, t=2.0, z=np.nan))]
    task = SimpleNamespace(chance_loss=lambda: 1.0)
    net = SimpleNamespace(task_=task, history=History())
    net.history.new_epoch()
    callback = RelativeLoss()
    callback.on_train_begin(net)
    callback.on_epoch_begin(net)
    for size, losses in batches:
        task.part_losses = lambda *_, of=losses: {k: torch.tensor(v) for k, v in of.items()}
        callback.on_batch_end(net, (torch.zeros(size, 6), 0), training=True, y_pred=(0, 0))
    callback.on_epoch_end(net)
    parts = [net.history[-1, f"train_loss_relative_{name}"] for name in "xtz"]
    assert parts == pytest.approx([0.5, (3 * 1 + 2 * 2) / 5, np.nan], nan_ok=True)


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
    for source in (nights, SingleChannelWindows(nights)):
        torch.manual_seed(0)
        encoder = PatchEncoder(100, **tiny)
        net = pretrain_encoder(encoder, source, PretrainingSettings(epochs=1), seed=3, verbose=0)
        losses.append(net.history[-1, "train_loss"])
    assert losses[0] == losses[1]


def test_encoder_that_cannot_be_trained_raises(tiny, signals):
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
    # Some frozen layers are the choice of the user.
    encoder = PatchEncoder(**small)
    encoder.tokenizer.requires_grad_(False)
    pretrain_encoder(encoder, windows, settings, verbose=0)


def test_callbacks_that_freeze_the_encoder_raise(tiny, signals):
    windows, freezer = signals[:, None], Freezer("encoder.*")
    with pytest.raises(ValueError, match="is frozen"):
        pretrain_encoder(
            PatchEncoder(patch_size=100, **tiny),
            windows,
            PretrainingSettings("mae", epochs=1),
            callbacks=[freezer],
            verbose=0,
        )


# The callback


def eeg_classifier(tiny, *callbacks, **arguments):
    sizes = {f"module__{name}": value for name, value in tiny.items()}
    return EEGClassifier(
        PARSNet,
        module__n_outputs=5,
        module__n_chans=3,
        module__n_times=3000,
        module__sfreq=100.0,
        **sizes,
        callbacks=list(callbacks),
        max_epochs=1,
        verbose=0,
        classes=list(range(5)),
        **{"train_split": None, "batch_size": 32, **arguments},
    )


class Snapshot(Callback):
    """Store the encoder's weights before pretraining and before the first fine-tuning step."""

    def on_train_begin(self, net, **kwargs):
        self.before_ = [p.detach().clone() for p in net.module_.encoder.parameters()]

    def on_batch_begin(self, net, **kwargs):
        if not hasattr(self, "after_"):
            self.after_ = [p.detach().clone() for p in net.module_.encoder.parameters()]


def test_pretraining_happens_in_place_before_the_first_step(tiny, nights):
    pretraining = ("pretraining", Pretraining("pars", epochs=2, verbose=0))
    snapshot = ("snapshot", Snapshot())
    net = eeg_classifier(tiny, pretraining, snapshot)
    net.fit(nights, y=None)
    callbacks = dict(net.callbacks_)
    assert len(callbacks["pretraining"].net_.history) == 2
    assert callbacks["pretraining"].net_.module_.encoder is net.module_.encoder
    pairs = zip(callbacks["snapshot"].before_, callbacks["snapshot"].after_, strict=True)
    assert any(not torch.equal(before, after) for before, after in pairs)


def test_the_network_knows_the_sampling_rate_of_arrays(tiny, monkeypatch):
    monkeypatch.setattr(PRETEXT_TASKS["features"], "N_PREPARED", 50)
    X = np.random.default_rng(0).normal(size=(8, 3, 3000)).astype(np.float32)
    pretraining = ("pretraining", Pretraining("features", epochs=1, verbose=0))
    net = eeg_classifier(tiny, pretraining, batch_size=8).fit(X, np.arange(8) % 5)
    assert dict(net.callbacks_)["pretraining"].net_.task_.sfreq == 100.0


def test_pretraining_uses_only_the_training_set(tiny, nights):
    train = Counting(Subset(nights, range(60)))
    valid = Counting(Subset(nights, range(60, 96)))

    class StoreReads(Callback):
        """Store which windows were read before the first epoch of fine-tuning."""

        def on_epoch_begin(self, net, **kwargs):
            self.reads_ = set(train.read), list(valid.read)

    net = eeg_classifier(
        tiny,
        ("pretraining", Pretraining("pars", epochs=1, verbose=0)),
        ("reads", StoreReads()),
        train_split=predefined_split(valid),
    )
    net.fit(train, y=None)
    read_train, read_valid = dict(net.callbacks_)["reads"].reads_
    assert read_train == set(range(60))
    assert read_valid == []


def test_unlabeled_windows_of_another_montage_are_pretrained_on(tiny, nights):
    extra = Counting(TensorDataset(torch.randn(7, 5, 2500)))
    pretraining = Pretraining(
        "pars", epochs=1, verbose=0, unlabeled=extra, task_params={"position_mask_ratio": 1.0}
    )
    net = eeg_classifier(tiny, ("pretraining", pretraining)).fit(nights, y=None)
    fitted = dict(net.callbacks_)["pretraining"]
    assert set(extra.read) == set(range(7))
    assert fitted.net_.module_.n_times == 2500
    assert fitted.net_.module_.n_masked == fitted.net_.module_.n_patches


def test_ctrl_c_keeps_the_encoder_logs_a_warning_and_is_raised(tiny, nights, caplog):
    pretraining = Pretraining("pars", epochs=5, verbose=0, callbacks=[InterruptAt(3)])
    net = eeg_classifier(tiny, ("pretraining", pretraining), ("snapshot", Snapshot()))
    with pytest.raises(KeyboardInterrupt):
        net.fit(nights, y=None)
    assert "interrupted in epoch 3" in caplog.text
    before = dict(net.callbacks_)["snapshot"].before_
    pairs = zip(before, net.module_.encoder.parameters(), strict=True)
    assert any(not torch.equal(a, b) for a, b in pairs)
    net.partial_fit(nights, y=None)  # training can go on
    assert "train_loss" in net.history[-1]
