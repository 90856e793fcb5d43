"""Hypnograms, probabilities over time, and a night with example windows."""

import numpy as np
import pandas as pd
import pytest

from braindecode_pars import plotting
from braindecode_pars.datasets.simulated import STAGES

ROWS = {"W": 0, "R": -1, "N1": -2, "N2": -3, "N3": -4}
TRUE = ["W", "N1", "N2", "N3", "R", "R"]
PREDICTED = ["W", "N2", "N2", "N3", "R", "N1"]


def steps(ax):
    return [patch.get_data().values for patch in ax.patches]


def labels(ax):
    return [t.get_text() for t in ax.get_yticklabels()]


def test_stages_are_in_the_usual_order_for_any_numbering_and_spelling():
    by_name = plotting.hypnogram(TRUE, stage_names=STAGES)
    by_index = plotting.hypnogram([STAGES.index(stage) for stage in TRUE], stage_names=STAGES)
    for ax in (by_name, by_index):
        np.testing.assert_array_equal(steps(ax), [[ROWS[stage] for stage in TRUE]])
        assert labels(ax) == list(ROWS)
    ax = plotting.hypnogram(["N2", "REM", "N1", "Wake", "N3"])
    assert labels(ax) == ["Wake", "REM", "N1", "N2", "N3"]
    assert steps(ax)[0].tolist() == [-3, -1, -2, 0, -4]
    assert labels(plotting.hypnogram(["W", "dozing"], order=["dozing", "W"])) == ["dozing", "W"]


def test_true_and_predicted_stages():
    ax = plotting.hypnogram(TRUE, PREDICTED, STAGES, window_seconds=3600)
    np.testing.assert_array_equal(
        steps(ax), [[ROWS[stage] for stage in night] for night in (TRUE, PREDICTED)]
    )
    assert ax.patches[0].get_data().edges[-1] == 6  # hours


def test_unknown_stages_are_blank():
    for unknown in (-1, np.nan):
        ax = plotting.hypnogram(np.array([0, unknown, 3]), [0, 1, 2], STAGES)
        assert np.isnan(steps(ax)[0]).tolist() == [False, True, False]


NAMES = ["N1", "N2", "REM", "Wake"]
P = np.array([[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1], [0.0, 0.9, 0.1, 0.0]])


def frame(values=P, names=NAMES, onset=(0, 30, 60)):
    columns = {f"probability_{name}": values[:, k] for k, name in enumerate(names)}
    return pd.DataFrame(dict(onset=onset, duration=30.0, label="", **columns, entropy=0.0))


def areas(ax):
    """Lower and upper end of the area of each class in each piece of time."""
    drawn_areas = {}
    for patch in ax.patches:
        upper, _, lower = patch.get_data()
        drawn_areas[patch.get_label()] = np.array([lower, upper])
    return drawn_areas


def test_areas_are_stacked_with_wake_on_top():
    top, bottom = plotting.hypnodensity(frame())
    assert labels(top) == ["Wake", "REM", "N1", "N2"]
    assert top.patches[0].get_data().values.tolist() == [0, -2, -3]
    drawn_areas = areas(bottom)
    assert list(drawn_areas) == ["Wake", "REM", "N1", "N2"]
    for name, (lower, upper) in drawn_areas.items():
        np.testing.assert_allclose(upper - lower, P[:, NAMES.index(name)])
    np.testing.assert_allclose(drawn_areas["Wake"][1], 1)
    np.testing.assert_allclose(drawn_areas["REM"][0], drawn_areas["N1"][1])
    assert bottom.get_xlim() == top.get_xlim() == (0, 90)
    assert bottom.get_xlabel() == "seconds"


def test_other_classes_keep_their_order_and_their_time():
    values = np.array([[0.2, 0.8], [np.nan, np.nan], [0.6, 0.4], [0.5, 0.5]])
    arguments = frame(values, ["rest", "arithmetic"], onset=[60, 90, 120, 240])
    top, bottom = plotting.hypnodensity(arguments)
    assert labels(top) == ["rest", "arithmetic"]
    rows, edges, _ = top.patches[0].get_data()
    np.testing.assert_array_equal(rows, [-1, np.nan, 0, np.nan, 0])  # blank: NaN, and no row
    np.testing.assert_allclose(60 * edges, [60, 90, 120, 150, 240, 270])
    assert bottom.get_xlabel() == "minutes"
    assert np.isnan(areas(bottom)["rest"]).any(axis=0).tolist() == [False, True, False, True, False]


def test_order_of_probabilities():
    _, bottom = plotting.hypnodensity(frame(), order=["Wake", "N3", *NAMES[:3]])
    lower, upper = areas(bottom)["N3"]  # no column: never predicted
    np.testing.assert_array_equal(lower, upper)


@pytest.mark.parametrize(
    ("draw", "arguments", "message"),
    [
        (plotting.hypnogram, dict(true=[0, 1]), "stage_names"),
        (plotting.hypnogram, dict(true=[0, 5], stage_names=STAGES), "5.* 'W'"),
        (plotting.hypnogram, dict(true=["W", "dozing"], stage_names=["W", "dozing"]), "order="),
        (plotting.hypnogram, dict(true=["W"], predicted=["W", "R"]), "Length of values"),
        (plotting.hypnodensity, dict(predictions=frame(5 * P)), "decision_function"),
        (plotting.hypnodensity, dict(predictions=frame(onset=[0, 20, 60])), "overlap"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, arguments, message):
    with pytest.raises(ValueError, match=message):
        draw(**arguments)
