"""Scores of predicted numbers: over windows, over subjects, and within them."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import r2_score

from braindecode_pars.evaluation import regression_scores


def scores_of(true, predicted):
    return dict(
        r2=r2_score(true, predicted),
        spearman=spearmanr(true, predicted)[0],
        mae=np.mean(np.abs(np.subtract(true, predicted))),
    )


@pytest.fixture
def numbers():
    """Subjects with different numbers of windows, ties among the targets."""
    rng = np.random.default_rng(0)
    subjects = np.repeat(["b", "a", "d", "c"], [3, 9, 5, 7])
    true = rng.integers(0, 9, size=24).astype(float)
    return true, true + rng.normal(size=24) * 3, subjects


def test_scores_are_those_of_the_formulas(numbers):
    true, predicted, subjects = numbers
    result = regression_scores(true, predicted, subjects)
    masks = [subjects == subject for subject in "abcd"]
    means = [[values[mask].mean() for mask in masks] for values in (true, predicted)]
    within = [scores_of(true[mask], predicted[mask])["spearman"] for mask in masks]
    expected = scores_of(true, predicted)
    expected |= {f"{name}_subjects": value for name, value in scores_of(*means).items()}
    assert result == pytest.approx(expected | {"spearman_within": np.mean(within)})
    assert regression_scores(true, predicted[:, None], subjects) == result


def test_rows_of_series_are_matched_by_their_place(numbers):
    true, predicted, subjects = numbers
    index = pd.Index(subjects, name="subject")
    series = pd.Series(true, index), pd.Series(predicted, range(23, -1, -1)), index
    assert regression_scores(*series) == regression_scores(true, predicted, subjects)


def test_an_age_has_no_rank_within_a_subject(numbers):
    _, predicted, subjects = numbers
    age = np.array([{"a": 20, "b": 25, "c": 40, "d": 33}[subject] for subject in subjects])
    result = regression_scores(age, predicted, subjects)
    assert [name for name, value in result.items() if np.isnan(value)] == ["spearman_within"]
    age[subjects != "a"] = 33  # the windows of one subject vary
    age[:3] = [30, 32, 31]
    first = scores_of(age[:3], predicted[:3])["spearman"]
    assert regression_scores(age, predicted, subjects)["spearman_within"] == pytest.approx(first)


def test_ties_of_ages_stay_ties():
    """The sum of equal numbers, divided by how many there are, differs by rounding."""
    ages = np.array([23.7, 23.7, 41.3, 41.3, 65.1, 65.1])
    n, guess = [3, 7, 5, 11, 13, 6], np.arange(6) * 10.0
    names = np.repeat(list("abcdef"), n)
    result = regression_scores(np.repeat(ages, n), np.repeat(guess, n), names)
    assert result["spearman_subjects"] == pytest.approx(spearmanr(ages, guess)[0], abs=1e-12)
    assert result["r2_subjects"] == pytest.approx(r2_score(ages, guess), abs=1e-12)
    # So do ties of means whose numbers differ, and of predictions.
    values = [[0.1, 0.2, 0.3], [0.3, 0.1, 0.2], [0.7, 0.8, 0.9]]
    again = regression_scores(np.ravel(values), np.repeat([1.1, 2.3, 1.1], 3), np.arange(9) // 3)
    assert again["spearman_subjects"] == pytest.approx(spearmanr([1, 1, 2], [1, 2, 1])[0])


@pytest.mark.parametrize("age", [23.7, 1e6 + 0.1])
def test_one_age_of_all_has_no_r2(age):
    names = np.repeat(list("abc"), [3, 7, 11])
    true = np.full(21, age)
    true[::2] = np.nextafter(age, 0)  # a rounding error is no difference
    predicted = np.random.default_rng(0).normal(size=21)
    for targets in (true, np.full(21, age)):
        result = regression_scores(targets, predicted, names)
        undefined = {name for name, value in result.items() if np.isnan(value)}
        assert undefined == {name for name in result if not name.startswith("mae")}


NUMBERS, NAMES = np.arange(6.0), list("aabbcc")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.ones((6, 2)), r"1d array.*\(6, 2\)"),
        (np.arange(6).astype("timedelta64[ms]"), "y_pred .*durations to seconds"),
        (np.ones(6) * 1j, "Complex"),
        (np.ones(5), "inconsistent numbers"),
        ([0, 1, 2, 3, 4, np.nan], "y_pred contains NaN"),
    ],
)
def test_invalid_numbers_raise(wrong, message):
    with pytest.raises(ValueError, match=message):
        regression_scores(NUMBERS, wrong, NAMES)
    with pytest.raises(ValueError, match=message.replace("y_pred", "y_true")):
        regression_scores(wrong, NUMBERS, NAMES)
    with pytest.raises(ValueError, match=r"1 of 6 .* subjects"):
        regression_scores(NUMBERS, NUMBERS, [None, *NAMES[1:]])
