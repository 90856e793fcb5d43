"""The losses of a training as a table."""

from __future__ import annotations

from braindecode_pars._common.training import history_frame, history_row

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
        *("phase", "epoch", "restored", "train_loss", "valid_loss", "train_loss_relative"),
        "train_loss_relative_mae",
    ]
    assert frame["phase"].tolist() == ["pretraining", "fine-tuning"]
    assert frame["valid_loss"].isna().tolist() == [True, False]


def test_no_phase_is_an_empty_table():
    assert history_frame({}).empty


def test_a_phase_that_a_time_budget_has_ended():
    cut = {"epoch": 2, "time_is_over": True}
    assert history_row(cut) == cut
    frame = history_frame({"pretraining": [ROW], "fine-tuning": [{"epoch": 1}, cut]})
    assert frame.attrs == {"time_is_over": {"fine-tuning": 2}}
    assert "time_is_over" not in frame
    assert history_frame({"pretraining": [ROW]}).attrs == {}
