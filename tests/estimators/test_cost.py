"""The cost of a fit equals what the fit does."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from support.small_estimators import FAST, classifier, embedder

from braindecode_pars import PatchEncoder, as_sklearn
from braindecode_pars._common.computing import count
from braindecode_pars.estimators import NetworkClassifier
from braindecode_pars.pretrained import EncoderCard, load_encoder, save_encoder

N_WINDOWS, N_CHANS, N_PATCHES = 96, 3, 30


def n_parameters(module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def fit_counted(estimator, windows):
    """Fit, and count the tokens of every call of an encoder in training, by a hook on all."""
    seen = []
    original = PatchEncoder.forward

    def forward(self, tokens, key_mask=None):
        seen.append(tokens.shape[0] * tokens.shape[1])
        return original(self, tokens, key_mask)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PatchEncoder, "forward", forward)
        # What the trained model predicts is no training.
        looks = "braindecode_pars.estimators.pars_estimator.warn_of_fine_tuning"
        patch.setattr(looks, lambda *_: None)
        operations = count(lambda: estimator.fit(windows)).flops
    return estimator, sum(seen), operations


def test_tokens_and_operations_are_those_of_the_fit(nights):
    few = nights.split([[0]])["0"]  # 24 windows
    settings = dict(channel_drop_prob=0, validation=0, finetune_epochs=2)
    settings |= dict(pretrain_batch_size=16, finetune_batch_size=10)
    for pretext in ("mae", "features", None):
        clf = classifier(pretext=pretext, **settings)
        cost = clf.training_cost(few)
        fitted, tokens, operations = fit_counted(clf, few)
        assert cost.tokens == tokens
        # The loss of the log has products of its own.
        assert cost.flops == pytest.approx(operations, rel=1e-3)
        assert cost.parameters == n_parameters(fitted.net_.module_)
        assert cost.pretraining_steps == (0 if pretext is None else 2)
        assert cost.finetuning_steps == 2 * 3


def test_dropped_channels_count_by_their_probability(nights):
    def plain(p):
        kept = sum(
            max(k, 1) * math.comb(3, k) * (1 - p) ** k * p ** (3 - k) for k in range(N_CHANS + 1)
        )
        return N_WINDOWS * kept * N_PATCHES

    clf = classifier(pretext=None, validation=0)
    all_channels = clf.set_params(channel_drop_prob=0).training_cost(nights)
    for p in (0.3, 0.5):
        cost = clf.set_params(channel_drop_prob=p).training_cost(nights)
        assert cost.tokens == pytest.approx(plain(p))
        assert cost.flops < all_channels.flops


def test_a_frozen_encoder_has_no_backward_pass(nights):
    settings = dict(pretext=None, validation=0, channel_drop_prob=0, finetune_epochs=4)
    settings |= dict(tokenizer="linear")  # the spectrum of a patch has no backward pass either
    free = classifier(**settings).training_cost(nights)
    frozen = classifier(**settings, freeze_encoder=True).training_cost(nights)
    later = classifier(**settings, head_epochs=2).training_cost(nights)
    assert frozen.tokens == later.tokens == free.tokens
    assert later.flops == pytest.approx((free.flops + frozen.flops) / 2)
    assert 2.5 < free.flops / frozen.flops < 3.1
    # A given encoder is frozen for few people.
    given = embedder(pretext=None, tokenizer="linear").fit(nights)
    cost = classifier(**settings, encoder=given, head="attention").training_cost(nights)
    assert cost.flops == frozen.flops
    # A random encoder that stays frozen has no trained weights.
    size = classifier(**settings).n_encoder_parameters(nights)
    assert free.parameters - frozen.parameters == size


def test_validation_and_unlabelled_windows(nights):
    X, y, groups = as_sklearn(nights)
    y = np.where(groups <= 2, y, -1)
    # One of two labelled subjects is held out; those without labels are pretrained on.
    clf = classifier(validation=0.5, pretrain_batch_size=1, finetune_batch_size=1)
    cost = clf.training_cost(X, y, groups=groups)
    assert (cost.pretraining_steps, cost.finetuning_steps) == (3 * 24, 24)
    # Unlabelled windows of a held-out subject are not used.
    partly = np.where(np.arange(96) % 24 < 12, np.asarray(as_sklearn(nights)[1]), -1)
    cost = clf.set_params(validation=0.25).training_cost(X, partly, groups=groups)
    assert (cost.pretraining_steps, cost.finetuning_steps) == (3 * 24, 3 * 12)


def test_probes(nights):
    probe, random_probe = embedder(), embedder(pretext=None)
    cost = probe.training_cost(nights)
    fitted, tokens, _ = fit_counted(probe, nights)
    assert cost.tokens == tokens + N_WINDOWS * N_CHANS * N_PATCHES  # embeds each window once
    assert cost.parameters == n_parameters(fitted.encoder_) == probe.n_encoder_parameters(nights)
    once = random_probe.training_cost(nights)
    assert (once.parameters, once.pretraining_steps) == (0, 0)
    assert once.tokens == N_WINDOWS * N_CHANS * N_PATCHES


def test_the_pretraining_of_a_given_encoder_counts(nights, tmp_path):
    nights = nights.split([[0, 1]])["0"]
    own = classifier(channel_drop_prob=0, validation=0)
    folder = embedder().fit(nights).save(tmp_path / "encoder")
    stated = dict(freeze_encoder=False, head_epochs=0, encoder_lr_factor=1.0, head="attention")
    given = classifier(encoder=str(folder), channel_drop_prob=0, validation=0, **stated)
    assert given.training_cost(nights) == own.training_cost(nights)
    continued = given.set_params(continue_pretraining=True, pretrain_epochs=2)
    assert continued.training_cost(nights).pretraining_steps == 1 + 2
    # The card of an encoder that was continued has both.
    again = embedder(encoder=str(folder), continue_pretraining=True).fit(nights)
    assert classifier(encoder=again).training_cost(nights).pretraining_steps == 2
    # An encoder without these numbers on its card.
    encoder, card, _ = load_encoder(folder)
    save_encoder(encoder, EncoderCard(sfreq=100.0, task="pars", subjects=[1]), tmp_path / "old")
    old = classifier(encoder=str(tmp_path / "old"), **stated)
    unknown = old.training_cost(nights)
    assert all(map(math.isnan, (unknown.pretraining_steps, unknown.tokens, unknown.flops)))
    assert unknown.parameters == own.training_cost(nights).parameters
    assert (card.n_times, card.n_steps, card.n_examples) == (3000, 1, 48)


def test_a_task_with_functions_of_the_user_has_an_unknown_cost_once_saved(nights, tmp_path):
    own = {"features": {"largest": lambda x, sfreq: x.amax(1)}}
    fitted = embedder(pretext="features", pretext_params=own).fit(nights)
    assert classifier(encoder=fitted).training_cost(nights).pretraining_steps == 2
    folder = fitted.save(tmp_path / "encoder")
    given = classifier(encoder=str(folder))
    assert math.isnan(given.training_cost(nights).pretraining_steps)
    assert given.fit(nights).encoder_card_.task == "features"


def test_a_network_without_tokens(nights):
    network = NetworkClassifier(finetune_epochs=2, validation=0, finetune_batch_size=40, verbose=0)
    cost = network.training_cost(nights)
    assert (cost.pretraining_steps, cost.finetuning_steps) == (0, 2 * 3)
    assert math.isnan(cost.tokens)
    assert cost.flops > 0
    fitted = network.fit(nights)
    assert cost.parameters == n_parameters(fitted.net_.module_)


def test_size_of_the_encoder(nights, tmp_path):
    # tokens of the patch and of its spectrum, a block, the last norm
    clf = classifier(tokenizer="linear")
    d, m, patch = FAST["embed_dim"], FAST["mlp_dim"], 100
    block = 4 * (d * d + d) + (d * m + m) + (m * d + d) + 2 * 2 * d
    assert clf.n_encoder_parameters(nights) == (patch * d + d) + block + 2 * d
    other = PatchEncoder(50, embed_dim=8, num_layers=1, num_heads=1)
    assert classifier(encoder=other).n_encoder_parameters(nights) == n_parameters(other)


def test_counting_changes_no_random_state(nights):
    before = torch.get_rng_state()
    classifier().training_cost(nights)
    assert torch.equal(before, torch.get_rng_state())


def test_an_encoder_of_another_rate_is_named_before_sizes_are_compared(nights):
    """Its size differs since a patch has another number of samples."""
    for estimator in (classifier(encoder="small"), embedder(encoder="small")):
        with pytest.raises(ValueError, match=r"100 Hz.*128 Hz"):
            estimator.n_encoder_parameters(nights)


def test_steps_are_those_of_the_fit(nights):
    clf = classifier(finetune_batch_size=7, validation=0.5)
    cost = clf.training_cost(nights)
    batches = clf.fit(nights).net_.history[0, "batches"]
    assert cost.finetuning_steps == sum("train_batch_size" in row for row in batches)
    assert cost.parameters == n_parameters(clf.net_.module_)


def test_nothing_is_changed_or_written(nights, tmp_path):
    clf = classifier(checkpoint_dir=tmp_path / "encoder", callbacks=None)
    before = clf.get_params()
    clf.training_cost(nights)
    assert clf.get_params() == before
    assert not hasattr(clf, "net_")
    assert not (tmp_path / "encoder").exists()


def test_errors_are_those_of_the_fit(nights):
    with pytest.raises(ValueError, match="NoNet"):
        NetworkClassifier("NoNet").training_cost(nights)
    with pytest.raises(ValueError, match="num_heads"):
        classifier(num_heads=0).training_cost(nights)
