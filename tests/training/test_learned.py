"""Warnings of trainings that may have learned nothing."""

from __future__ import annotations

import numpy as np
import torch
from skorch import NeuralNetRegressor
from support.convergence import convergence_warnings
from support.small_runs import make_store, small_config

from braindecode_pars import PatchEncoder
from braindecode_pars._common.training import StepCountWarning, warn_of_chance, warn_of_validation
from braindecode_pars.pretraining import PretrainingSettings, pretrain_encoder
from braindecode_pars.runs import pretrain

SIZE = 0.0495


def fitted(n_epochs, lr, trained=True):
    """A net that begins with weights of one size, trained in two steps per epoch."""
    module = torch.nn.Linear(4, 1)
    torch.nn.init.constant_(module.weight, SIZE).requires_grad_(trained)
    net = NeuralNetRegressor(
        module,
        max_epochs=n_epochs,
        lr=lr,
        batch_size=4,
        optimizer=torch.optim.AdamW,
        callbacks=[StepCountWarning()],
        callbacks__print_log=None,
        train_split=None,
    )
    return net.fit(np.ones((8, 4), "float32"), np.ones((8, 1), "float32"))


def test_too_few_steps_for_the_size_of_the_weights():
    """A twentieth of .0495 / 5e-5 is 50 steps."""
    (text,) = convergence_warnings(fitted, 24, 5e-5)
    assert "48 steps" in text
    assert "about 50 steps" in text
    assert convergence_warnings(fitted, 25, 5e-5) == []


def test_weights_that_are_not_trained_do_not_count():
    assert convergence_warnings(fitted, 2, 5e-5, trained=False) == []


def test_pretraining_above_98_percent_of_chance():
    (text,) = convergence_warnings(
        warn_of_chance, [{"train_loss_relative": 0.9812}, {"epoch": 2}], 36
    )
    assert "0.981" in text
    assert "36 steps" in text
    assert convergence_warnings(warn_of_chance, [{"train_loss_relative": 0.9799}], 36) == []
    assert convergence_warnings(warn_of_chance, [], 0) == []


def test_the_end_is_the_last_tenth_of_the_epochs():
    """One epoch over few windows is above chance by chance."""
    for last, n_warnings in ((1.01, 0), (1.03, 1)):
        losses = [1.2] * 18 + [0.94, last]
        texts = convergence_warnings(
            warn_of_chance, [{"train_loss_relative": loss} for loss in losses], 20
        )
        assert len(texts) == n_warnings


def test_pretraining_warns_of_chance(nights, tiny):
    """96 windows are three steps of 32. A sham is meant to stay at chance."""
    for sham, n_warnings in ((False, 1), (True, 0)):
        once = PretrainingSettings(epochs=1, sham=sham)
        texts = convergence_warnings(
            pretrain_encoder, PatchEncoder(100, **tiny), nights, once, verbose=0
        )
        assert len(texts) == n_warnings
        assert all("3 steps" in text for text in texts)


def test_the_held_out_loss_counts_where_it_is_known():
    rows = [{"train_loss_relative": 0.5, "valid_loss_relative": 0.99}]
    (text,) = convergence_warnings(warn_of_chance, rows, 36)
    assert "0.990" in text


def test_no_warning_without_pretraining(nights, tiny):
    never = PretrainingSettings(epochs=0)
    assert (
        convergence_warnings(pretrain_encoder, PatchEncoder(100, **tiny), nights, never, verbose=0)
        == []
    )


def test_a_run_warns(tmp_path):
    store = make_store(tmp_path / "store")
    config = small_config(epochs=1, steps_per_epoch=2)
    texts = convergence_warnings(pretrain, store, tmp_path / "run", config, verbose=0)
    assert any("2 steps" in text for text in texts)


def test_a_validation_loss_that_never_fell():
    (text,) = convergence_warnings(warn_of_validation, [1.0, 1.2, 1.0], chance=1.6)
    assert "after the first of 3 epochs" in text
    assert convergence_warnings(warn_of_validation, [1.0, 0.9], chance=1.6) == []
    # There is only one epoch.
    assert convergence_warnings(warn_of_validation, [1.0], chance=1.6) == []


def test_a_validation_loss_that_was_never_below_chance():
    for lowest in (1.7, 1.6):  # at chance is not below it
        (text,) = convergence_warnings(warn_of_validation, [1.8, lowest], chance=1.6)
        assert "1.600" in text
