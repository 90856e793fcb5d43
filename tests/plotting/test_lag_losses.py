"""Losses by lag: one line per method, in its last epoch."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from braindecode_pars import PARSClassifier, plotting


def history(losses, epoch=2, prefix="", **more):
    lags = ("lag_16_29", "lag_0_1", "lag_1_2")
    parts = {f"train_loss_relative_{prefix}{lag}": x for lag, x in zip(lags, losses, strict=True)}
    return pd.DataFrame([dict(epoch=epoch, train_loss_relative=0.5, **parts, **more)])


def heights(ax):
    return [list(line.get_ydata()) for line in ax.lines if len(line.get_xdata()) == 3]


def test_lags_are_in_order_and_the_last_epoch_counts():
    ax = plotting.lag_losses(pd.concat([history([0.9, 0.8, 0.7], 1), history([0.6, 0.2, 0.4])]))
    assert heights(ax) == [[0.2, 0.4, 0.6]]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["< 1", "1-2", "16-29"]
    assert [1, 1] in [list(line.get_ydata()) for line in ax.lines]
    assert ax.get_legend() is None


def test_a_line_is_the_mean_over_the_runs_of_a_method():
    runs = [
        history([1.0, 0.2, 0.4], method="overlap", seed=0),
        history([1.0, 0.4, 0.6], method="overlap", seed=1),
        history([0.9, np.nan, 0.9], 5, prefix="pars_", method="no overlap", seed=0),
        pd.DataFrame([dict(epoch=2, train_loss_relative=0.3, method="MAE", seed=0)]),
    ]
    ax = plotting.lag_losses(pd.concat(runs[:2]))
    np.testing.assert_allclose(heights(ax), [[0.3, 0.5, 1.0]])
    ax = plotting.lag_losses(pd.concat([runs[0], runs[3]]))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["overlap"]
    ax = plotting.lag_losses(pd.concat([runs[0], runs[2]]))
    np.testing.assert_array_equal(heights(ax), [[0.2, 0.4, 1.0], [np.nan, 0.9, 0.9]])
    [line] = heights(plotting.lag_losses(runs[2]))
    np.testing.assert_array_equal(line, [np.nan, 0.9, 0.9])


def test_the_history_of_a_classifier_is_drawn(nights, tiny):
    clf = PARSClassifier(**tiny, pretrain_epochs=1, finetune_epochs=1, verbose=0).fit(nights)
    ax = plotting.lag_losses(clf.history_)
    assert ax.get_xticklabels()[0].get_text() == "< 1"


def test_bad_input_is_explained():
    with pytest.raises(TypeError, match="list"):
        plotting.lag_losses([1])
    with pytest.raises(ValueError, match="train_loss_relative_lag_1_2"):
        plotting.lag_losses(pd.DataFrame(dict(epoch=[1], train_loss_relative=[0.5])))
