"""The cost of a fit equals what the fit does."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from support.short_windows import first_samples
from support.small_estimators import classifier, embedder

from braindecode_pars import as_sklearn
from braindecode_pars.estimators import NetworkClassifier
from braindecode_pars.pretrained import EncoderCard, load_encoder, save_encoder


@pytest.fixture(scope="module")
def nights(whole_nights):
    """Their windows of three seconds."""
    return first_samples(whole_nights, 300)


def n_parameters(module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_parameters_and_steps_are_those_of_the_fit(nights):
    few = nights.split([[0]])["0"]  # 24 windows
    settings = dict(validation=0, finetune_epochs=2, pretrain_batch_size=16, finetune_batch_size=10)
    for pretext in ("mae", None):
        clf = classifier(pretext=pretext, **settings)
        cost = clf.training_cost(few)
        fitted = clf.fit(few)
        assert cost.parameters == n_parameters(fitted.net_.module_)
        assert cost.pretraining_steps == (0 if pretext is None else 2)
        assert cost.finetuning_steps == 2 * 3


def test_a_random_encoder_that_stays_frozen_has_no_trained_weights(nights):
    settings = dict(pretext=None, validation=0, finetune_epochs=4)
    free = classifier(**settings).training_cost(nights)
    frozen = classifier(**settings, freeze_encoder=True).training_cost(nights)
    later = classifier(**settings, head_epochs=2).training_cost(nights)
    assert free == later
    size = classifier(**settings).n_encoder_parameters(nights)
    assert free.parameters - frozen.parameters == size


def test_validation_and_unlabeled_windows(nights):
    X, y, groups = as_sklearn(nights)
    y = np.where(groups <= 2, y, -1)
    # One of two labeled subjects is held out; those without labels are pretrained on.
    clf = classifier(validation=0.5, pretrain_batch_size=1, finetune_batch_size=1)
    cost = clf.training_cost(X, y, groups=groups)
    assert (cost.pretraining_steps, cost.finetuning_steps) == (3 * 24, 24)
    # Unlabeled windows of a held-out subject are not used.
    partly = np.where(np.arange(96) % 24 < 12, np.asarray(as_sklearn(nights)[1]), -1)
    cost = clf.set_params(validation=0.25).training_cost(X, partly, groups=groups)
    assert (cost.pretraining_steps, cost.finetuning_steps) == (3 * 24, 3 * 12)


def test_probes(nights):
    probe = embedder()
    assert probe.training_cost(nights).parameters == probe.n_encoder_parameters(nights)
    once = embedder(pretext=None).training_cost(nights)
    assert (once.parameters, once.pretraining_steps) == (0, 0)


def test_the_pretraining_of_a_given_encoder_counts(nights, tmp_path):
    nights = nights.split([[0, 1]])["0"]
    own = classifier(channel_drop_prob=0, validation=0)
    folder = embedder().fit(nights).save(tmp_path / "encoder")
    stated = dict(freeze_encoder=False, head_epochs=0, encoder_lr_factor=1.0, head="attention")
    given = classifier(encoder=str(folder), channel_drop_prob=0, validation=0, **stated)
    assert given.training_cost(nights) == own.training_cost(nights)
    continued = given.set_params(continue_pretraining=True, pretrain_epochs=2)
    assert continued.training_cost(nights).pretraining_steps == 2 + 2 * 2
    # The card of an encoder that was continued has both.
    again = embedder(encoder=str(folder), continue_pretraining=True).fit(nights)
    assert classifier(encoder=again).training_cost(nights).pretraining_steps == 2 + 2
    # An encoder without these numbers on its card.
    encoder, card, _ = load_encoder(folder)
    save_encoder(encoder, EncoderCard(sfreq=100.0, task="pars", subjects=[1]), tmp_path / "old")
    old = classifier(encoder=str(tmp_path / "old"), **stated)
    unknown = old.training_cost(nights)
    assert math.isnan(unknown.pretraining_steps)
    assert unknown.parameters == own.training_cost(nights).parameters
    assert (card.n_times, card.n_steps, card.n_examples) == (300, 2, 48)


def test_a_network(nights):
    network = NetworkClassifier(finetune_epochs=2, validation=0, finetune_batch_size=40, verbose=0)
    cost = network.training_cost(nights)
    assert (cost.pretraining_steps, cost.finetuning_steps) == (0, 2 * 3)
    assert cost.parameters == n_parameters(network.fit(nights).net_.module_)


def test_nothing_is_changed_or_written(nights, tmp_path):
    clf = classifier(checkpoint_dir=tmp_path / "encoder")
    before, state = clf.get_params(), torch.get_rng_state()
    clf.training_cost(nights)
    assert clf.get_params() == before
    assert torch.equal(torch.get_rng_state(), state)
    assert not hasattr(clf, "net_")
    assert not (tmp_path / "encoder").exists()
