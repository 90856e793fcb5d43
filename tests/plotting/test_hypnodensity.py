"""Probabilities over time with the classes above."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from braindecode_pars import plotting

NAMES = ["N1", "N2", "REM", "Wake"]
P = np.array([[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1], [0.0, 0.9, 0.1, 0.0]])


def frame(values=P, names=NAMES, onset=(0, 30, 60)):
    columns = {f"probability_{name}": values[:, k] for k, name in enumerate(names)}
    return pd.DataFrame(dict(onset=onset, duration=30.0, label="", **columns, entropy=0.0))


def areas(ax):
    """Lower and upper end of the area of each class in each piece of time."""
    found = {}
    for patch in ax.patches:
        upper, _, lower = patch.get_data()
        found[patch.get_label()] = np.array([lower, upper])
    return found


def labels(ax):
    return [t.get_text() for t in ax.get_yticklabels()]


@pytest.mark.parametrize("given", [(frame(),), (P, NAMES), (P, dict(enumerate(NAMES)))])
def test_areas_are_stacked_with_wake_on_top(given):
    top, bottom = plotting.hypnodensity(*given)
    assert labels(top) == ["Wake", "REM", "N1", "N2"]
    assert top.patches[0].get_data().values.tolist() == [0, -2, -3]
    found = areas(bottom)
    assert list(found) == ["Wake", "REM", "N1", "N2"]
    for name, (lower, upper) in found.items():
        np.testing.assert_allclose(upper - lower, P[:, NAMES.index(name)])
    np.testing.assert_allclose(found["Wake"][1], 1)
    np.testing.assert_allclose(found["N2"][0], 0)
    np.testing.assert_allclose(found["REM"][0], found["N1"][1])
    assert bottom.get_xlim() == top.get_xlim() == (0, 90)
    assert (top.get_xlabel(), bottom.get_xlabel()) == ("", "seconds")


def test_other_classes_keep_their_order_and_their_time():
    values = np.array([[0.2, 0.8], [np.nan, np.nan], [0.6, 0.4], [0.5, 0.5]])
    given = frame(values, ["rest", "arithmetic"], onset=[60, 90, 120, 240])
    top, bottom = plotting.hypnodensity(given)
    assert labels(top) == ["rest", "arithmetic"]
    rows, edges, _ = top.patches[0].get_data()
    np.testing.assert_array_equal(rows, [-1, np.nan, 0, np.nan, 0])  # blank: NaN, and no row
    np.testing.assert_allclose(60 * edges, [60, 90, 120, 150, 240, 270])
    assert bottom.get_xlabel() == "minutes"
    assert np.isnan(areas(bottom)["rest"]).any(axis=0).tolist() == [False, True, False, True, False]


def test_true_classes_by_name_or_label():
    for true in (["Wake", "N2", None], [3, 1, -1]):
        top, _ = plotting.hypnodensity(P, NAMES, true=true)
        assert top.get_title("left") == "agreement 50 % of 2 windows"
        np.testing.assert_array_equal(top.patches[0].get_data().values, [0, -3, np.nan])


def test_names_by_label_are_in_any_order():
    names = {2: "REM", 3: "Wake", 0: "N1", 1: "N2"}
    for given in (P, frame()):
        top, bottom = plotting.hypnodensity(given, names, true=[3, 0, 1])
        np.testing.assert_array_equal(top.patches[1].get_data().values, [0, -2, -3])
        assert top.get_title("left") == "agreement 100 % of 3 windows"
        lower, upper = areas(bottom)["Wake"]
        np.testing.assert_allclose(upper - lower, P[:, 3])


def test_a_number_is_a_class_and_not_a_position():
    numbered = frame(names=["1", "2", "3", "4"])
    for true in ([4, 1, 2], [4.0, 1.0, np.nan]):
        top, _ = plotting.hypnodensity(numbered, true=true)
        assert top.get_title("left").startswith("agreement 100 %")
    with pytest.raises(ValueError, match="0, 1, 3"):
        plotting.hypnodensity(frame(), true=[3, 0, 1])


def test_order():
    top, bottom = plotting.hypnodensity(frame(), order=NAMES)
    assert labels(top) == list(areas(bottom)) == NAMES
    _, bottom = plotting.hypnodensity(frame(), order=["Wake", "N3", *NAMES[:3]])
    lower, upper = areas(bottom)["N3"]  # no column: never predicted
    np.testing.assert_array_equal(lower, upper)
    top, _ = plotting.hypnodensity(frame(), true=["Wake", "N3", "N2"], order=["N3", *NAMES])
    assert top.get_title("left") == "agreement 67 % of 3 windows"


def test_names_of_many_classes_do_not_overlap():
    values = np.full((3, 12), 1 / 12)
    top, _ = plotting.hypnodensity(values, [f"class number {i}" for i in range(12)], true=[0, 5, 9])
    top.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in top.get_yticklabels()]
    assert all(above.y0 > below.y1 for above, below in pairwise(boxes))


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (dict(probabilities=P), TypeError, "class_names"),
        (dict(probabilities=P, class_names=["a", "b"]), ValueError, "a, b; .* 4 columns"),
        (dict(probabilities=P, class_names=["a", "a", "b", "c"]), ValueError, "a, a, b, c"),
        (dict(probabilities=P[0], class_names=NAMES), ValueError, r"\(4,\)"),
        (dict(probabilities=P[:0], class_names=NAMES), ValueError, r"\(0, 4\)"),
        (dict(probabilities=5 * P, class_names=NAMES), ValueError, "decision_function"),
        (dict(probabilities=pd.DataFrame(P)), ValueError, "onset"),
        (dict(probabilities=frame()[["onset", "duration", "label"]]), ValueError, "probability_"),
        (dict(probabilities=frame(onset=[0, 20, 60])), ValueError, "overlap"),
        (dict(probabilities=frame(), class_names=list("WRNM")), ValueError, "M, N, R, W"),
        (dict(probabilities=frame(), order=["Wake"]), ValueError, "'Wake'"),
        (dict(probabilities=frame(), true=["Wake"]), ValueError, "1 true classes, 3 windows"),
        (dict(probabilities=frame(), true=["Wake", "N9", "N2"]), ValueError, "'N9'"),
    ],
)
def test_bad_input(given, error, message):
    with pytest.raises(error, match=message):
        plotting.hypnodensity(**given)
