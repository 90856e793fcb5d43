"""Paired tests: kind of test, Holm's correction, descriptions, and power of a design."""

import math
import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from braindecode_pars.evaluation import describe_differences, mean_interval, paired_tests, power
from braindecode_pars.evaluation.paired_tests import holm
from braindecode_pars.evaluation.random_effects import corrected_mean, crossed_mean

RNG = np.random.default_rng(0)


def table(protocol: str = "label_efficiency", **values) -> pd.DataFrame:
    """Table of scores from values of shape (n_subjects,) or (n_seeds, n_subjects) per method.

    Values of shape (n_pretrainings, n_seeds, n_subjects) have a column ``pretraining_seed``.
    """
    rows = [
        dict(method=method, pretraining_seed=pretraining, subject=subject, seed=seed, value=value)
        for method, of_method in values.items()
        for pretraining, of_pretraining in enumerate(np.array(of_method, ndmin=3))
        for seed, of_seed in enumerate(of_pretraining)
        for subject, value in enumerate(of_seed)
    ]
    fixed = dict(protocol=protocol, dataset="d", n_train_subjects=5, metric="kappa")
    scores = pd.DataFrame(rows).assign(**fixed)
    several = scores.groupby("method")["pretraining_seed"].transform("nunique") > 1
    scores["pretraining_seed"] = scores["pretraining_seed"].where(several)
    return scores if several.any() else scores.drop(columns="pretraining_seed")


def test_draws_and_subjects_are_crossed():
    a, b = RNG.normal(0.3, 0.1, (4, 6)), RNG.normal(0.2, 0.1, (4, 6))
    (row,) = paired_tests(table(A=a, B=b)).to_dict("records")
    differences = (a - b).T
    expected = crossed_mean(differences)
    means = differences.mean(axis=1)
    counts = dict(n_train_subjects=5, n_subjects=6, n_draws=4, n_dropped=0, wins=(means > 0).sum())
    numbers = dict(mean_difference=differences.mean(), sd_difference=means.std(ddof=1))
    numbers |= dict(p=expected.p, p_holm=expected.p, detectable=expected.detectable())
    numbers |= {name: getattr(expected, name) for name in ("ci_low", "ci_high", "df")}
    names = dict(method_a="A", method_b="B", test="two-way", metric="kappa")
    assert row == names | counts | {name: pytest.approx(n) for name, n in numbers.items()}


@pytest.mark.parametrize(
    ("shape", "protocol", "test"),
    [
        ((4, 6), "label_efficiency", "two-way"),
        ((3, 4, 6), "label_efficiency", "three-way"),
        ((4, 6), "compare", "corrected"),
        ((1, 6), "within_subject", "within"),
        ((4, 2), "label_efficiency", "none"),
    ],
)
def test_the_interval_of_a_mean_is_that_of_the_test_against_a_method_that_scores_zero(
    shape, protocol, test
):
    scores = table(protocol, A=RNG.normal(0.3, 0.1, shape), zero=np.zeros(shape[-2:]))
    (expected,) = paired_tests(scores).to_dict("records")
    row, zero = mean_interval(scores.sample(frac=1, random_state=0)).to_dict("records")
    row, zero = sorted([row, zero], key=lambda each: each["method"])
    assert row["test"] == expected["test"] == test
    assert row["mean"] == pytest.approx(expected["mean_difference"])
    for name in ("ci_low", "ci_high", "n_subjects", "n_draws"):
        assert row[name] == pytest.approx(expected[name], nan_ok=True), name
    assert zero["mean"] == 0


def test_means_with_intervals_are_by_any_columns_and_of_one_metric():
    scores = pd.concat([table(A=RNG.random((3, 5))).assign(decoder=name) for name in "xy"])
    by_decoder = mean_interval(scores, by=["decoder"])
    means = scores.groupby("decoder")["value"].mean()
    np.testing.assert_allclose(by_decoder["mean"], means)
    both = pd.concat([scores.assign(metric="f1", value=0.0), scores])
    pd.testing.assert_frame_equal(mean_interval(both, "kappa", by=["decoder"]), by_decoder)
    with pytest.raises(ValueError, match="f1, kappa"):
        mean_interval(both, by=["decoder"])


def test_pretrainings_are_a_third_factor():
    """A baseline has the same scores for all pretraining seeds; two encoders share the seeds."""
    a, b = RNG.normal(0.3, 0.1, (3, 4, 6)), RNG.normal(0.2, 0.1, (4, 6))
    (row,) = paired_tests(table(A=a, B=b)).to_dict("records")
    expected = crossed_mean((a - b).T)
    assert (row["test"], row["n_draws"], row["n_subjects"]) == ("three-way", 4, 6)
    assert (row["p"], row["df"]) == (pytest.approx(expected.p), pytest.approx(expected.df))
    c = RNG.normal(0.2, 0.1, (2, 4, 6))
    (both,) = paired_tests(table(A=a, C=c)).to_dict("records")
    assert both["p"] == pytest.approx(crossed_mean((a[:2] - c).T).p)
    # A seed that one pretraining lacks is left out of all.
    scores = table(A=a, B=b)
    missing = scores["pretraining_seed"].eq(2) & scores["seed"].eq(3)
    (without,) = paired_tests(scores[~missing]).to_dict("records")
    assert (without["n_draws"], without["n_subjects"]) == (3, 6)
    assert without["p"] == pytest.approx(crossed_mean((a[:, :3] - b[:3]).T).p)


@pytest.mark.parametrize("protocol", ["label_efficiency", "compare"])
def test_one_seed_and_cross_validation_have_the_corrected_test(protocol):
    a, b = RNG.normal(0.3, 0.1, (3, 6)), RNG.normal(0.2, 0.1, (3, 6))
    n_seeds = 3 if protocol == "compare" else 1
    scores = table(protocol, A=a[:n_seeds], B=b[:n_seeds])
    # Folds may have different sizes.
    scores.loc[scores["subject"] < 2, "n_train_subjects"] = 6 if protocol == "compare" else 5
    (row,) = paired_tests(scores).to_dict("records")
    expected = corrected_mean((a - b)[:n_seeds].mean(axis=0), 5)
    assert (row["test"], row["df"], row["n_draws"]) == ("corrected", 5, n_seeds)
    assert row["p"] == pytest.approx(expected.p)
    assert row["ci_high"] == pytest.approx(expected.ci_high)


def test_different_subjects_per_seed_are_nested():
    a, b = RNG.normal(0.3, 0.1, (3, 4)), RNG.normal(0.2, 0.1, (3, 4))
    scores = table(A=a, B=b)
    scores["subject"] = scores["seed"].astype(str) + "-" + scores["subject"].astype(str)
    (row,) = paired_tests(scores).to_dict("records")
    of_seeds = (a - b).mean(axis=1)
    assert (row["test"], row["df"]) == ("nested", 2)
    assert row["p"] == pytest.approx(stats.ttest_1samp(of_seeds, 0).pvalue)
    assert (row["n_subjects"], row["n_draws"]) == (12, 3)
    assert row["wins"] == (a > b).sum()


def test_methods_are_compared_on_their_common_seeds():
    a, b = RNG.normal(0.3, 0.1, (4, 6)), RNG.normal(0.2, 0.1, (3, 6))
    tests = paired_tests(table(A=a, B=b))
    assert tests["n_draws"].item() == 3
    assert tests["p"].item() == pytest.approx(crossed_mean((a[:3] - b).T).p)
    other = table(A=a, B=b)
    other.loc[other["method"] == "B", "seed"] += 10
    none = paired_tests(other)
    assert none[["n_subjects", "n_draws", "n_dropped"]].to_numpy().tolist() == [[0, 0, 6]]
    assert np.isnan(none["p"].item())


def test_a_subject_with_an_undefined_or_missing_score_is_dropped_and_counted():
    a, b = RNG.normal(0.3, 0.1, (3, 6)), RNG.normal(0.2, 0.1, (3, 6))
    a[1, 2] = np.nan
    scores = table(A=a, B=b)
    missing = scores["method"].eq("B") & scores["subject"].eq(4) & scores["seed"].eq(0)
    tests = paired_tests(scores[~missing])
    assert tests[["n_subjects", "n_dropped", "n_draws"]].to_numpy().tolist() == [[4, 2, 3]]
    known = [0, 1, 3, 5]
    assert tests["p"].item() == pytest.approx(crossed_mean((a - b).T[known]).p)


@pytest.mark.parametrize("m", [1, 2, 10])
def test_holm_matches_its_definition(m):
    p_values = RNG.random(m) ** 3
    expected = multipletests(p_values, method="holm")[1]
    assert holm(p_values) == pytest.approx(expected)
    assert holm([np.nan, *p_values]) == pytest.approx([np.nan, *expected], nan_ok=True)


def test_one_method_is_tested_against_the_others():
    a, b, c = RNG.random((3, 8))
    scores = table(A=a, B=b, C=c)
    tests = paired_tests(scores, against="B")
    assert tests[["method_a", "method_b"]].to_numpy().tolist() == [["A", "B"], ["C", "B"]]
    p_values = [corrected_mean(x - b, 5).p for x in (a, c)]
    assert tests["p"].tolist() == pytest.approx(p_values)
    assert tests["p_holm"].tolist() == pytest.approx(multipletests(p_values, method="holm")[1])
    # All pairs are corrected together, and pooled rows are not subjects.
    pooled = scores[scores["subject"] == 0].assign(subject="all")
    tests = paired_tests(pd.concat([scores, pooled]))
    pairs = tests[["method_a", "method_b"]].to_numpy().tolist()
    assert pairs == [["A", "B"], ["A", "C"], ["B", "C"]]
    assert tests["p"].iloc[1] == pytest.approx(corrected_mean(a - c, 5).p)
    assert tests["p_holm"].tolist() == pytest.approx(multipletests(tests["p"], method="holm")[1])


def test_equal_scores_have_a_p_value_of_one():
    """Rounding errors of the mean over seeds are not differences."""
    a = np.array([[0.1, 0.3, 0.2], [0.4, 0.1, 0.1], [0.2, 0.2, 0.3]])
    b = np.array([[0.2, 0.2, 0.3], [0.1, 0.3, 0.2], [0.4, 0.1, 0.1]])
    (row,) = paired_tests(table("compare", A=a, B=b)).to_dict("records")
    assert (row["p"], row["wins"]) == (1, 0)


def test_a_difference_is_the_first_method_minus_the_second():
    low = RNG.normal(0.2, 0.01, (4, 8))
    description = describe_differences(paired_tests(table(A=low, B=low + RNG.normal(0.1, 0.01))))
    pattern = (
        r"Difference in kappa between A and B: (.+), significant "
        r"\(uncorrected 95 % CI (.+) to (.+), p"
    )
    match = re.match(pattern, description)
    difference, low, high = map(float, match.groups())
    assert low <= difference <= high < 0
    assert "A scores higher in 0 of 8 subjects" in description


def test_the_corrected_p_value_decides_what_is_significant():
    tests = paired_tests(table(A=[0.6, 0.7, 0.8], B=[0.5, 0.5, 0.4], C=[0.1, 0.3, 0.1]))
    tests = tests.assign(p=[0.02, 0.03, 0.01], p_holm=[0.05, 0.06, 0.03], n_dropped=[0, 2, 1])
    first, second, third, *_ = describe_differences(tests).split("Difference in ")[1:]
    assert ", not significant, minimum" in first
    assert ", not significant, minimum" in second
    assert third.startswith("kappa between B and C: ")
    assert ", significant (" in third
    assert "at most 2 for a pair of methods" in third
    untested = describe_differences(tests.assign(p_holm=np.nan))
    assert "between A and B: not tested (3 subjects" in untested


def test_invalid_scores_raise():
    scores = table(A=[0.1, 0.2], B=[0.3, 0.5])
    with pytest.raises(ValueError, match=r"'f1'.* kappa"):
        paired_tests(scores, "f1")
    with pytest.raises(ValueError, match="several values of protocol"):
        paired_tests(pd.concat([scores, scores.assign(protocol="transfer")]))
    with pytest.raises(ValueError, match=r"\(5, 9\)"):
        power(pd.concat([scores, scores.assign(n_train_subjects=9)]))
    again = scores.iloc[[0]].assign(value=-1.0, seed="0", method="A ")  # another run of one fold
    with pytest.raises(ValueError, match=r"method A, subject 0"):
        paired_tests(pd.concat([scores, again]))
    with pytest.raises(ValueError, match=r"control \(none, slow\)"):
        paired_tests(pd.concat([scores.assign(control=name) for name in ("none", "slow")]))


def test_scores_that_are_there_twice_count_once(tmp_path):
    scores = table(A=RNG.random((2, 6)), B=RNG.random((2, 6))).assign(dataset="")
    scores.to_csv(tmp_path / "scores.csv", index=False)
    # In the file, a subject is a number and the dataset missing; the last digit may differ.
    read = pd.read_csv(tmp_path / "scores.csv")
    texts = scores.assign(subject=scores["subject"].astype(str), value=scores["value"] + 1e-16)
    expected = paired_tests(scores)
    pd.testing.assert_frame_equal(paired_tests(pd.concat([texts, read])), expected)


def test_each_number_of_labeled_subjects_has_a_test():
    few, many = (table(A=a, B=b, C=c) for a, b, c in RNG.normal(0.3, 0.1, (2, 3, 4, 6)))
    many = many.assign(n_train_subjects=9, value=many["value"] + (many["method"] == "A"))
    # At one number, nothing is there to compare with.
    alone = few[few["method"] == "A"].assign(n_train_subjects=1)
    tests = paired_tests(pd.concat([few, alone, many]), against="B")
    assert tests["n_train_subjects"].tolist() == [5, 5, 9, 9]
    for n, rows in ((5, few), (9, many)):
        of_n = tests[tests["n_train_subjects"] == n].reset_index(drop=True)
        expected = paired_tests(rows, against="B")
        columns = [name for name in expected if name != "p_holm"]
        pd.testing.assert_frame_equal(of_n[columns], expected[columns])
    assert tests["p_holm"].tolist() == pytest.approx(holm(tests["p"]).tolist())
    description = describe_differences(tests)
    start = "Difference in kappa between A and B with 9 labeled subjects: +"
    (sentence,) = (text for text in description.split(". ") if text.startswith(start))
    assert ", significant (" in sentence
    with pytest.raises(ValueError, match=r"'A', 'B', 'C'.* 'D'"):
        paired_tests(pd.concat([few, many]), against="D")


def crossed(n_subjects: int = 12, n_draws: int = 10, **sds: float) -> pd.DataFrame:
    """Scores whose differences have effects of subjects and draws with these sample SDs."""
    rng = np.random.default_rng(3)
    subject, draw = rng.normal(size=(1, n_subjects)), rng.normal(size=(n_draws, 1))
    subject, draw = ((x - x.mean()) / x.std(ddof=1) for x in (subject, draw))
    rest = rng.normal(0, 0.02, (n_draws, n_subjects))
    a = sds.get("subject", 0) * subject + sds.get("draw", 0) * draw + rest
    return table(A=a + 0.05, B=np.zeros_like(a))


def test_power_of_the_same_design_matches_the_test():
    scores = crossed(subject=0.05, draw=0.04)
    (row,) = power(scores).to_dict("records")
    assert row["detectable"] == pytest.approx(paired_tests(scores)["detectable"].item())
    assert (row["n_subjects"], row["n_draws"]) == (12, 10)
    assert row["sd_subject"] == pytest.approx(0.05, abs=0.005)
    assert row["sd_draw"] == pytest.approx(0.04, abs=0.005)
    assert row["sd_rest"] == pytest.approx(0.02, abs=0.003)
    assert math.isnan(row["sd_pretraining"])


def test_the_number_of_draws_is_the_smallest_that_is_enough():
    scores = crossed(subject=0.03, draw=0.08)
    needed = power(scores, difference=0.05)["draws_needed"].item()
    enough = power(scores, n_draws=[int(needed) - 1, int(needed)])["detectable"].tolist()
    assert enough[0] > 0.05 >= enough[1]
    # More draws cannot make up for subjects who differ too much, but more subjects do.
    result = power(crossed(subject=0.1, draw=0.01), n_subjects=[12, 60])
    assert result["draws_needed"].tolist()[0] == math.inf
    assert math.isfinite(result["draws_needed"].tolist()[1])


def test_power_of_several_pairs_and_designs():
    a, b, c = RNG.normal(0.3, 0.1, (3, 4, 6))
    scores = table(A=np.stack([a, a + RNG.normal(0, 0.1, a.shape)]), B=b, C=c)
    result = power(scores, against="C", n_subjects=[6, 20], n_draws=[4, 8])
    assert result["n_subjects"].tolist() == [6, 6, 20, 20] * 2
    assert result["n_draws"].tolist() == [4, 8] * 4
    assert result["sd_pretraining"].isna().tolist() == [False] * 4 + [True] * 4
    with pytest.raises(ValueError, match=r"'B' and 'C', 6 .* 1 "):
        power(table(B=b[:1], C=c))
    scores["subject"] += 10 * scores["seed"]
    with pytest.raises(ValueError, match="for the same seeds"):
        power(scores)


def test_power_is_undefined_for_equal_differences():
    a = RNG.normal(0.4, 0.1, (4, 6))
    for other in (a, a - 0.1):
        result = power(table(A=a, B=other), n_draws=[2, 20])
        assert result[["detectable", "draws_needed"]].isna().all(axis=None)


@pytest.mark.parametrize("shape", [(5, 2), (1, 2)])
@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_two_subjects_are_too_few(shape, spread):
    """The level of a test is exceeded there; of equal differences p was 0."""
    b = RNG.normal(0.2, 0.1, shape)
    tests = paired_tests(table(A=b + 0.1 + RNG.normal(0, spread, shape), B=b))
    assert tests[["p", "p_holm", "ci_low", "ci_high"]].isna().all(axis=None)
    assert tests["test"].item() == "none"
    assert re.search(r"not tested \(2 subjects", describe_differences(tests))
