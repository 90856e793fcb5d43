"""The encoder of an estimator: one set of defaults, and what is refused before training."""

from __future__ import annotations

import inspect

import pytest

from braindecode_pars import PARSClassifier, PARSEmbedder
from braindecode_pars.callbacks import Pretraining
from braindecode_pars.estimators import encoder_start as _pretraining
from braindecode_pars.estimators.encoder_start import make_checkpoint_dir, patch_size_of
from braindecode_pars.pretraining import pretrain_encoder


def default(function, name):
    return inspect.signature(function).parameters[name].default


@pytest.mark.parametrize("name", ["epochs", "lr", "batch_size", "weight_decay"])
def test_function_callback_and_estimators_have_the_same_defaults(name):
    expected = default(pretrain_encoder, name)
    assert default(Pretraining, name) == expected
    of_estimator = name if name == "weight_decay" else f"pretrain_{name}"
    assert default(PARSClassifier, of_estimator) == expected
    assert default(PARSEmbedder, of_estimator) == expected


def test_every_argument_that_is_passed_on_exists():
    arguments = inspect.signature(pretrain_encoder).parameters
    for parameter, argument in _pretraining._ARGUMENTS.items():
        assert argument in arguments
        for estimator in (PARSClassifier, PARSEmbedder):
            assert parameter in inspect.signature(estimator).parameters


def test_an_unknown_sampling_rate_makes_a_patch_a_share_of_the_window():
    assert patch_size_of(None, 0.5, 200.0, 6000, "PARSClassifier") == (100, 200.0)
    with pytest.warns(UserWarning, match=r"200 samples.*sfreq.*PARSClassifier"):
        assert patch_size_of(None, 1.0, None, 6000, "PARSClassifier") == (200, None)


def test_a_checkpoint_folder_that_cannot_be_made_is_refused(tmp_path):
    make_checkpoint_dir(None)
    make_checkpoint_dir(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="checkpoint_dir="):
        make_checkpoint_dir(tmp_path / "file")
