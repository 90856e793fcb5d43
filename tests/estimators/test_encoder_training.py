"""The encoder in fine-tuning: parameter groups, frozen, joining later, dropout."""

from __future__ import annotations

import mne
import numpy as np
import pytest
import torch
from skorch.callbacks import Callback
from support.small_estimators import classifier

from braindecode_pars import PARSClassifier, PARSNet, PatchEncoder
from braindecode_pars.estimators.fine_tuning import (
    MIN_SUBJECTS,
    FineTuningNet,
    fine_tune,
    fine_tuning_net,
    fine_tuning_of,
)
from braindecode_pars.windows.convert import as_windows

TINY = dict(embed_dim=16, num_layers=2, num_heads=2, mlp_dim=16)
#: A few windows of two channels, and a schedule with the same steps for all tests.
X = np.random.default_rng(0).normal(size=(10, 2, 300)).astype("float32")
Y = np.arange(10) % 2
WINDOWS = as_windows(X, Y)
TRAINING = dict(finetune_epochs=4, finetune_batch_size=4, finetune_lr=0.01, weight_decay=0.3)


class States(Callback):
    """Keep the weights before training and after each epoch."""

    def on_train_begin(self, net, **kwargs):
        self.states = []
        self.on_epoch_end(net)

    def on_epoch_end(self, net, **kwargs):
        weights = net.module_.state_dict().items()
        self.states.append({name: value.clone() for name, value in weights})


def make_net(**arguments) -> FineTuningNet:
    estimator = classifier(**{**TRAINING, **arguments})
    estimator.classes_ = np.arange(2)
    torch.manual_seed(0)
    chs_info = mne.create_info(["C3", "C4"], 100.0, "eeg")["chs"]
    module = PARSNet(
        2, chs_info=chs_info, n_times=300, sfreq=100.0, electrode_position=True, **TINY
    )
    estimator.fine_tuning_ = fine_tuning_of(estimator.get_params(), None)
    return fine_tuning_net(estimator, module, class_weights=None)


def fit(**arguments) -> PARSClassifier:
    scratch = dict(pretext=None, sfreq=100, validation=0)
    return classifier(**{**scratch, **TRAINING, **arguments}).fit(X, Y)


def states_of(**arguments) -> list[dict[str, torch.Tensor]]:
    states = States()
    fit(callbacks=[states], **arguments)
    return states.states


def equal(one: dict, other: dict, prefix: str) -> bool:
    names = [name for name in one if name.startswith(prefix)]
    assert names
    return all(torch.equal(one[name].cpu(), other[name].cpu()) for name in names)


def test_a_factor_of_zero_is_freeze_encoder():
    """The encoder has no gradient then, and clipping does not count one."""
    training = dict(gradient_clip=0.1)
    *_, frozen = states_of(freeze_encoder=True, **training)
    start, *_, zero = states_of(encoder_lr_factor=0, **training)
    assert equal(zero, frozen, "")
    assert equal(zero, start, "encoder.")
    # The other arguments have no effect then.
    training |= dict(head_epochs=1, encoder_lr_factor=0.5)
    *_, others = states_of(freeze_encoder=True, **training)
    assert equal(others, frozen, "")


def test_the_encoder_joins_after_the_epochs_of_the_head():
    start, first, second, third, fourth = states_of(head_epochs=2)
    assert equal(first, start, "encoder.")
    assert equal(second, start, "encoder.")
    assert not equal(third, second, "encoder.")
    assert not equal(fourth, third, "encoder.")
    for before, after in ((start, first), (first, second), (second, third)):
        assert not equal(before, after, "final_layer.")
    # Before it joins, training is that with a frozen encoder.
    frozen = states_of(freeze_encoder=True)
    assert equal(second, frozen[2], "")
    assert not equal(third, frozen[3], "final_layer.")


def test_epochs_of_the_head_only():
    assert equal(states_of(head_epochs=4)[-1], states_of(freeze_encoder=True)[-1], "")


class Dropouts(Callback):
    """Keep the probability and the mode of the dropout of the encoder in each batch."""

    def on_train_begin(self, net, **kwargs):
        self.seen = set()

    def on_batch_end(self, net, training=False, **kwargs):
        layer = net.module_.encoder.blocks[0].dropout
        self.seen.add((training, layer.p, layer.training))


def test_dropout_is_active_in_training_only():
    dropouts = Dropouts()
    net = make_net(drop_prob=0.4, channel_drop_prob=0, callbacks=[dropouts])
    fine_tune(net, WINDOWS, WINDOWS)
    assert dropouts.seen == {(True, 0.4, True), (False, 0.4, False)}
    module, x = net.module_, torch.from_numpy(X)
    assert module.encoder.config["drop_prob"] == module.encoder.blocks[1].dropout.p == 0
    # The validation losses are without dropout, and the training losses with it.
    module.eval()
    loss = torch.nn.functional.cross_entropy(module(x), torch.from_numpy(Y))
    assert net.history[-1, "valid_loss"] == pytest.approx(loss.item(), rel=1e-5)


def test_dropout_changes_training_and_not_pretraining():
    plain, dropped = states_of(pretext="pars"), states_of(pretext="pars", drop_prob=0.5)
    assert equal(plain[0], dropped[0], "encoder.")
    assert not equal(plain[1], dropped[1], "encoder.")


@pytest.mark.parametrize(
    ("factor", "tokens", "first", "last"),
    [
        (0.25, 0.25, 0.25, 0.25),
        # Howard and Ruder 2018: equal ratios between neighboring layers, here the root of 16
        ((1 / 16, 1), 1 / 16, 1 / 4, 1),
    ],
)
def test_every_parameter_is_in_one_group_with_its_rate_and_decay(factor, tokens, first, last):
    net = make_net(encoder_lr_factor=factor)
    name_of = {id(parameter): name for name, parameter in net.module_.named_parameters()}
    found = [
        (name_of[id(parameter)], group["lr"], group["weight_decay"])
        for group in net.optimizer_.param_groups
        for parameter in group["params"]
    ]
    assert sorted(name for name, _, _ in found) == sorted(name_of.values())
    factors = {
        "encoder.tokenizer.": tokens,
        "encoder.blocks.0.": first,
        "encoder.blocks.1.": last,
        "encoder.norm.": last,
    }
    for name, rate, decay in found:
        own = [factors[layer] for layer in factors if name.startswith(layer)]
        assert len(own) == name.startswith("encoder."), name
        assert rate == pytest.approx(0.01 * own[0] if own else 0.01), name
        assert decay == (0.3 if name.endswith("weight") and "norm" not in name else 0.0), name


#: Subjects with one window each: one more than the minimum for fine-tuning a pretrained encoder.
SUBJECTS = np.arange(MIN_SUBJECTS + 1)


def fit_given(n_subjects: int, **arguments) -> tuple[PatchEncoder, PARSClassifier]:
    """Return an encoder, and a classifier that was fitted with this encoder."""
    torch.manual_seed(0)
    given = PatchEncoder(100, 16, 2, 2, 16)
    X = np.random.default_rng(1).normal(size=(n_subjects, 2, 300)).astype("float32")
    clf = classifier(encoder=given, sfreq=100, validation=0, **{**TRAINING, **arguments})
    return given, clf.fit(X, np.arange(n_subjects) % 2, groups=SUBJECTS[:n_subjects])


def test_a_pretrained_encoder_is_frozen_with_few_subjects_and_fine_tuned_with_many():
    given, few = fit_given(MIN_SUBJECTS - 1, finetune_epochs=2)
    assert few.fine_tuning_["freeze_encoder"] is True
    assert equal(few.encoder_.state_dict(), given.state_dict(), "")
    states = States()
    given, many = fit_given(MIN_SUBJECTS, callbacks=[states])
    chosen = dict(freeze_encoder=False, head_epochs=1, encoder_lr_factor=(0.01, 0.1))
    assert many.fine_tuning_ == chosen | {"head": "attention"}  # no electrode is known
    assert equal(states.states[1], states.states[0], "encoder.")


def test_unknown_subjects_are_treated_as_few_and_a_new_encoder_is_trained_as_the_head():
    given = PARSClassifier(encoder=PatchEncoder(100, 16, 1, 2, 16)).get_params()
    assert fine_tuning_of(given, None)["freeze_encoder"] is True
    everything = dict(freeze_encoder=False, head_epochs=0, encoder_lr_factor=1.0)
    assert fine_tuning_of(PARSClassifier().get_params(), [1]) == everything


@pytest.mark.parametrize(
    ("names", "is_given", "head", "found"),
    [
        (["C3", "X2"], True, "auto", "spatial_filter"),
        (["C3", "C4"], True, "attention", "attention"),
        (["C3", "C4"], False, "auto", "spatial_filter"),
        (["X1", "X2"], False, "auto", "attention"),
        (["C3"], True, "auto", "attention"),
    ],
)
def test_the_head_has_spatial_filters_where_an_electrode_is_known(names, is_given, head, found):
    windows = mne.EpochsArray(
        X[:, : len(names)], mne.create_info(names, 100.0, "eeg"), verbose="error"
    )
    encoder = PatchEncoder(100, 16, 1, 2, 16) if is_given else None
    clf = classifier(pretext=None, encoder=encoder, head=head, validation=0)
    clf.fit(windows, Y)
    assert clf.net_.module_.head == clf.fine_tuning_["head"] == found


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        (dict(encoder_lr_factor=0.5), dict(freeze_encoder=False, encoder_lr_factor=0.5)),
        (dict(head_epochs=0), dict(freeze_encoder=False, head_epochs=0)),
        (dict(freeze_encoder=False), dict(freeze_encoder=False, encoder_lr_factor=(0.01, 0.1))),
        (
            dict(freeze_encoder=True, encoder_lr_factor=0.5),
            dict(freeze_encoder=True, encoder_lr_factor=0.5),
        ),
    ],
)
def test_what_is_given_wins(given, chosen):
    assert chosen.items() <= fit_given(3, **given, finetune_epochs=1)[1].fine_tuning_.items()


def test_the_choice_is_saved(tmp_path):
    _, clf = fit_given(MIN_SUBJECTS, encoder_lr_factor=(0.1, 0.5), finetune_epochs=1)
    with pytest.warns(UserWarning, match="encoder=PatchEncoder"):
        loaded = PARSClassifier.load(clf.save(tmp_path))
    assert loaded.fine_tuning_ == clf.fine_tuning_
    assert (loaded.freeze_encoder, loaded.head_epochs) == ("auto", "auto")
    assert [*loaded.encoder_lr_factor] == [0.1, 0.5]
