"""Warnings of trainings that may have learned nothing."""

from __future__ import annotations

from support.convergence import convergence_warnings

from braindecode_pars import PatchEncoder
from braindecode_pars._common.training import warn_of_chance, warn_of_validation
from braindecode_pars.pretraining import PretrainingSettings, pretrain_encoder


def test_pretraining_above_98_percent_of_chance():
    (text,) = convergence_warnings(
        warn_of_chance, [{"train_loss_relative": 0.9812}, {"epoch": 2}], 36
    )
    assert "0.981" in text
    assert "After 36 pretraining steps" in text
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
        assert all("After 3 pretraining steps" in text for text in texts)


def test_the_held_out_loss_counts_where_it_is_known():
    rows = [{"train_loss_relative": 0.5, "valid_loss_relative": 0.99}]
    (text,) = convergence_warnings(warn_of_chance, rows, 36)
    assert "0.990" in text


def test_equal_losses_count_against_later_epochs_and_chance():
    (text,) = convergence_warnings(warn_of_validation, [0.6, 0.7, 0.6], 0.69)
    assert "after the first of 3 epochs" in text
    (text,) = convergence_warnings(warn_of_validation, [0.8, 0.69], 0.69)
    assert "0.690" in text
    assert convergence_warnings(warn_of_validation, [0.7, 0.6], 0.69) == []
