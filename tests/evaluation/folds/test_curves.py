"""The histories of estimators are joined in one table."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd

from braindecode_pars.evaluation.folds import curves_frame, history_of

HISTORY = pd.DataFrame(
    {
        "phase": ["pretraining", "fine-tuning"],
        "epoch": [1, 1],
        "train_loss": [0.5, 1.5],
        "valid_loss": [np.nan, 1.25],
        "train_loss_relative_mae": [0.9, np.nan],
        "batches": [[1], [2]],
    }
)


def test_a_history_is_found_inside_a_pipeline():
    pipe = SimpleNamespace(steps=[("scale", 1), ("clf", SimpleNamespace(history_=HISTORY))])
    first, second = history_of(pipe)
    assert first == {
        "phase": "pretraining",
        "epoch": 1,
        "train_loss": 0.5,
        "valid_loss": None,
        "train_loss_relative_mae": 0.9,
    }
    assert second["valid_loss"] == 1.25
    assert history_of(SimpleNamespace(steps=[("clf", 1)])) is None


def test_a_history_of_skorch_has_one_phase():
    rows = [{"epoch": 1, "train_loss": 0.5, "batches": [{"train_loss": 0.5}], "dur": 0.1}]
    assert history_of(SimpleNamespace(history_=rows)) == [
        {"phase": "training", "epoch": 1, "train_loss": 0.5}
    ]


def test_curves_carry_the_columns_of_their_fold():
    folds = [SimpleNamespace(key={"method": m, "seed": 0}) for m in "AB"]
    history = history_of(SimpleNamespace(history_=HISTORY))
    curves = curves_frame(folds, [{"history": history}, {"history": None}])
    assert curves.columns.tolist() == [
        "method",
        "seed",
        "phase",
        "epoch",
        "train_loss",
        "valid_loss",
        "train_loss_relative",
        "train_loss_relative_mae",
    ]
    assert curves["method"].tolist() == ["A", "A"]
    assert np.isnan(curves["valid_loss"][0])
    assert curves["train_loss"].tolist() == [0.5, 1.5]
    assert len(curves_frame(folds, [{"history": None}] * 2)) == 0
