"""The losses of a training as a table."""

from __future__ import annotations

from braindecode_pars.training._history import history_frame, history_row

ROW = {
    "epoch": 1,
    "dur": 0.3,
    "batches": [],
    "train_loss": 0.5,
    "train_loss_best": True,
    "train_loss_relative": 0.9,
    "train_loss_relative_mae": 1.0,
}


def test_a_row_keeps_epoch_and_losses():
    assert history_row(ROW) == {
        "epoch": 1,
        "train_loss": 0.5,
        "train_loss_relative": 0.9,
        "train_loss_relative_mae": 1.0,
    }


def test_phases_are_joined():
    frame = history_frame({"pretraining": [ROW], "fine-tuning": [{"epoch": 1, "valid_loss": 2.0}]})
    assert list(frame) == [
        *("phase", "epoch", "train_loss", "valid_loss", "train_loss_relative"),
        "train_loss_relative_mae",
    ]
    assert frame["phase"].tolist() == ["pretraining", "fine-tuning"]
    assert frame["valid_loss"].isna().tolist() == [True, False]


def test_no_phase_is_an_empty_table():
    assert history_frame({}).empty
