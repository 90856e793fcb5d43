"""The callbacks Pretraining, WarmupCosine and ProgressLine."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from braindecode import EEGClassifier
from sklearn.base import clone
from skorch.callbacks import Callback
from skorch.helper import predefined_split
from support.counting import Counting
from support.interrupts import InterruptAt
from torch.utils.data import Subset

from braindecode_pars import PARSNet
from braindecode_pars.callbacks import Pretraining, ProgressLine, WarmupCosine
from braindecode_pars.pretext import PARS


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


def test_pretraining_reads_the_training_part_only(tiny, nights):
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


def test_pretraining_runs_once_per_initialisation(tiny, nights):
    net = eeg_classifier(tiny, ("pretraining", Pretraining("pars", epochs=1, verbose=0)))
    net.fit(nights, y=None)
    first = dict(net.callbacks_)["pretraining"].net_
    net.partial_fit(nights, y=None)
    assert dict(net.callbacks_)["pretraining"].net_ is first
    net.fit(nights, y=None)
    assert dict(net.callbacks_)["pretraining"].net_ is not first


def test_unlabelled_windows_of_another_montage_are_pretrained_on(tiny, nights):
    extra = Counting(torch.utils.data.TensorDataset(torch.randn(7, 5, 2500)))
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
    assert "interrupted in epoch 3 of 5; the encoder keeps" in caplog.text
    before = dict(net.callbacks_)["snapshot"].before_
    pairs = zip(before, net.module_.encoder.parameters(), strict=True)
    assert any(not torch.equal(a, b) for a, b in pairs)
    net.partial_fit(nights, y=None)  # training can go on
    assert "train_loss" in net.history[-1]


@pytest.mark.filterwarnings("ignore:The training set has 4 example")  # braindecode, of drop_last
def test_mistakes_are_explained(tiny, nights):
    def fit(*args, **kwargs):
        pretraining = Pretraining(*args, epochs=1, verbose=0, **kwargs)
        eeg_classifier(tiny, ("pretraining", pretraining)).fit(nights, y=None)

    with pytest.raises(TypeError, match="mask_ratio"):
        fit("pars", task_params={"mask_ratio": 0.5})
    with pytest.raises(ValueError, match="sizes"):
        fit(PARS(3000, 100, **{**tiny, "embed_dim": 32}))
    net = EEGClassifier(
        torch.nn.Linear(3000, 2),
        callbacks=[Pretraining("pars", verbose=0)],
        classes=[0, 1],
        verbose=0,
        train_split=None,
    )
    with pytest.raises(TypeError, match="PatchEncoder, got None"):
        net.fit(np.zeros((4, 3000), dtype=np.float32), np.array([0, 1, 0, 1]))


def test_pretraining_can_be_cloned():
    pretraining = Pretraining("pars", epochs=3, task_params={"overlap": False})
    assert clone(pretraining).get_params() == pretraining.get_params()


def test_schedule_and_bar_in_a_net_of_braindecode(tiny, nights, capsys):
    """Its loaders have no length; 96 windows are three steps of 32."""
    callbacks = [WarmupCosine(), ProgressLine("training")]
    net = eeg_classifier(tiny, *callbacks).fit(nights, y=None)
    (group,) = net.optimizer_.param_groups
    assert group["lr"] == net.lr * WarmupCosine().factor(2 / 3)
    assert "3/3" in capsys.readouterr().err
