"""The published settings are those that the package takes."""

from __future__ import annotations

import inspect

from braindecode_pars import PARSClassifier, PatchEncoder, paper
from braindecode_pars.estimators.windows_estimator import check_estimator
from braindecode_pars.pretext import PARS
from braindecode_pars.pretraining import PretrainingNet


def test_every_setting_is_a_parameter():
    assert set(paper.CLASSIFIER) <= set(PARSClassifier().get_params())
    assert set(paper.ENCODER) <= set(inspect.signature(PatchEncoder).parameters)
    assert set(paper.PARS) <= set(inspect.signature(PARS).parameters)
    of_net = {name for name in paper.PRETRAINING if not name.startswith("optimizer__")}
    assert of_net <= set(inspect.signature(PretrainingNet).parameters)


def test_all_layers_are_fine_tuned_alike_at_a_constant_rate():
    """In the settings themselves, whatever the defaults are; the head is that of the paper."""
    stated = dict(
        finetune_warmup=None,
        freeze_encoder=False,
        head_epochs=0,
        encoder_lr_factor=1,
        gradient_clip=None,
        label_smoothing=0,
        drop_prob=0,
        electrode_position=False,
        amplitude=False,
        head="attention",
    )
    assert stated.items() <= paper.CLASSIFIER.items()


def test_the_models_default_to_the_published_sizes():
    for name, value in paper.ENCODER.items():
        assert inspect.signature(PatchEncoder).parameters[name].default == value
    for name, value in paper.PRETRAINING.items():
        if not name.startswith("optimizer__"):
            assert inspect.signature(PretrainingNet).parameters[name].default == value


def test_the_classifier_has_the_settings_of_pretraining():
    assert paper.CLASSIFIER["pretrain_epochs"] == paper.PRETRAINING["max_epochs"]
    assert paper.CLASSIFIER["pretrain_lr"] == paper.PRETRAINING["lr"]
    assert paper.CLASSIFIER["pretrain_batch_size"] == paper.PRETRAINING["batch_size"]
    # Forty one-second patches follow from 30-second windows.
    task = PARS(6000, 200, **paper.CLASSIFIER["pretext_params"], embed_dim=16, num_layers=1)
    assert task.n_patches == paper.PARS["n_patches"]


def test_fine_tuning_is_the_part_without_encoder_and_pretraining():
    assert paper.FINE_TUNING.items() <= paper.CLASSIFIER.items()
    remaining = set(paper.CLASSIFIER) - set(paper.FINE_TUNING)
    pretraining = {"pretext", "pretext_params", "pretrain_epochs", "pretrain_batch_size"}
    assert remaining == {*paper.ENCODER, *pretraining, "pretrain_lr", "patch_seconds"}


def test_eesm17_has_noise_on_random_channels():
    difference = {k: v for k, v in paper.EESM17.items() if paper.CLASSIFIER.get(k) != v}
    assert difference == {"augmentation": "ChannelNoise"}
    check_estimator(PARSClassifier(**paper.EESM17))
