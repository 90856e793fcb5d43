"""What all trainings share: schedule, weight decay, progress bar, ends, and their table."""

from __future__ import annotations

import io
import math
import sys

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback, EarlyStopping
from skorch.utils import noop
from support.small_estimators import classifier, embedder

from braindecode_pars._common import training
from braindecode_pars._common.training import WarmupCosine, history_frame
from braindecode_pars.estimators import NetworkClassifier
from braindecode_pars.estimators.fine_tuning import n_epochs
from braindecode_pars.pretext import PARS
from braindecode_pars.pretraining import PretrainingNet


def make(tiny, **arguments):
    task = PARS(600, 100, **tiny)
    return PretrainingNet(task, **{"batch_size": 8, "max_epochs": 2, "verbose": 0, **arguments})


def test_warmup_and_cosine_by_default():
    factors = [WarmupCosine().factor(progress) for progress in (0, 0.05, 0.1, 0.55, 1)]
    assert factors == pytest.approx([0.1, 0.55, 1, 0.5, 0])


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


X = np.random.default_rng(0).normal(size=(32, 2, 300)).astype("float32") * 1e-5
Y = np.arange(32) % 2


class Scores(Callback):
    """Given values of a monitored number."""

    def __init__(self, values):
        self.values = values

    def on_epoch_end(self, net, **kwargs):
        net.history.record("score", self.values[len(net.history) - 1])


def fitted(scores, validation, load_best=True):
    best = EarlyStopping(
        "score", load_best=load_best, patience=100, sink=noop, lower_is_better=False, threshold=0
    )
    training = dict(sfreq=100.0, finetune_epochs=len(scores), finetune_lr=0.02)
    callbacks = [Scores(scores), best]
    clf = classifier(pretext=None, callbacks=callbacks, validation=validation, **training)
    return clf.fit(X, Y)


def test_a_callback_of_the_user_restores_its_best_epoch():
    clf = fitted([1, 2, 9, 0, 0, 0], 0.25)
    best = dict(clf.net_.callbacks_)["EarlyStopping"].best_model_weights_
    assert all(torch.equal(v, best[k]) for k, v in clf.net_.module_.state_dict().items())


def test_phases_are_joined():
    row = {"epoch": 1, "dur": 0.3, "batches": [], "train_loss": 0.5, "train_loss_best": True}
    row |= {"train_loss_relative": 0.9, "train_loss_relative_mae": 1.0}
    frame = history_frame({"pretraining": [row], "fine-tuning": [{"epoch": 1, "valid_loss": 2.0}]})
    assert list(frame) == [
        *("phase", "epoch", "train_loss", "valid_loss", "train_loss_relative"),
        "train_loss_relative_mae",
    ]
    assert frame["phase"].tolist() == ["pretraining", "fine-tuning"]
    assert frame["valid_loss"].isna().tolist() == [True, False]


@pytest.fixture
def few_steps(monkeypatch):
    """The same rule with fewer steps, to be fast."""
    monkeypatch.setattr("braindecode_pars._common.settings.MAX_STEPS", 12)
    monkeypatch.setattr("braindecode_pars.estimators.fine_tuning.EPOCHS", 2)
    monkeypatch.setattr("braindecode_pars.estimators.fine_tuning.STEPS", 12)


@pytest.mark.parametrize(
    ("n_windows", "expected"),
    [(0, 60), (32, 60), (33, 30), (10_000, 30)],
)
def test_at_least_thirty_epochs_and_at_least_60_steps(n_windows, expected):
    params = dict(finetune_epochs=None, finetune_batch_size=32)
    assert n_epochs(params, range(n_windows)) == expected
    assert expected * max(1, math.ceil(n_windows / 32)) >= 60


@pytest.mark.slow
@pytest.mark.usefixtures("few_steps")
def test_the_estimators_have_the_same_budget(short):
    small = short[:24]
    clf = classifier(pretext="mae", pretrain_epochs=None, finetune_epochs=None, validation=0)
    cost = clf.training_cost(small)
    history = clf.fit(small).history_
    assert history.groupby("phase").size().to_dict() == {"fine-tuning": 12, "pretraining": 12}
    assert clf.encoder_card_.n_steps == cost.pretraining_steps == cost.finetuning_steps == 12
    assert len(embedder(pretext="mae", pretrain_epochs=None).fit(small).history_) == 12
    net = NetworkClassifier(verbose=0)
    assert net.training_cost(small).finetuning_steps == len(net.fit(small).history_) == 12


def test_progress_in_a_log_file_is_a_line_per_minute(monkeypatch):
    log_file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log_file)
    bar = training.ProgressBar(range(3), desc="Łukasz")
    for subject in bar:
        bar.set_postfix(subject=subject)
    assert log_file.getvalue().count("Łukasz: ") == log_file.getvalue().count("\n") == 2


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
    callbacks = [("schedule", WarmupCosine()), ("rates", Rates())]
    net = make(tiny, lr=1e-3, max_epochs=10, batch_size=4, callbacks=callbacks).fit(signals)
    rates = dict(net.callbacks_)["rates"].rates_
    assert len(rates) == 30
    for step, step_rates in enumerate(rates):
        progress = step / 30
        if progress < 0.1:
            expected = 1e-3 * (0.1 + 0.9 * progress / 0.1)
        else:
            expected = 1e-3 * 0.5 * (1 + math.cos(math.pi * (progress - 0.1) / 0.9))
        assert len(step_rates) == 1
        assert step_rates.pop() == pytest.approx(expected)
    assert WarmupCosine().factor(0) == pytest.approx(0.1)
    assert WarmupCosine().factor(1) == pytest.approx(0)
    with pytest.raises(ValueError, match="warmup"):
        make(tiny, callbacks=[WarmupCosine(warmup=1.0)]).fit(signals)
