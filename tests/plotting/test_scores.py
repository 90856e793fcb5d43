"""Figures of scores: what they have in common, curves, dots of subjects, and lines of settings."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from braindecode_pars import plotting
from braindecode_pars._common.names import METRICS
from braindecode_pars.evaluation import mean_interval
from braindecode_pars.evaluation.score_figures import summarized

FIGURES = {
    "label_efficiency": plotting.label_efficiency,
    "subject_dots": plotting.subject_dots,
    "ablation_lines": lambda scores, metric="kappa": plotting.ablation_lines(
        scores, x="n_train_subjects", lines="method", metric=metric
    ),
}


@pytest.fixture
def make_scores():
    """Make a tidy table of all combinations of settings, with values from ``value(row)``."""
    defaults = dict(
        protocol="synthetic",
        dataset="one",
        method=["PARS", "from scratch"],
        subject="all",
        n_train_subjects=10,
        seed=[0, 1, 2],
        metric="kappa",
    )

    def make(value, **varied):
        settings = {**defaults, **varied}
        choices = [each if isinstance(each, list) else [each] for each in settings.values()]
        rows = [dict(zip(settings, row, strict=True)) for row in product(*choices)]
        return pd.DataFrame([{**row, "value": value(row)} for row in rows])

    return make


@pytest.fixture(params=FIGURES)
def figure(request):
    return FIGURES[request.param]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(value=-1.0), "PARS, subject S1"),  # another run of one fold
        (dict(dataset="day"), r"dataset \(one, day\)"),
        (dict(control="slow"), r"control \(none, slow\)"),
        (dict(n_windows=4), r"n_windows \(0, 4\)"),
    ],
)
def test_values_that_a_figure_would_average_are_refused(figure, change, message, make_scores):
    scores = make_scores(lambda row: 0.5, subject=["S1", "S2"])
    scores = scores.assign(control="none", n_windows=0)
    figure(pd.concat([scores, scores]))  # the same rows
    with pytest.raises(ValueError, match=message):
        figure(pd.concat([scores, scores.iloc[[0]].assign(**change)]))
    with pytest.raises(ValueError, match=r"method.*protocol"):
        figure(scores.drop(columns="method"))


def test_bands_of_subjects_are_intervals_of_the_tests_and_those_of_seeds_deviations(make_scores):
    rng = np.random.default_rng(0)
    subjects = ["S1", "S2", "S3", "S4"]
    scores = make_scores(lambda row: rng.normal(), subject=subjects, protocol="label_efficiency")
    summary, _ = summarized(scores, ["method"])
    expected = mean_interval(scores)
    for name in ("mean", "ci_low", "ci_high"):
        np.testing.assert_array_equal(summary[name], expected[name])
    # Of pooled rows, those with a defined value
    values = pd.DataFrame(dict(method="PARS", subject="all", seed=range(3), value=[0.4, 0.6, None]))
    [row] = summarized(values, ["method"])[0].itertuples()
    deviation = np.std([0.4, 0.6], ddof=1)
    assert (row.ci_low, row.ci_high) == pytest.approx((0.5 - deviation, 0.5 + deviation))


def test_subjects_come_before_pooled_rows(make_scores):
    values = {"S1": 0.2, "S2": 0.6, "S3": 0.4, "all": 0.9}
    scores = make_scores(lambda row: values[row["subject"]], subject=list(values))
    summary, unit = summarized(scores, ["method"])
    np.testing.assert_allclose(summary["mean"], 0.4)
    assert unit == "mean and 95 % CI over 3 subjects\nand 3 draws"
    # If one method has pooled rows only, both use them, or they cannot be compared.
    is_pooled, is_first = scores["subject"] == "all", scores["method"] == "PARS"
    summary, unit = summarized(scores[is_pooled | is_first], ["method"])
    assert (set(summary["mean"]), unit) == ({0.9}, "mean ± SD over 3 seeds")
    with pytest.raises(ValueError, match="cannot be compared"):
        summarized(scores[is_pooled ^ is_first], ["method"])


@pytest.mark.parametrize(
    ("name", "metric", "n_classes", "expected_level"),
    [
        ("label_efficiency", "kappa", 5, 0),
        ("label_efficiency", "balanced_accuracy", None, None),
        ("label_efficiency", "f1", 5, None),
        *((name, "balanced_accuracy", 5, 0.2) for name in FIGURES),
    ],
)
def test_figures_draw_the_known_chance_level(name, metric, n_classes, expected_level, make_scores):
    names = ["PARS", "MAE"]
    scores = make_scores(lambda row: 0.6, method=names, metric=metric, subject=["1", "2"])
    if n_classes:
        scores = scores.assign(chance=METRICS[metric].chance_level(n_classes))
    ax = FIGURES[name](scores, metric)
    levels = [line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == ":"]
    assert levels == ([] if expected_level is None else [expected_level])
    assert [text.get_text() for text in ax.figure.legends[0].get_texts()] == names


# Curves over numbers of subjects ------------------------------------------------------------------


SIZES = [10, 50, 657]


def by_size(row):
    slope = {"PARS": 0.1, "from scratch": 0.05}[row["method"]]
    return slope * np.log(row["n_train_subjects"]) + 0.02 * row["seed"]


def test_curve_is_the_mean_and_band_the_sd_over_seeds(make_scores):
    ax = plotting.label_efficiency(make_scores(by_size, n_train_subjects=SIZES[::-1]))
    for line, band, slope in zip(ax.lines[:2], ax.collections, (0.1, 0.05), strict=True):
        mean = slope * np.log(SIZES) + 0.02
        np.testing.assert_array_equal(line.get_xdata(), SIZES)
        np.testing.assert_allclose(line.get_ydata(), mean)
        corners = band.get_paths()[0].vertices
        for x, y in zip(SIZES, mean, strict=True):
            at = corners[np.isclose(corners[:, 0], x), 1]
            np.testing.assert_allclose([at.min(), at.max()], [y - 0.02, y + 0.02])
    assert "mean ± SD over 3 seeds" in ax.get_ylabel()


# Dots of subjects ---------------------------------------------------------------------------------


VALUES = {
    "PARS": {"S1": 0.5, "S2": 0.7, "S3": np.nan},
    "from scratch": {"S1": 0.3, "S2": 0.8, "S3": 0.1},
}


@pytest.fixture
def of_three(make_scores):
    return make_scores(
        lambda row: (
            VALUES[row["method"]][row["subject"]]
            + 0.01 * row["n_train_subjects"]
            + 0.1 * (row["seed"] - 1)
        ),
        subject=["S1", "S2", "S3"],
        n_train_subjects=[8, 2],
    )


def dots(ax):
    return [line.get_ydata() for line in ax.lines if line.get_marker() != "None"]


def test_dots_are_means_over_seeds_lines_join_subjects_and_bars_are_means(of_three):
    """The mean is over the subjects with a value."""
    ax = plotting.subject_dots(of_three)
    drawn = [np.array([*VALUES[name].values()]) + 0.01 * n for n in (2, 8) for name in VALUES]
    np.testing.assert_allclose(dots(ax), drawn)
    lines = [line.get_ydata() for line in ax.lines if line.get_marker() == "None"]
    np.testing.assert_allclose(lines[:3], np.array([[0.5, 0.3], [0.7, 0.8], [np.nan, 0.1]]) + 0.02)
    means = [bars.get_segments()[0][0, 1] for bars in ax.collections]
    np.testing.assert_allclose(means, [0.62, 0.42, 0.68, 0.48])
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["2", "8"]


# Lines of settings --------------------------------------------------------------------------------


def test_lines_are_means_and_bands_are_standard_deviations(make_scores):
    of_decoders = make_scores(
        lambda row: row["ratio"] + 0.01 * row["seed"] + 0.1 * (row["decoder"] == "mlp"),
        method="PARS",
        decoder=["cross_attention", "mlp"],
        ratio=[0.4, 0.2, 0.8],
    )
    ax = plotting.ablation_lines(of_decoders, x="ratio", lines="decoder")
    first, second, _ = ax.get_lines()  # and the chance level
    assert [line.get_label() for line in (first, second)] == ["cross_attention", "mlp"]
    np.testing.assert_allclose(first.get_xdata(), [0.2, 0.4, 0.8])
    np.testing.assert_allclose(first.get_ydata(), [0.21, 0.41, 0.81])
    np.testing.assert_allclose(second.get_ydata(), [0.31, 0.51, 0.91])
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0.2", "0.4", "0.8"]
    # Lines of numbers are sorted.
    numbers = of_decoders.assign(n=of_decoders["decoder"].map({"mlp": 20, "cross_attention": 40}))
    ax = plotting.ablation_lines(numbers, x="ratio", lines="n")
    assert [line.get_label() for line in ax.get_lines()][:2] == ["20", "40"]
    scores = of_decoders.assign(sampling=None)
    for lines in ("min_gap", "sampling"):
        with pytest.raises(ValueError, match=lines):
            plotting.ablation_lines(scores, x="decoder", lines=lines)
