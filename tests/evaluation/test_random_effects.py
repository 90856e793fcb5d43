"""Mean squares, variances and tests of crossed factors against statsmodels, and simulated rates."""

import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.formula.api import mixedlm, ols
from statsmodels.stats.anova import anova_lm

from braindecode_pars.evaluation.random_effects import (
    corrected_mean,
    crossed_mean,
    crossed_mean_of_folds,
    detectable_in,
    mean_squares,
    variance_components,
)

RNG = np.random.default_rng(0)
#: Subjects and draws of the protocols of the results with frozen features.
CROSSED = ((12, 20), (20, 20), (20, 10), (20, 5))


def by_statsmodels(values: np.ndarray) -> dict[tuple[int, ...], tuple[float, float]]:
    """Mean square and degrees of freedom of each set of factors; the last one is the rest."""
    names, axes = "abc"[: values.ndim], range(values.ndim)
    rows = pd.DataFrame([*np.ndindex(values.shape)], columns=[*names]).assign(x=values.ravel())
    effects = f"({' + '.join(f'C({name})' for name in names)}) ** {values.ndim - 1}"
    table = anova_lm(ols(f"x ~ {effects}", rows).fit())
    sets = [each for size in axes for each in combinations(axes, size + 1)]
    return dict(zip(sets, zip(table["mean_sq"], table["df"], strict=True), strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_scores_in_single_precision_have_the_degrees_of_freedom_of_exact_ones(seed):
    """With these differences of two draws, the mean squares of draws and of the rest are equal."""
    values = np.random.default_rng(seed).uniform(0.4, 0.6, (8, 1)).repeat(2, axis=1)
    values[:3, 0] += [0.02, 0.02, -0.01]
    for differences in (values, values.astype(np.float32)):
        assert crossed_mean(differences).df == pytest.approx(7)


@pytest.mark.parametrize("shape", [(2, 2), (5, 3), (12, 20), (2, 2, 2), (4, 3, 2)])
def test_crossed_factors_against_statsmodels(shape):
    values = RNG.normal(0.1, 1, shape) + 2 * RNG.normal(size=[shape[0], *[1] * (len(shape) - 1)])
    squares = by_statsmodels(values)
    expected = {factors: (pytest.approx(ms), n) for factors, (ms, n) in squares.items()}
    assert mean_squares(values) == expected
    total = sum(ms if len(factors) % 2 else -ms for factors, (ms, _) in squares.items())
    largest, df = max(squares[(axis,)] for axis in range(len(shape)))
    if total > largest:
        df = total**2 / sum(ms**2 / n for ms, n in squares.values())
    error = math.sqrt(max(total, largest) / values.size)
    test = crossed_mean(values)
    assert test.mean == pytest.approx(values.mean())
    assert test.standard_error == pytest.approx(error)
    assert test.df == pytest.approx(df)
    assert test.p == pytest.approx(2 * stats.t.sf(abs(values.mean()) / error, df))
    half = stats.t.ppf(0.975, df) * error
    assert (test.ci_low, test.ci_high) == pytest.approx((test.mean - half, test.mean + half))
    quantiles = stats.t.ppf(0.975, df) + stats.t.ppf(0.8, df)
    assert test.detectable() == pytest.approx(quantiles * error)


def test_the_smallest_variance_is_that_of_one_factor():
    """Rows that are alike on average, and a rest: MS_s + MS_d - MS_e is below MS_d."""
    rest = np.resize([1.0, -1.0], (4, 4)) * np.array([[1], [-1], [1], [-1]])
    values = rest - rest.mean() + np.array([0.0, 1.0, 2.0, 3.0])
    squares = mean_squares(values)
    assert squares[(0,)][0] < squares[0, 1][0] < squares[(1,)][0]
    test = crossed_mean(values)
    largest, df = max(squares[(0,)], squares[(1,)])
    assert (test.standard_error, test.df) == (pytest.approx(math.sqrt(largest / 16)), df)


def test_one_factor_is_the_t_test():
    values = RNG.normal(0.5, 1, 9)
    for shape in ((9,), (9, 1), (1, 9, 1)):
        test = crossed_mean(values.reshape(shape))
        assert test.p == pytest.approx(stats.ttest_1samp(values, 0).pvalue)
        assert test.df == 8


def test_the_variance_is_unbiased_where_each_fold_has_its_own_draw():
    """As the notes of crossed_mean say: the draws of the two halves of the subjects differ."""
    n_s, n_d, n = 6, 4, 4000
    rng = np.random.default_rng(0)
    draws = np.repeat(rng.normal(0, 1, (n, 2, n_d)), 3, axis=1)
    values = rng.normal(0, 0.5, (n, n_s, 1)) + draws + rng.normal(0, 1, (n, n_s, n_d))
    signs = {(0,): 1, (1,): 1, (0, 1): -1}
    estimates = [
        sum(signs[factors] * ms for factors, (ms, _) in mean_squares(each).items()) / (n_s * n_d)
        for each in values
    ]
    true = 0.5**2 / n_s + 1 / (2 * n_d) + 1 / (n_s * n_d)
    assert np.mean(estimates) == pytest.approx(true, rel=0.03)
    assert values.mean(axis=(1, 2)).var() == pytest.approx(true, rel=0.06)


def test_no_and_equal_differences():
    for nothing in (np.empty((0, 3)), np.array([[0.1]])):
        assert np.isnan([*crossed_mean(nothing)][1:6]).all()
    assert crossed_mean(np.zeros((4, 3))).p == 1
    assert np.isnan(crossed_mean(np.zeros((4, 3))).detectable())
    assert crossed_mean(np.full((4, 3), 0.1)).p == 0
    for few in (np.array([0.1]), np.array([])):
        assert np.isnan([*corrected_mean(few, 4)][1:6]).all()
    assert corrected_mean(np.zeros(5), 4).p == 1
    assert corrected_mean(np.full(5, 0.1), 4).p == 0
    # Rounding errors are no differences.
    assert crossed_mean(np.full((4, 3), 0.1 + 0.2) - 0.3).p == 1


def with_all_factors(shape: tuple[int, ...]) -> np.ndarray:
    """Values in which the variance of each factor alone is large."""
    values = RNG.normal(size=shape)
    for axis, n in enumerate(shape):
        values += 5 * RNG.normal(size=[n if k == axis else 1 for k in range(len(shape))])
    return values


def test_variances_follow_from_the_mean_squares():
    values = with_all_factors((6, 4))
    s, d, e = (ms for ms, _ in by_statsmodels(values).values())
    expected = {(0,): (s - e) / 4, (1,): (d - e) / 6, (0, 1): e}
    assert variance_components(mean_squares(values)) == pytest.approx(expected)
    values = with_all_factors((5, 4, 3))
    s, d, p, sd, sp, dp, sdp = (ms for ms, _ in by_statsmodels(values).values())
    expected = {
        (0,): (s - sd - sp + sdp) / (4 * 3),
        (1,): (d - sd - dp + sdp) / (5 * 3),
        (2,): (p - sp - dp + sdp) / (5 * 4),
        (0, 1): (sd - sdp) / 3,
        (0, 2): (sp - sdp) / 4,
        (1, 2): (dp - sdp) / 5,
        (0, 1, 2): sdp,
    }
    result = variance_components(mean_squares(values))
    assert result == pytest.approx({k: max(0, variance) for k, variance in expected.items()})


def test_the_detectable_difference_of_another_design():
    values = with_all_factors((6, 4))
    components = variance_components(mean_squares(values))
    assert detectable_in(components, (6, 4)) == pytest.approx(crossed_mean(values).detectable())
    s, d, e = components.values()
    squares = [(30 * s + e, 9), (10 * d + e, 29), (e, 9 * 29)]
    total = sum(sign * ms for sign, (ms, _) in zip((1, 1, -1), squares, strict=True))
    df = total**2 / sum(ms**2 / n for ms, n in squares)
    error = math.sqrt(s / 10 + d / 30 + e / 300)
    assert total / 300 == pytest.approx(error**2)
    quantiles = stats.t.ppf(0.975, df) + stats.t.ppf(0.8, df)
    assert detectable_in(components, (10, 30)) == pytest.approx(quantiles * error)


def test_one_fold_and_dealing_against_a_mixed_model_of_statsmodels():
    """Restricted maximum likelihood, with the variances of all factors and pairs of factors."""
    shape = (6, 4, 3)
    values = 0.3 + 0.5 * with_all_factors(shape)
    for axis in range(3):
        of_pair = [1 if k == axis else n for k, n in enumerate(shape)]
        values += np.random.default_rng(axis).normal(0, 1.5, of_pair)
    components = variance_components(mean_squares(values))
    assert min(components.values()) > 0
    rows = pd.DataFrame([*np.ndindex(shape)], columns=[*"sdp"]).assign(y=values.ravel())
    for pair in ("sd", "sp", "dp"):
        rows[pair] = rows[pair[0]].astype(str) + "-" + rows[pair[1]].astype(str)
    effects = {name: f"0 + C({name})" for name in ("s", "d", "p", "sd", "sp", "dp")}
    result = mixedlm("y ~ 1", rows, groups=np.ones(len(rows)), vc_formula=effects).fit(reml=True)
    test = crossed_mean_of_folds([values[:, None]])
    assert test.mean == pytest.approx(result.fe_params.iloc[0])
    assert test.standard_error == pytest.approx(result.bse_fe.iloc[0], rel=1e-3)
    assert test[:6] == pytest.approx(crossed_mean(values)[:6])


def test_folds_are_weighted_by_their_subjects_and_their_variances_add():
    folds = [with_all_factors((n, 1, 4, 3)) for n in (5, 7)]
    test = crossed_mean_of_folds(folds)
    one, two = (crossed_mean_of_folds([fold]) for fold in folds)
    variances = [(5 / 12 * one.standard_error) ** 2, (7 / 12 * two.standard_error) ** 2]
    assert test.mean == pytest.approx((5 * one.mean + 7 * two.mean) / 12)
    assert test.standard_error**2 == pytest.approx(sum(variances))
    assert test.df == pytest.approx(
        sum(variances) ** 2 / (variances[0] ** 2 / one.df + variances[1] ** 2 / two.df)
    )


def test_dealing_the_same_sets_again_changes_nothing():
    fold = with_all_factors((6, 1, 3, 2))
    test, again = crossed_mean_of_folds([fold]), crossed_mean_of_folds([fold.repeat(4, axis=1)])
    assert again[:6] == pytest.approx(test[:6])
    # In a pool of 6 of another fold, four dealings into three sets estimate the variance better.
    more = crossed_mean_of_folds([fold.repeat(4, axis=1)] * 2)
    assert more.df > 2 * test.df


def test_the_degrees_of_freedom_of_dealings():
    """Mean squares of random sets of 2 of 6 subjects: mean and variance over 20,000 pools."""
    rng, n = np.random.default_rng(0), 20_000
    effects = rng.normal(0, 1, (n, 1, 6)).repeat(4, axis=1)
    sets = rng.permuted(effects, axis=2).reshape(n, 4, 3, 2).mean(axis=3)
    squares = sets.var(axis=2, ddof=1).mean(axis=1)
    df = 2 * squares.mean() ** 2 / squares.var()
    draws = np.zeros((2, 6, 4, 3, 1)) + np.arange(3.0)[:, None]  # variance of draws alone
    assert crossed_mean_of_folds(draws).df / 2 == pytest.approx(1 / (1 / 8 + 3 / 4 / 5))
    assert df == pytest.approx(1 / (1 / 8 + 3 / 4 / 5), rel=0.03)


def test_subjects_of_one_class_each():
    few, many = RNG.normal(0.1, 0.3, 6), RNG.normal(0.2, 0.1, 18)
    values = np.concatenate([few, many])[:, None, None, None]
    classes = np.repeat(["a", "b"], (6, 18))
    test = crossed_mean_of_folds([values], [classes])
    expected = stats.ttest_ind(few, -many, equal_var=False)  # Welch
    assert test.mean == pytest.approx((few.mean() + many.mean()) / 2)
    assert (test.p, test.df) == pytest.approx((expected.pvalue, expected.df))
    # An effect of draws that is opposite in the two classes cancels in their mean.
    opposite = np.where(classes == "a", 1, -1)[:, None] * np.array([-1.0, 0.0, 1.0])
    canceled = crossed_mean_of_folds([values + opposite[:, None, :, None]], [classes])
    assert canceled.p == pytest.approx(test.p)
    assert crossed_mean_of_folds([np.full_like(values, 0.18)], [classes]).p == 0
    alone = np.repeat(["a", "b"], (1, 23))
    assert np.isnan(crossed_mean_of_folds([values], [alone]).p)


def test_the_interaction_of_draws_and_pretrainings_counts_with_labeled_subjects():
    draws, pretrainings = np.array([-3.0, 1.0, 2.0]), np.array([-2.0, -1.0, 3.0])
    interaction = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [-1.0, 0.0, 1.0]])
    effects = draws[:, None] + pretrainings + interaction
    test = crossed_mean_of_folds([np.zeros((6, 1, 3, 3)) + effects])
    of_draws, of_pretrainings = draws.var(ddof=1) / 3, pretrainings.var(ddof=1) / 3
    of_both = (interaction**2).sum() / (2 * 2) / 9
    subjects, labeled, pretraining = test.variances.values()
    assert subjects == 0
    assert labeled / pretraining == pytest.approx((of_draws - of_both) / of_pretrainings)


def test_the_upper_bound_and_the_number_of_subjects_needed():
    folds = [0.1 + with_all_factors((6, 1, 3, 3)) for _ in range(2)]
    test = crossed_mean_of_folds(folds)
    assert sum(test.variances.values()) == pytest.approx(test.standard_error**2)
    t = (test.upper_bound() - test.mean) / test.standard_error
    assert stats.t.cdf(t, test.df) == pytest.approx(0.95)
    # Ten times as many subjects: all but the variance of pretraining is divided by ten.
    s, d, p = test.variances.values()
    assert p > 0
    quantiles = stats.t.ppf([0.975, 0.8], test.df).sum()
    more = quantiles * math.sqrt((s + d) / 10 + p)
    assert test.subjects_needed(more * (1 + 1e-9), n_subjects=12) == 120
    assert test.subjects_needed(quantiles * math.sqrt(p), n_subjects=12) == math.inf
    assert math.isnan(corrected_mean(np.arange(3.0), 4).subjects_needed(0.1, 3))


def test_the_corrected_test_follows_its_formula():
    differences = np.random.default_rng(0).normal(0.1, 0.1, 12)
    mean = sum(differences) / 12
    variance = sum((d - mean) ** 2 for d in differences) / 11
    error = np.sqrt((1 / 12 + 1 / 5) * variance)
    test = corrected_mean(differences, 5)
    assert test.p == pytest.approx(2 * stats.t(11).sf(abs(mean) / error))
    quantiles = stats.t(11).ppf(0.975) + stats.t(11).ppf(0.8)
    assert test.detectable() == pytest.approx(quantiles * error)
    # It is stricter than the paired t-test, and approaches it with many training subjects.
    plain = stats.ttest_1samp(differences, 0).pvalue
    assert test.p > plain
    assert corrected_mean(differences, 10**9).p == pytest.approx(plain)
    # Zero is at the end of the interval where the test is at the level of 5 %.
    for end in (test.ci_low, test.ci_high):
        assert corrected_mean(differences - end, 5).p == pytest.approx(0.05)


def shared_training(n: int, n_train: int, shift: float) -> list[np.ndarray]:
    """Differences with an error in common: a shared training set adds 1 / n_train of the variance.

    Returns 400 draws of the differences of ``n`` subjects, with variance 1.
    """
    rng = np.random.default_rng(0)
    common = rng.normal(0, np.sqrt(1 / n_train), 400)
    return [shift + error + rng.normal(0, 1, n) for error in common]


def test_the_error_rate_is_nominal_if_folds_share_training_subjects():
    draws = shared_training(n=10, n_train=9, shift=0.0)
    assert np.mean([corrected_mean(draw, 9).p < 0.05 for draw in draws]) < 0.08
    assert np.mean([stats.ttest_1samp(draw, 0).pvalue < 0.05 for draw in draws]) > 0.1


def test_the_minimum_detectable_difference_has_80_percent_power():
    n, n_train = 12, 11
    unit = np.resize([1.0, -1.0], n) * np.sqrt((n - 1) / n)  # standard deviation 1
    draws = shared_training(n, n_train, shift=corrected_mean(unit, n_train).detectable())
    assert 0.72 < np.mean([corrected_mean(draw, n_train).p < 0.05 for draw in draws]) < 0.88


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("shape", "names"),
    [
        *((shape, ("arithmetic", "imagery", "hands")) for shape in CROSSED),
        ((12, 3), ("arithmetic, fine-tuned",)),
        ((20, 3), ("imagery, fine-tuned", "hands, fine-tuned")),
    ],
)
def test_the_false_positive_rate_is_5_percent(shape, names, monkeypatch):
    """With the variances that were measured in designs of a study."""
    test_rates = rates_of(monkeypatch)
    measured = test_rates.measured()
    for name in names:
        result = test_rates.rates("crossed", name, shape, measured[name])
        assert 0.03 < result["two_way"] < 0.07, name
        assert 0.7 < result["power"] < 0.87, name


@pytest.mark.slow
@pytest.mark.nightly
def test_the_rate_with_three_pretrainings(monkeypatch):
    test_rates = rates_of(monkeypatch)
    for name, components in test_rates.measured_pretrainings().items():
        result = test_rates.rates("crossed", name, (12, 20, 3), components)
        assert 0.03 < result["two_way"] < 0.07, name


@pytest.mark.slow
@pytest.mark.nightly
def test_the_rate_where_each_draw_has_its_own_subjects(monkeypatch):
    test_rates = rates_of(monkeypatch)
    components = test_rates.measured_nested()["nights"]
    result = test_rates.rates("own subjects of each draw", "nights", (36, 3), components)
    assert 0.03 < result["two_way"] < 0.07
    assert result["corrected"] < 0.03
    assert result["wilcoxon"] > 0.1


def rates_of(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "docs" / "experiments")
    import test_rates

    return test_rates


@pytest.mark.parametrize(
    ("name", "n_subjects"), [("sleep", 24), ("labeled large", 12), ("pretraining = subjects", 16)]
)
def test_the_rate_of_a_study_whose_draws_share_a_pool(name, n_subjects, monkeypatch):
    """The simulation, which also compares its first studies with the functions of the package."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "docs" / "experiments")
    import study_rates

    monkeypatch.setattr(study_rates, "N_SIMULATED", 1000)
    result = study_rates.rates(n_subjects, 3, name, study_rates.variances()[name])
    assert 0.02 < result["folds"] < 0.075
    assert result["crossed"] > 0.1
