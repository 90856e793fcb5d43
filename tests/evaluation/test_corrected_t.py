"""The corrected resampled t-test: its formula, its level and its power."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from braindecode_pars.evaluation.paired_tests import corrected_t_test, detectable_difference


def test_both_follow_their_formulas():
    differences = np.random.default_rng(0).normal(0.1, 0.1, 12)
    mean = sum(differences) / 12
    variance = sum((d - mean) ** 2 for d in differences) / 11
    error = np.sqrt((1 / 12 + 1 / 5) * variance)
    p = corrected_t_test(differences, 5)
    assert p == pytest.approx(2 * stats.t(11).sf(abs(mean) / error))
    quantiles = stats.t(11).ppf(0.975) + stats.t(11).ppf(0.8)
    assert detectable_difference(differences, 5) == pytest.approx(quantiles * error)
    # It is stricter than the paired t-test, and approaches it with many training subjects.
    plain = stats.ttest_1samp(differences, 0).pvalue
    assert p > plain
    assert corrected_t_test(differences, 10**9) == pytest.approx(plain)


def shared_training(n: int, n_train: int, shift: float) -> list[np.ndarray]:
    """Differences with an error in common: a shared training set adds 1 / n_train of the variance.

    Returns 400 draws of the differences of ``n`` subjects, with variance 1.
    """
    rng = np.random.default_rng(0)
    common = rng.normal(0, np.sqrt(1 / n_train), 400)
    return [shift + error + rng.normal(0, 1, n) for error in common]


def test_the_level_is_kept_where_folds_share_training_subjects():
    draws = shared_training(n=10, n_train=9, shift=0.0)
    assert np.mean([corrected_t_test(draw, 9) < 0.05 for draw in draws]) < 0.08
    assert np.mean([stats.ttest_1samp(draw, 0).pvalue < 0.05 for draw in draws]) > 0.1


def test_a_difference_of_the_detectable_size_is_found_in_four_of_five_cases():
    n, n_train = 12, 11
    unit = np.resize([1.0, -1.0], n) * np.sqrt((n - 1) / n)  # standard deviation 1
    draws = shared_training(n, n_train, shift=detectable_difference(unit, n_train))
    assert 0.72 < np.mean([corrected_t_test(draw, n_train) < 0.05 for draw in draws]) < 0.88


def test_few_subjects_and_equal_differences():
    assert np.isnan(corrected_t_test(np.array([0.1]), 4))
    assert np.isnan(detectable_difference(np.array([]), 4))
    assert corrected_t_test(np.zeros(5), 4) == 1
    assert corrected_t_test(np.full(5, 0.1), 4) == 0
