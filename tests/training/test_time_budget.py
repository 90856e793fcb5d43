"""A training that ends when its time is over."""

from __future__ import annotations

import logging
import pickle

import numpy as np
import pytest
import torch
from braindecode import EEGClassifier
from skorch.callbacks import Callback
from support.small_estimators import classifier, embedder, same_weights

from braindecode_pars import PARSClassifier, PARSNet
from braindecode_pars._common import training as _time_budget
from braindecode_pars.callbacks import Pretraining, TimeBudget


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves by one second in each step of training, or of validation."""
    now = [0.0]
    monkeypatch.setattr(_time_budget.time, "monotonic", lambda: now[0])

    class Tick(Callback):
        in_validation = False

        def on_batch_begin(self, net, training=False, **kwargs):
            now[0] += training != self.in_validation

    return Tick()


MANY = dict(finetune_epochs=50, finetune_batch_size=16)


def test_the_step_that_is_running_is_the_last(nights, clock, caplog):
    """96 windows are six steps of 16."""
    with caplog.at_level(logging.INFO, "braindecode_pars"):
        clf = classifier(
            pretext=None, validation=0, callbacks=[clock, TimeBudget(8.0)], **MANY
        ).fit(nights)
    assert len(clf.net_.history) == 2
    assert len(clf.net_.history[-1, "batches"]) == 2
    assert "epoch 2 of 50" in caplog.text
    history = clf.history_
    assert history["train_loss"].isna().tolist() == [False, True]
    assert not history["restored"].any()


class States(Callback):
    def on_train_begin(self, net, **kwargs):
        self.states = []

    def on_epoch_end(self, net, **kwargs):
        state = net.module_.state_dict()
        self.states.append({name: value.clone() for name, value in state.items()})


def test_the_best_state_is_restored(nights, clock):
    states = States()
    callbacks = [states, clock, TimeBudget(23.0)]
    clf = classifier(pretext=None, finetune_lr=0.02, callbacks=callbacks, **MANY).fit(nights)
    history = clf.history_
    assert len(history) > len(states.states) >= 3
    best = history.query("restored")["epoch"].item()
    assert history["valid_loss"].idxmin() == best - 1
    weights = clf.net_.module_.state_dict()
    assert all(torch.equal(weights[name], value) for name, value in states.states[best - 1].items())


def test_time_that_is_over_after_a_validation_cuts_no_epoch(nights, clock):
    """Here validation takes time, and steps take none."""
    clock.in_validation = True
    clf = classifier(pretext=None, callbacks=[clock, TimeBudget(1.0)], **MANY).fit(nights)
    history = clf.history_
    assert history["restored"].tolist() == [True]
    assert history[["train_loss", "valid_loss"]].notna().all(axis=None)


def test_an_epoch_whose_last_step_was_made_is_completed(nights, clock):
    """Six steps of 16 windows; the validation of the others is made."""
    budget = TimeBudget(5.0)
    clf = classifier(pretext=None, callbacks=[clock, budget], **MANY).fit(nights)
    assert clf.history_["valid_loss"].notna().tolist() == [True]


def test_the_first_step_is_always_made(nights, clock):
    budget = TimeBudget(1e-9)
    for validation in (0, 0.2):
        clf = classifier(
            pretext=None, validation=validation, callbacks=[clock, budget], **MANY
        ).fit(nights)
        assert len(clf.net_.history[-1, "batches"]) == 1
        assert clf.predict(nights).shape == (96,)
        assert clf.history_["valid_loss"].isna().all()


def test_time_that_is_left_changes_nothing(nights, clock):
    plain = classifier(pretext=None).fit(nights)
    budget = TimeBudget(1e6)
    clf = classifier(pretext=None, callbacks=[budget]).fit(nights)
    assert same_weights(plain.net_.module_, clf.net_.module_)
    assert not budget.is_over_


def test_pretraining_has_its_own_time(nights, clock, tmp_path):
    callbacks = [clock, TimeBudget(3.0)]
    settings = dict(pretext="mae", pretrain_epochs=50, pretrain_callbacks=callbacks)
    emb = embedder(**settings).fit(nights)  # two steps in an epoch
    card = emb.encoder_card_
    assert card.epochs == len(emb.history_) == 1
    assert (card.n_steps, card.n_examples) == (3, 96 + 64)  # with those of the cut epoch
    clf = classifier(**settings).fit(nights)
    assert (clf.history_["phase"] == "pretraining").sum() == 1
    assert (clf.history_["phase"] == "fine-tuning").sum() == 1
    loaded = classifier(pretext=None, callbacks=[clock, TimeBudget(1.0)], **MANY).fit(nights)
    with pytest.warns(UserWarning, match="callbacks="):
        loaded = PARSClassifier.load(loaded.save(tmp_path / "model"))


def test_skorch_nets_have_it_too(nights, clock):
    """The first three of six seconds are pretraining."""
    pretraining = Pretraining("mae", epochs=50, callbacks=[clock, TimeBudget(3.0)], verbose=0)
    net = EEGClassifier(
        PARSNet,
        module__sfreq=100.0,
        module__embed_dim=16,
        module__num_layers=1,
        callbacks=[pretraining, clock, TimeBudget(6.0)],
        classes=list(range(5)),
        train_split=None,
        max_epochs=50,
        batch_size=16,
        verbose=0,
    ).fit(nights, y=None)
    assert len(pretraining.net_.history) == 2
    assert len(net.history[-1, "batches"]) == 3
    pickle.dumps(dict(net.callbacks_)["TimeBudget"])


def test_callbacks_of_pretraining_see_its_net(nights):
    class Names(Callback):
        seen = ()

        def on_train_end(self, net, **kwargs):
            Names.seen += (type(net).__name__,)

    classifier(pretext="mae", pretrain_callbacks=[Names()]).fit(nights)
    embedder(pretext="mae", pretrain_callbacks=[("names", Names())]).fit(nights)
    assert Names.seen == ("PretrainingNet", "PretrainingNet")


@pytest.mark.parametrize("seconds", [0, -1.0, np.nan, "60"])
def test_times_that_are_refused(nights, seconds):
    with pytest.raises((TypeError, ValueError), match="seconds"):
        classifier(pretext=None, callbacks=[TimeBudget(seconds)]).fit(nights)
