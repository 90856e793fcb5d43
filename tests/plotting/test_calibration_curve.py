"""Calibration curves against a plain computation."""

from __future__ import annotations

import numpy as np
import pytest

from braindecode_pars import plotting


def plain(probability, is_right, n_bins):
    """Mean probability, share and number of each bin, one window after another."""
    bins = [[] for _ in range(n_bins)]
    for p, right in zip(probability, is_right, strict=True):
        bins[min(int(p * n_bins), n_bins - 1)].append((p, right))
    return [(*np.mean(one, axis=0), len(one)) for one in bins if one]


def points(ax):
    return [line.get_xydata() for line in ax.lines[1:]]


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet([0.6] * 3, size=300)
    return rng.integers(0, 3, 300), probabilities


def test_most_probable_class(data):
    codes, probabilities = data
    ax = plotting.calibration_curve(codes, probabilities, [0, 1, 2], n_bins=7)
    expected = plain(probabilities.max(axis=1), probabilities.argmax(axis=1) == codes, 7)
    np.testing.assert_allclose(points(ax)[0], [row[:2] for row in expected])
    error = sum(n * abs(p - share) for p, share, n in expected) / 300
    assert ax.get_legend().get_texts()[0].get_text() == f"most probable class, error {error:.2f}"


def test_each_class_by_name_in_any_labels(data):
    codes, probabilities = data
    labels = np.array(["x", "y", "z"])
    names = dict(zip(labels, ["rest", "left", "right"], strict=True))
    given = (labels[codes], probabilities, labels, names)
    ax = plotting.calibration_curve(*given, each_class=True)
    for k, found in enumerate(points(ax)):
        expected = plain(probabilities[:, k], codes == k, 10)
        np.testing.assert_allclose(found, [row[:2] for row in expected])
    texts = [text.get_text().split(",")[0] for text in ax.get_legend().get_texts()]
    assert texts == ["rest", "left", "right"]


def test_the_legend_of_several_classes_is_beside_the_curves(data):
    names = ["no movement", "imagined movement of the left fist", "imagined movement of both feet"]
    ax = plotting.calibration_curve(*data, [0, 1, 2], names, each_class=True)
    ax.figure.draw_without_rendering()
    legend = ax.get_legend().get_window_extent()
    assert ax.bbox.x1 <= legend.x0 < legend.x1 <= ax.figure.bbox.x1


def test_unknown_windows_do_not_count(data):
    codes, probabilities = data
    codes[:100], probabilities[100:150] = -1, np.nan
    ax = plotting.calibration_curve(codes, probabilities, [0, 1, 2])
    assert ax.get_title("left") == "150 windows"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (dict(probabilities=np.ones((300, 2)) / 2), r"\(300, 3\)"),
        (dict(classes=[0, 1, 5]), "2; known are 0, 1, 5"),
        (dict(probabilities=np.ones((300, 3))), "decision_function"),
        (dict(n_bins=0), "n_bins"),
        (dict(true=[-1] * 300), "No window"),
    ],
)
def test_bad_input(data, given, message):
    arguments = dict(true=data[0], probabilities=data[1], classes=[0, 1, 2])
    with pytest.raises(ValueError, match=message):
        plotting.calibration_curve(**{**arguments, **given})
