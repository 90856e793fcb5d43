"""Hypnograms of true and predicted stages."""

from __future__ import annotations

import numpy as np
import pytest

from braindecode_pars import plotting
from braindecode_pars.datasets.simulated import STAGES

ROWS = {"W": 0, "R": -1, "N1": -2, "N2": -3, "N3": -4}
TRUE = ["W", "N1", "N2", "N3", "R", "R"]
PREDICTED = ["W", "N2", "N2", "N3", "R", "N1"]


def steps(ax):
    return [patch.get_data().values for patch in ax.patches]


def test_stages_are_in_the_usual_order_for_any_numbering():
    by_name = plotting.hypnogram(TRUE, stage_names=STAGES)
    by_index = plotting.hypnogram([STAGES.index(stage) for stage in TRUE], stage_names=STAGES)
    for ax in (by_name, by_index):
        np.testing.assert_array_equal(steps(ax), [[ROWS[stage] for stage in TRUE]])
        assert [t.get_text() for t in ax.get_yticklabels()] == list(ROWS)
        np.testing.assert_array_equal(ax.get_yticks(), list(ROWS.values()))


def test_time_is_in_hours():
    ax = plotting.hypnogram(TRUE, window_seconds=600)
    np.testing.assert_allclose(ax.patches[0].get_data().edges, np.arange(7) / 6)
    assert ax.get_xlim() == (0, 1)


def test_short_recordings_are_in_minutes_or_seconds():
    axes = [plotting.hypnogram(TRUE, window_seconds=s) for s in (600, 60, 30)]
    assert [ax.get_xlabel() for ax in axes] == ["hours", "minutes", "seconds"]
    assert [ax.get_xlim()[1] for ax in axes] == [1, 6, 180]


def test_windows_on_which_both_differ_are_marked():
    ax = plotting.hypnogram(TRUE, PREDICTED, STAGES, window_seconds=3600)
    np.testing.assert_array_equal(
        steps(ax), [[ROWS[stage] for stage in night] for night in (TRUE, PREDICTED)]
    )
    spans = [path.vertices[:, 0] for path in ax.collections[0].get_paths()]
    assert [(span.min(), span.max()) for span in spans] == [(1, 2), (5, 6)]
    assert ax.get_title("left") == "agreement 67 % of 6 windows"
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["true", "predicted"]
    first, second = ax.patches
    assert first.get_linewidth() > 2 * second.get_linewidth()


@pytest.mark.parametrize("unknown", [-1, np.nan])
def test_unknown_stages_are_blank_and_do_not_count(unknown):
    ax = plotting.hypnogram(np.array([0, unknown, 3]), [0, 1, 2], STAGES)
    assert np.isnan(steps(ax)[0]).tolist() == [False, True, False]
    assert ax.get_title("left") == "agreement 50 % of 2 windows"
    blank = plotting.hypnogram(np.array(["W", None, "R"], dtype=object))
    assert np.isnan(steps(blank)[0]).tolist() == [False, True, False]


def labels(ax):
    return [t.get_text() for t in ax.get_yticklabels()]


def test_wake_is_at_the_top_in_every_spelling():
    assert labels(plotting.hypnogram(["N1", "movement", "W"])) == ["W", "N1", "movement"]
    given = ["N2", "REM", "N1", "Wake", "N3"]
    assert labels(plotting.hypnogram(given)) == ["Wake", "REM", "N1", "N2", "N3"]
    assert steps(plotting.hypnogram(given))[0].tolist() == [-3, -1, -2, 0, -4]


def test_numbers_of_rechtschaffen_and_kales_need_no_names():
    ax = plotting.hypnogram([0, 1, 2, 3, 4, 5, -1], [0, 1, 2, 3, 3, 5, 0])
    assert labels(ax) == ["W", "R", "S1", "S2", "S3", "S4", "differ"]
    np.testing.assert_array_equal(steps(ax)[0], [0, -2, -3, -4, -5, -1, np.nan])
    with_none = plotting.hypnogram([0, 2, None, 5])
    assert labels(with_none) == ["W", "R", "S2"]
    np.testing.assert_array_equal(steps(with_none)[0], [0, -2, np.nan, -1])


def test_names_by_label():
    names = {7: "Wake", 9: "REM"}
    ax = plotting.hypnogram([9, 7, -1], ["REM", "Wake", "Wake"], names)
    np.testing.assert_array_equal(steps(ax), [[-1, 0, np.nan], [-1, 0, 0]])


def test_other_names_need_an_order():
    with pytest.raises(ValueError, match=r"order=\['W', 'dozing'\]"):
        plotting.hypnogram(["W", "dozing"], stage_names=["W", "dozing"])
    assert labels(plotting.hypnogram(["W", "dozing"], order=["dozing", "W"])) == ["dozing", "W"]
    with pytest.raises(ValueError, match="'dozing'"):
        plotting.hypnogram(["W", "dozing"], stage_names=["W", "dozing"], order=["W"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (dict(true=[0, 1]), "stage_names"),
        (dict(true=[0, 5], stage_names=STAGES), "5; known are 'W'"),
        (dict(true=["W", "S1"], stage_names=STAGES), "'S1'; known are 'W'"),
        (dict(true=["W"], predicted=["W", "R"]), r"predicted has shape \(2,\)"),
        (dict(true=[["W"]]), r"\(1, 1\)"),
        (dict(true=[]), r"\(0,\)"),
    ],
)
def test_invalid_stages_raise(given, message):
    with pytest.raises(ValueError, match=message):
        plotting.hypnogram(**given)
