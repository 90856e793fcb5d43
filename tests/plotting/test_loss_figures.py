"""Training curves and shift matrices."""

import numpy as np
import pandas as pd
import pytest

from braindecode_pars import plotting

LOSSES = ["training", "validation"]


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


def curves(ax):
    return [line.get_ydata() for line in ax.lines if len(line.get_xdata()) == 3]


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_phases_are_drawn_side_by_side():
    pretraining, fine_tuning = plotting.training_curves(history())
    assert (pretraining.get_title(), fine_tuning.get_title()) == ("pretraining", "fine-tuning")
    np.testing.assert_allclose(curves(pretraining), [[1.0, 0.7, 0.4]])
    np.testing.assert_allclose(curves(fine_tuning), [[1.6, 1.0, 0.5], [1.6, 1.1, 1.3]])
    assert legend(fine_tuning) == LOSSES
    # The chance level of relative losses
    assert [1, 1] in [list(line.get_ydata()) for line in pretraining.lines]
    assert pretraining.get_ylim()[1] > 1


def test_parts_of_a_task_are_lines_of_their_own():
    joint = history().assign(train_loss_relative_mae=history()["train_loss_relative"] / 2)
    pretraining, _ = plotting.training_curves(joint)
    np.testing.assert_allclose(curves(pretraining), [[1.0, 0.7, 0.4], [0.5, 0.35, 0.2]])
    assert legend(pretraining) == ["total", "mae"]


def test_runs_are_lines_and_the_legend_has_each_method_once():
    """The method that starts from scratch has no pretraining."""
    runs = [("PARS", 0, "S1"), ("PARS", 0, "S2"), ("PARS", 1, "S1"), ("MAE", 0, "S1")]
    names = ("method", "seed", "subject")
    parts = [history(0.1 * i, **dict(zip(names, run, strict=True))) for i, run in enumerate(runs)]
    scratch = history(1.0, method="scratch").query("phase == 'fine-tuning'")
    pretraining, fine_tuning = plotting.training_curves(pd.concat([*parts, scratch]))
    np.testing.assert_allclose([curve[0] for curve in curves(pretraining)], [1.0, 1.2, 1.1, 1.3])
    assert legend(pretraining) == ["PARS", "MAE"]
    of_losses = [f"{name}, {loss}" for name in ("PARS", "MAE", "scratch") for loss in LOSSES]
    assert legend(fine_tuning) == of_losses


def test_one_phase_without_validation_is_one_panel():
    only = history().query("phase == 'fine-tuning'").drop(columns="valid_loss")
    [ax] = plotting.training_curves(only)
    np.testing.assert_allclose(curves(ax), [[1.6, 1.0, 0.5]])
    with pytest.raises(ValueError, match="seed"):
        plotting.training_curves(pd.concat([only, only]))


def test_matrices_and_errors_are_drawn_in_the_order_of_time():
    starts = np.array([900, 100, 500, 300, 700])
    by_time = [1, 3, 2, 4, 0]
    target = (starts[:, None] - starts[None]) / 1000
    prediction = target + np.where(np.eye(5), 0.1, -0.1)
    axes = plotting.shift_matrices(prediction, target)
    drawn = [ax.images[0].get_array() for ax in axes[:3]]
    np.testing.assert_array_equal(drawn[0], prediction[np.ix_(by_time, by_time)])
    np.testing.assert_array_equal(drawn[1], target[np.ix_(by_time, by_time)])
    np.testing.assert_allclose(drawn[2], 0.1)
    assert "RMSE 0.10" in axes[3].get_title()
    chance = np.mean(target**2)
    assert axes[0].get_title() == f"prediction\nMSE 0.010 (chance level: {chance:.3f})"
    points = axes[3].collections[0].get_offsets()
    expected = np.c_[np.ravel(drawn[1]), np.ravel(drawn[0])]
    np.testing.assert_allclose(points, expected)
    with pytest.raises(ValueError, match=r"\(2, 3\)"):
        plotting.shift_matrices(np.zeros((2, 3)), np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"must be 4.*got 3"):
        plotting.shift_matrices(prediction, target, axes[:3])
