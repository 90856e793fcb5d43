"""Confusion matrices, and the names, order and colors of classes."""

import numpy as np
import pytest

from braindecode_pars import plotting
from braindecode_pars.plotting.style import (
    entries,
    in_figure_order,
    names_by_label,
)


def test_names_by_label_by_number_and_of_names_themselves():
    names = names_by_label({7: "left", 9: "right"})
    arguments = np.array([9, -1, 7, "right", None], dtype=object)
    assert entries(arguments, names) == ["right", None, "left", "right", None]
    assert entries([1.0, np.nan], names_by_label(["left", "right"])) == ["right", None]
    assert entries([-1, 1], names_by_label({-1: "left", 1: "right"})) == ["left", "right"]
    with pytest.raises(ValueError, match=r"2.* 'left', 'right', 0, 1"):
        entries([0, 2], names_by_label(["left", "right"]))


def test_only_sleep_stages_are_reordered():
    assert in_figure_order(["N1", "REM", "Wake"], None) == ["Wake", "REM", "N1"]
    assert in_figure_order(["R", "L"], None) == ["R", "L"]
    with pytest.raises(ValueError, match="'N1', 'N1', 'Wake'"):
        in_figure_order(["N1", "Wake"], ["N1", "N1", "Wake"])


def test_counts_and_percentages_of_each_true_class():
    ax = plotting.confusion_matrix(["a", "a", "a", "b"], ["a", "a", "b", "b"], order=["b", "a"])
    texts = [text.get_text() for text in ax.texts]
    assert texts == ["100 %\n1", "0 %\n0", "33 %\n1", "67 %\n2"]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["b", "a"]
    np.testing.assert_allclose(ax.images[0].get_array(), [[100, 0], [100 / 3, 200 / 3]])
    with pytest.raises(ValueError, match=r"\[2, 1\]"):
        plotting.confusion_matrix([0, 1], [0])
    with pytest.raises(ValueError, match="No window"):
        plotting.confusion_matrix([-1], [0])
    assert ax.get_title() == "accuracy 0.75 (4 windows)"


def test_names_in_the_order_of_a_hypnogram():
    true, predicted = [0, 0, 0, 1, 1, 4, -1], [0, 1, 0, 1, 1, 0, 0]
    ax = plotting.confusion_matrix(true, predicted, ["W", "N1", "N2", "N3", "R"])
    for ticks in (ax.get_xticklabels(), ax.get_yticklabels()):
        assert [t.get_text() for t in ticks] == ["W", "R", "N1", "N2", "N3"]
    percent = ax.images[0].get_array()
    assert percent.mask.all(axis=1).tolist() == [False, False, False, True, True]
    assert percent[1, 0] == 100  # the window of R is taken for W
    assert "(6 windows)" in ax.get_title()


@pytest.mark.parametrize("names", [None, {-1: "left", 1: "right"}])
def test_minus_one_may_be_a_class(names):
    ax = plotting.confusion_matrix([-1, 1, -1, None], [-1, 1, 1, -1], names)
    np.testing.assert_allclose(ax.images[0].get_array(), [[50, 50], [0, 100]])
    assert ax.get_title() == "accuracy 0.67 (3 windows)"
    unscored = plotting.confusion_matrix([0, 1, 1], [0, 1, -1], ["left", "right"])
    assert unscored.get_title() == "accuracy 1.00 (2 windows)"
