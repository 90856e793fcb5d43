"""Wilcoxon's test and Holm's correction against slow reference implementations; descriptions."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.stats import rankdata

from braindecode_pars.evaluation import describe_differences, paired_tests
from braindecode_pars.evaluation.paired_tests import corrected_t_test, detectable_difference, holm

RNG = np.random.default_rng(0)


def table(**values) -> pd.DataFrame:
    """Table of scores from values of shape (n_subjects,) or (n_seeds, n_subjects) per method."""
    rows = [
        dict(method=method, subject=subject, seed=seed, value=value)
        for method, of_method in values.items()
        for seed, of_seed in enumerate(np.atleast_2d(of_method))
        for subject, value in enumerate(of_seed)
    ]
    fixed = dict(protocol="compare", dataset="d", n_train_subjects=5, metric="kappa")
    return pd.DataFrame(rows).assign(**fixed)


def reference_wilcoxon(differences):
    """p-value from the rank sums of all 2^n combinations of signs."""
    differences = np.asarray([d for d in differences if d != 0])
    ranks = rankdata(np.abs(differences))
    centre = ranks.sum() / 2
    observed = abs(ranks[differences > 0].sum() - centre)
    sums = [
        sum(r for r, s in zip(ranks, signs, strict=True) if s)
        for signs in product([0, 1], repeat=len(ranks))
    ]
    return np.mean([abs(total - centre) >= observed - 1e-9 for total in sums])


def reference_holm(p_values):
    """Largest p-value of the steps that must be rejected before a hypothesis is rejected."""
    m = len(p_values)
    corrected = []
    for i in range(m):
        smaller = [p for p in p_values if p <= p_values[i]]
        steps = [min(1, p * (m - sum(q < p for q in p_values))) for p in smaller]
        corrected.append(max(steps))
    return corrected


@pytest.mark.parametrize("n", [1, 3, 6, 9])
@pytest.mark.parametrize("decimals", [12, 1])
def test_wilcoxon_is_exact(n, decimals):
    """Scores rounded to tenths have ties and zero differences."""
    a, b = RNG.normal(0.3, 0.3, n).round(decimals), RNG.normal(0.1, 0.3, n).round(decimals)
    (row,) = paired_tests(table(A=a, B=b)).to_dict("records")
    differences = (a - b).round(9)
    assert row["p"] == pytest.approx(reference_wilcoxon(differences))
    assert row["mean_difference"] == pytest.approx(differences.mean())
    assert row["wins"] == (differences > 0).sum()
    assert row["n_subjects"] == n
    if n > 1:
        assert row["sd_difference"] == pytest.approx(differences.std(ddof=1))


@pytest.mark.parametrize("n", [2, 5, 20])
def test_the_interval_ends_where_the_corrected_test_is_at_five_percent(n):
    differences = RNG.normal(0.1, 0.2, n)
    tests = paired_tests(table(A=differences, B=np.zeros(n)))
    assert isinstance(tests, pd.DataFrame)
    n_train = int(table(A=differences)["n_train_subjects"].min())
    for end in (tests["ci_low"].item(), tests["ci_high"].item()):
        assert corrected_t_test(differences - end, n_train) == pytest.approx(0.05)
    middle = (tests["ci_low"].item() + tests["ci_high"].item()) / 2
    assert middle == pytest.approx(differences.mean())
    of_one = paired_tests(table(A=[0.5], B=[0.4]))
    assert of_one[["ci_low", "ci_high"]].isna().all(axis=None)


def test_both_tests_must_be_significant():
    """Ten small differences of one sign: significant for Wilcoxon's test alone."""
    differences = np.array([0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.007, 0.008, 0.3, 0.4])
    tests = paired_tests(table(A=differences, B=np.zeros(10)))
    assert tests["p"].item() < 0.01
    assert tests["p_corrected"].item() > 0.05
    assert "Not established in kappa: A and B (+0.074, p = " in describe_differences(tests)


@pytest.mark.parametrize("m", [1, 2, 5, 10])
def test_holm_matches_its_definition(m):
    p_values = RNG.random(m) ** 3
    assert holm(p_values) == pytest.approx(reference_holm(p_values.tolist()))
    with_gap = np.insert(p_values, 0, np.nan)
    assert np.isnan(holm(with_gap)[0])
    assert holm(with_gap)[1:] == pytest.approx(reference_holm(p_values.tolist()))


def test_one_method_is_tested_against_the_others():
    a, b, c = RNG.random((3, 8))
    scores = table(A=a, B=b, C=c)
    tests = paired_tests(scores, against="B")
    assert tests[["method_a", "method_b"]].to_numpy().tolist() == [["A", "B"], ["C", "B"]]
    p_values = [reference_wilcoxon((x - b).round(9)) for x in (a, c)]
    assert tests["p"].tolist() == pytest.approx(p_values)
    assert tests["p_holm"].tolist() == pytest.approx(reference_holm(p_values))
    assert "p-values after Holm's correction for 2 pairs" in describe_differences(tests)
    with pytest.raises(ValueError, match=r"'D'.* A, B, C"):
        paired_tests(scores, against="D")


def test_all_pairs_are_tested_and_corrected_together():
    a, b, c = RNG.random((3, 8))
    tests = paired_tests(table(A=a, B=b, C=c))
    pairs = tests[["method_a", "method_b"]].to_numpy().tolist()
    assert pairs == [["A", "B"], ["A", "C"], ["B", "C"]]
    assert tests["p_holm"].tolist() == pytest.approx(holm(tests["p"]).tolist())
    assert " ".join(tests) == (
        "method_a method_b n_subjects mean_difference sd_difference ci_low ci_high wins p p_holm "
        "p_corrected p_corrected_holm detectable n_dropped"
    )


def test_seeds_are_averaged_before_the_test():
    seeds = RNG.random((3, 6))
    b = RNG.random(6)
    with_seeds = paired_tests(table(A=seeds, B=b))
    averaged = paired_tests(table(A=seeds.mean(axis=0), B=b))
    pd.testing.assert_frame_equal(with_seeds, averaged)


def test_pooled_rows_are_not_subjects():
    scores = table(A=[0.1, 0.2], B=[0.3, 0.5])
    pooled = scores.iloc[[0, 2]].assign(subject="all")
    pd.testing.assert_frame_equal(paired_tests(pd.concat([scores, pooled])), paired_tests(scores))


def test_undefined_scores_are_dropped_and_counted():
    tests = paired_tests(table(A=[0.5, np.nan, 0.7, 0.9], B=[0.1, 0.2, np.nan, 0.3]))
    assert tests[["n_subjects", "n_dropped", "wins"]].to_numpy().tolist() == [[2, 2, 2]]
    assert "Up to 2 subjects per pair have no defined score" in describe_differences(tests)
    without_subjects = paired_tests(table(A=[np.nan], B=[0.1]))
    assert np.isnan(without_subjects["p"].item())
    assert "no p" in describe_differences(without_subjects)


def test_equal_scores_have_a_p_value_of_one():
    (row,) = paired_tests(table(A=[0.5, 0.7], B=[0.5, 0.7])).to_dict("records")
    assert (row["p"], row["wins"]) == (1, 0)
    # Rounding errors of the mean over seeds are not differences.
    seeds = np.array([[0.1, 0.3], [0.2, 0.1], [0.3, 0.2]])
    (row,) = paired_tests(table(A=seeds, B=seeds[::-1])).to_dict("records")
    assert row["p"] == 1


def test_significant_and_other_differences_are_described():
    base = np.linspace(0.2, 0.6, 10)
    jitter = np.tile([0.01, -0.011], 5) * np.arange(1, 11)
    tests = paired_tests(table(weak=base, twin=base + jitter, strong=base + 0.2))
    description = describe_differences(tests)
    assert "strong is better than weak in kappa by 0.200 ± 0.000 " in description
    assert "(weak ahead in 0 of 10 subjects, p = 0.0059 of Wilcoxon's and 0 of " in description
    assert "Not established in kappa: weak and twin (" in description
    assert "p-values after Holm's correction for 3 pairs." in description
    assert "could have been significant" not in description


@pytest.mark.parametrize(
    ("n", "methods", "message"),
    [
        (
            5,
            "AB",
            r"With 5 subjects no difference could have been significant: the smallest "
            r"possible p is 0\.062\.",
        ),
        (1, "AB", r"With 1 subject no difference .* is 1\."),
        (7, "ABCD", r"With 7 subjects no .* is 0\.016, or 0\.094 after the correction\."),
        (6, "AB", None),
    ],
)
def test_too_few_subjects_are_reported(n, methods, message):
    values = {m: np.linspace(0.1, 0.2, n) * (i + 1) for i, m in enumerate(methods)}
    tests = paired_tests(table(**values))
    description = describe_differences(tests)
    if message is None:
        assert tests["p"].item() == 2 / 2**6
        assert "is better than" in description
    else:
        assert pytest.approx(2 / 2**n) == tests["p"].min()
        assert "is better than" not in description
        assert re.search(message, description)


def test_invalid_scores_raise():
    scores = table(A=[0.1, 0.2], B=[0.3, 0.5])
    with pytest.raises(ValueError, match=r"'f1'.* kappa"):
        paired_tests(scores, "f1")
    with pytest.raises(ValueError, match=r"two methods.* A"):
        paired_tests(scores[scores["method"] == "A"])
    with pytest.raises(ValueError, match=r"\(5, 9\)"):
        paired_tests(pd.concat([scores, scores.assign(n_train_subjects=9)]))
    with pytest.raises(ValueError, match=r"level .* 5"):
        describe_differences(paired_tests(scores), level=5)


def test_pairs_without_subjects_are_reported():
    tests = paired_tests(table(A=[np.nan, np.nan], B=[np.nan, 0.3]))
    description = describe_differences(tests)
    assert "no pair could be tested" in description
    assert "smallest possible p" not in description


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
