"""Training curves and shift matrices."""

from __future__ import annotations

import io
import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from support.montages import concatenated

from braindecode_pars import PARSClassifier, plotting


def history(shift: float = 0.0, **more) -> pd.DataFrame:
    pretraining = pd.DataFrame(
        dict(
            phase="pretraining",
            epoch=[1, 2, 3],
            train_loss=[0.15, 0.1, 0.05],
            train_loss_relative=np.array([1.0, 0.7, 0.4]) + shift,
        )
    )
    fine_tuning = pd.DataFrame(
        dict(
            phase="fine-tuning",
            epoch=[1, 2, 3],
            train_loss=np.array([1.6, 1.0, 0.5]) + shift,
            valid_loss=np.array([1.6, 1.1, 1.3]) + shift,
        )
    )
    return pd.concat([pretraining, fine_tuning], ignore_index=True).assign(**more)


def curves(ax, n_epochs=3):
    return [line.get_ydata() for line in ax.lines if len(line.get_xdata()) == n_epochs]


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_phases_are_drawn_side_by_side():
    pretraining, fine_tuning = plotting.training_curves(history())
    assert (pretraining.get_title(), fine_tuning.get_title()) == ("pretraining", "fine-tuning")
    np.testing.assert_allclose(curves(pretraining), [[1.0, 0.7, 0.4]])
    np.testing.assert_allclose(curves(fine_tuning), [[1.6, 1.0, 0.5], [1.6, 1.1, 1.3]])
    styles = {line.get_linestyle() for line in fine_tuning.lines if len(line.get_xdata()) == 3}
    assert len(styles) == 2
    assert legend(fine_tuning) == ["training", "validation"]
    # The chance level of relative losses
    assert [1, 1] in [list(line.get_ydata()) for line in pretraining.lines]
    assert "chance level" in pretraining.get_ylabel()
    assert pretraining.get_ylim()[1] > 1
    assert "chance" not in fine_tuning.get_ylabel()


def test_names_of_methods_are_in_the_legend_as_they_are():
    names = ["_mlp", "$$", "a method with a long name"]
    joined = pd.concat([history().assign(method=name) for name in names])
    axes = plotting.training_curves(joined)
    axes[0].figure.savefig(io.BytesIO())
    assert legend(axes[0]) == names
    of_losses = [f"{name}, {loss}" for name in names for loss in ("training", "validation")]
    assert legend(axes[1]) == of_losses
    for ax in axes:
        assert ax.get_legend().get_window_extent().x1 <= ax.figure.bbox.x1 + 1
        assert ax.bbox.width > 250


def test_parts_of_a_task_are_lines_of_their_own():
    joint = history()
    joint["train_loss_relative_mae"] = joint["train_loss_relative"] / 2
    pretraining, _ = plotting.training_curves(joint)
    np.testing.assert_allclose(curves(pretraining), [[1.0, 0.7, 0.4], [0.5, 0.35, 0.2]])
    assert legend(pretraining) == ["total", "mae"]


def test_methods_and_seeds_are_lines_and_the_legend_has_each_method_once():
    runs = [
        history(0.1 * m + 0.01 * seed, method=method, seed=seed)
        for m, method in enumerate(["PARS", "MAE"])
        for seed in (0, 1)
    ]
    pretraining, fine_tuning = plotting.training_curves(pd.concat(runs))
    firsts = [curve[0] for curve in curves(pretraining)]
    np.testing.assert_allclose(firsts, [1.0, 1.01, 1.1, 1.11])
    assert legend(pretraining) == ["PARS", "MAE"]
    lines = ["PARS, training", "PARS, validation", "MAE, training", "MAE, validation"]
    assert legend(fine_tuning) == lines
    markers = {line.get_marker() for line in pretraining.lines if len(line.get_xdata()) == 3}
    assert len(markers) == 2


def test_folds_are_lines_of_their_own():
    folds = [history(0.1 * i, method="PARS", seed=0, subject=f"S{i}") for i in range(3)]
    pretraining, _ = plotting.training_curves(pd.concat(folds))
    assert len(curves(pretraining)) == 3


def test_method_without_pretraining_has_no_pretraining_curve():
    scratch = history(0.1).query("phase == 'fine-tuning'")
    both = pd.concat([history(method="PARS"), scratch.assign(method="from scratch")])
    pretraining, fine_tuning = plotting.training_curves(both)
    assert len(curves(pretraining)) == 1
    assert legend(pretraining) == ["PARS"]
    assert legend(fine_tuning)[1:3] == ["PARS, validation", "from scratch, training"]


def test_one_phase_without_validation_is_one_panel():
    only = history().query("phase == 'fine-tuning'").drop(columns="valid_loss")
    [ax] = plotting.training_curves(only)
    np.testing.assert_allclose(curves(ax), [[1.6, 1.0, 0.5]])
    assert ax.get_legend() is None


def test_the_history_of_a_classifier_is_drawn(tiny):
    budget = dict(pretrain_epochs=2, finetune_epochs=2, random_state=0, verbose=0)
    budget["validation"] = 0.2
    fitted = PARSClassifier(**tiny, **budget).fit(concatenated(0, 1))
    axes = plotting.training_curves(fitted.history_)
    assert [ax.get_title() for ax in axes] == ["pretraining", "fine-tuning"]
    assert [len(curves(ax, 2)) for ax in axes] == [2, 2]  # pretraining: loss and chance level


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (history().drop(columns="phase"), "phase.*epoch"),
        (history().iloc[:0], "empty"),
        (pd.concat([history(), history()]), "seed"),
    ],
)
def test_an_invalid_history_raises(table, message):
    with pytest.raises(ValueError, match=message):
        plotting.training_curves(table)


STARTS = np.array([900, 100, 500, 300, 700])
SHIFTS = (STARTS[:, None] - STARTS[None]) / 1000
BY_TIME = [1, 3, 2, 4, 0]


def drawn(ax):
    return np.ma.filled(ax.images[0].get_array(), np.nan)


def test_matrices_and_errors_are_drawn():
    target = np.linspace(-1, 1, 5)[:, None] - np.linspace(-1, 1, 5)[None] / 2
    prediction = target + np.where(np.eye(5), 0.1, -0.1)
    axes = plotting.shift_matrices(prediction, target)
    np.testing.assert_array_equal(drawn(axes[0]), prediction)
    np.testing.assert_array_equal(drawn(axes[1]), target)
    np.testing.assert_allclose(drawn(axes[2]), 0.1)
    assert "RMSE 0.10" in axes[3].get_title()
    chance = np.mean(target**2)
    assert axes[0].get_title() == f"prediction\nMSE 0.010 (chance level: {chance:.3f})"
    points = axes[3].collections[0].get_offsets()
    np.testing.assert_allclose(points, np.c_[target.ravel(), prediction.ravel()])


def test_patches_are_sorted_by_time():
    expected = SHIFTS[np.ix_(BY_TIME, BY_TIME)]
    axes = plotting.shift_matrices(0.5 * SHIFTS, SHIFTS)
    np.testing.assert_allclose(drawn(axes[0]), 0.5 * expected)
    np.testing.assert_allclose(drawn(axes[1]), expected)
    np.testing.assert_allclose(drawn(axes[2]), 0.5 * np.abs(expected))
    assert len(axes[3].collections[0].get_offsets()) == 25


@pytest.mark.parametrize("shape", [(2, 3, 3), (2, 3)])
def test_matrices_that_do_not_fit(shape):
    with pytest.raises(ValueError, match=re.escape(str(shape))):
        plotting.shift_matrices(np.zeros(shape), np.zeros(shape))
    assert plt.get_fignums() == []
