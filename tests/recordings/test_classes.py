"""Classes of labels: their names, and the order of their targets."""

from __future__ import annotations

import pytest

from braindecode_pars.recordings.label_files import classes_of_labels, given_classes, targets_of


def test_whole_numbers_are_in_their_order_and_others_in_that_of_the_alphabet():
    assert list(classes_of_labels({"10", "9", "-1"}, None)) == ["-1", "9", "10"]
    assert list(classes_of_labels({"W", "N1", "10"}, None)) == ["10", "N1", "W"]
    assert list(classes_of_labels({"10.5", "2.5", "3"}, None)) == ["2.5", "3", "10.5"]


def test_the_same_number_in_two_spellings_has_one_order():
    """A set has no order of its own: other targets in another process."""
    orders = {tuple(classes_of_labels(given, None)) for given in (["1", "01"], ["01", "1"])}
    assert orders == {("01", "1")}


def test_classes_that_differ_in_their_case_only_are_named():
    with pytest.warns(UserWarning, match="'Rest' and 'rest'"):
        classes_of_labels({"Rest", "rest", "task"}, None)
    classes_of_labels({"Rest", "rest"}, {"Rest": "rest", "rest": "rest"})


def test_a_list_orders_the_classes_and_a_dict_names_them():
    assert classes_of_labels({"W", "N1", "?"}, ["W", "N1"]) == {"W": "W", "N1": "N1"}
    names = classes_of_labels({"3", "4", "5"}, {"5": "R", "3": "N3", "4": "N3"})
    assert targets_of(names) == {"R": 0, "N3": 1}
    assert classes_of_labels({"1"}, {1: "rest"}) == {"1": "rest"}


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (["W", "Wke"], "'Wke'.*'N1', 'W'"),
        ([], "'N1', 'W'"),
        ("W", r"\['W'\]"),
    ],
)
def test_classes_that_no_file_has(classes, message):
    with pytest.raises(ValueError, match=message):
        classes_of_labels({"W", "N1"}, classes)


def test_classes_of_annotations():
    names, targets = given_classes({"Sleep stage W": "W", "Sleep stage 3": "N3", "S4": "N3"})
    assert names == {"Sleep stage W": "W", "Sleep stage 3": "N3", "S4": "N3"}
    assert targets == {"W": 0, "N3": 1}
    assert given_classes({"W": 7}) == ({"W": "W"}, {"W": 7})
    assert given_classes({1: "left", 2: "right"})[0] == {"1": "left", "2": "right"}


@pytest.mark.parametrize("labels", [{}, {"W": 1, "N1": "N1"}, {"W": True}, {"W": 0.5}, {"W": None}])
def test_classes_of_annotations_are_all_texts_or_all_integers(labels):
    with pytest.raises(ValueError, match="class"):
        given_classes(labels)
