"""The number of epochs where none is given."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from support.small_estimators import classifier, embedder

from braindecode_pars import PARSClassifier, PatchEncoder, paper
from braindecode_pars._common import settings
from braindecode_pars._common.training import default_epochs
from braindecode_pars.callbacks import Pretraining
from braindecode_pars.estimators import NetworkClassifier
from braindecode_pars.estimators import fine_tuning as _fine_tuning
from braindecode_pars.pretraining import PretrainingSettings, pretrain_encoder


@pytest.fixture
def few_steps(monkeypatch):
    """The same rule with fewer steps, to be fast."""
    for room in ("pretraining", "estimators.fine_tuning"):
        monkeypatch.setattr(f"braindecode_pars.{room}.EPOCHS", 2)
        monkeypatch.setattr(f"braindecode_pars.{room}.STEPS", 12)


@pytest.mark.parametrize(
    ("steps_per_epoch", "expected"),
    [(1, 600), (2, 300), (7, 86), (11, 55), (12, 50), (13, 50), (10_000, 50)],
)
def test_fifty_epochs_or_as_many_more_as_600_steps_take(steps_per_epoch, expected):
    assert default_epochs(50, 600, steps_per_epoch, "Pretraining") == expected
    assert expected * steps_per_epoch >= 600


def test_a_given_number_wins(nights, tiny):
    for epochs in (0, 1):
        net = pretrain_encoder(
            PatchEncoder(100, **tiny), nights, PretrainingSettings(epochs=epochs), verbose=0
        )
        assert len(net.history) == epochs


def test_the_log_has_the_number_of_steps(caplog):
    with caplog.at_level(logging.INFO, "braindecode_pars"):
        default_epochs(50, 600, 1, "Pretraining")
    assert "Pretraining: 600 steps in 600 epochs." in caplog.text


@pytest.mark.usefixtures("few_steps")
def test_pretraining_of_few_windows_has_more_epochs(nights, tiny):
    """96 windows are two steps of 64, and 24 are one."""
    mae = PretrainingSettings("mae")
    whole = pretrain_encoder(PatchEncoder(100, **tiny), nights, mae, verbose=0)
    assert len(whole.history) == 6
    one = pretrain_encoder(PatchEncoder(100, **tiny), nights.datasets[0], mae, verbose=0)
    assert len(one.history) == 12
    # The schedule knows the number: the last step has nearly no learning rate.
    assert one.optimizer_.param_groups[0]["lr"] < 0.03 * one.lr


@pytest.mark.usefixtures("few_steps")
def test_the_estimators_have_the_same_budget(nights):
    few = nights.datasets[0]  # 24 windows
    clf = classifier(pretext="mae", pretrain_epochs=None, finetune_epochs=None, validation=0)
    cost = clf.training_cost(few)
    history = clf.fit(few).history_
    assert history.groupby("phase").size().to_dict() == {"fine-tuning": 12, "pretraining": 12}
    assert clf.encoder_card_.n_steps == cost.pretraining_steps == cost.finetuning_steps == 12
    assert len(embedder(pretext="mae", pretrain_epochs=None).fit(few).history_) == 12
    net = NetworkClassifier(verbose=0)
    assert net.training_cost(few).finetuning_steps == len(net.fit(few).history_) == 12


@pytest.mark.usefixtures("few_steps")
def test_a_loaded_classifier_has_the_default_again(nights, tmp_path):
    clf = classifier(pretext=None, finetune_epochs=None, validation=0).fit(nights)
    loaded = PARSClassifier.load(clf.save(tmp_path / "model"))
    assert loaded.finetune_epochs is None
    assert np.array_equal(loaded.predict_proba(nights), clf.predict_proba(nights))


def test_defaults():
    assert (settings.EPOCHS, settings.STEPS) == (50, 600)
    assert (_fine_tuning.EPOCHS, _fine_tuning.STEPS) == (30, 60)
    assert PARSClassifier().pretrain_epochs is None
    assert PARSClassifier().finetune_epochs is None
    assert Pretraining().epochs is None
    published = PARSClassifier(**paper.CLASSIFIER)
    assert (published.pretrain_epochs, published.finetune_epochs) == (1000, 200)
