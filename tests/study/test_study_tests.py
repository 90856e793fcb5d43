"""Statistics of a study on simulated scores with known differences."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from braindecode_pars.evaluation.paired_tests import holm
from braindecode_pars.study import study_tests
from braindecode_pars.study.study_tests import Scores

PARS, SHAM = "PARS pretraining", "sham pretraining"
#: Standard deviations of the scores of a method: effects of test subjects, of a labeled subject, of
#: a pretraining, and the rest. Differences of two methods vary as on the sample of sleep, see
#: docs/measured/study_variances.csv.
SUBJECT, LABELED, PRETRAINING, REST = 0.024, 0.014, 0.01, 0.045
N_PRETRAININGS, N_DRAWS = 3, 12


def with_sets(table, n_sets, class_of=0):
    """Return scores with the columns of the design: class of the subject, and shuffle."""
    return table.assign(stratum=class_of, shuffle=table["draw"] // n_sets)


def simulated(gains, n_subjects, seed, level=0.65):
    """Return simulated scores of methods with these true differences."""
    rng = np.random.default_rng(seed)
    half, rows, columns = n_subjects // 2, [], []
    n_labeled = max(1, min(4, half // 3))
    n_sets = max(k for k in range(1, half // n_labeled + 1) if N_DRAWS % k == 0)
    common = rng.normal(level, 0.08, n_subjects)
    for method, gain in gains.items():
        n_pretrainings = N_PRETRAININGS if "pretraining" in method else 1
        of_subject = rng.normal(gain, SUBJECT, n_subjects)
        for fold in (0, 1):
            tested = np.arange(fold * half, (fold + 1) * half)
            pool = rng.normal(0, LABELED, half)
            of_pretraining = rng.normal(0, PRETRAINING, n_pretrainings)
            for shuffle in range(N_DRAWS // n_sets):
                sets = rng.permutation(half)[: n_sets * n_labeled]
                for k, labeled in enumerate(sets.reshape(n_sets, -1)):
                    for r in range(n_pretrainings):
                        values = common[tested] + of_subject[tested] + pool[labeled].mean()
                        values = values + of_pretraining[r] + rng.normal(0, REST, half)
                        rows.append((method, fold, shuffle * n_sets + k, r))
                        columns.append((tested, values))
    kinds = {PARS: "pretrained", SHAM: "sham", "small": "bundled"}
    names = ["method", "fold", "draw", "pretraining"]
    table = pd.DataFrame(rows, columns=names).loc[np.repeat(np.arange(len(rows)), half)]
    subjects, values = np.concatenate(columns, axis=1)
    table = table.reset_index(drop=True).assign(subject=subjects.astype(int), value=values)
    table = table.astype({"subject": str}).assign(is_centered=False, chance=0.5)
    table = table.assign(kind=table["method"].map(kinds).fillna("baseline"))
    return with_sets(table, n_sets)


def proportion(outcome, gains, n_subjects=12, n=24):
    """Return the proportion of simulated studies with an outcome of the primary comparison."""
    tables = (simulated(gains, n_subjects, seed) for seed in range(n))
    return np.mean([Scores(table).compare(PARS, SHAM).outcome == outcome for table in tables])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gain", "n_subjects", "n", "outcome", "minimum"),
    [
        (0.05, 12, 10, "gain", 0.7),
        (-0.08, 12, 10, "worse", 0.9),
        (0.0, 12, 24, "unclear", 0.51),
        (0.0, 200, 6, "no gain worth having", 0.51),
    ],
)
def test_outcomes_of_simulated_studies(gain, n_subjects, n, outcome, minimum):
    assert proportion(outcome, {PARS: gain, SHAM: 0.0}, n_subjects, n) >= minimum


def test_a_comparison_is_a_plain_mean_of_differences():
    """The scores of a baseline are compared with each pretraining of the other method."""
    table = simulated({PARS: 0.05, "log band power": 0.0}, 12, 0)
    comparison = Scores(table).compare(PARS, "log band power")
    means = table.groupby("method")["value"].mean()
    assert comparison.difference == pytest.approx(means[PARS] - means["log band power"])
    by_subject = table.pivot_table("value", "subject", "method")
    n_better = (by_subject[PARS] > by_subject["log band power"]).sum()
    assert (comparison.n_better, comparison.n_subjects) == (n_better, 12)
    assert comparison.ci_low < comparison.difference < comparison.upper < comparison.ci_high
    assert np.isnan(Scores(table).compare(PARS, "log band power", is_tested=False).p)


@pytest.mark.parametrize(("other", "column"), [("from scratch", "shuffle"), (SHAM, "pretraining")])
def test_draws_and_pretrainings_of_only_one_method_are_ignored(other, column):
    table = simulated({PARS: 0.05, other: 0.0}, 12, 0)
    is_common = table[column] < table[column].max()
    fewer = table[is_common | (table["method"] == PARS)]
    assert Scores(fewer).compare(PARS, other) == Scores(table[is_common]).compare(PARS, other)


def test_secondary_tests_and_intervals_agree():
    table = simulated({PARS: 0.1, SHAM: 0.0, "small": 0.03, "other": 0.0}, 24, 1)
    pairs = [("small", SHAM), ("other", SHAM), (PARS, "other")]
    comparison = Scores(table).secondary(pairs)
    single = [Scores(table).compare(*pair) for pair in pairs]
    for row, alone in zip(comparison.itertuples(), single, strict=True):
        assert row.p == pytest.approx(min(1, 3 * alone.p))
        test, _ = Scores(table).difference(row.method, row.reference)
        wider = stats.t.ppf(1 - 0.05 / 6, test.df) / stats.t.ppf(0.975, test.df)
        assert row.difference - row.ci_low == pytest.approx(wider * (test.mean - alone.ci_low))
        assert (row.p < 0.05) == (row.ci_low > 0 or row.ci_high < 0)
    assert Scores(table).secondary([]).empty


def test_tests_against_chance_level_are_corrected_over_all_rows():
    """Features with and without subject-wise centering are separate rows."""
    table = simulated({PARS: 0.0, SHAM: -0.02, "other": 0.01}, 12, 2, level=0.53)
    is_other = table["method"] == "other"
    centered = table[is_other].assign(is_centered=True, value=0.51)
    table = pd.concat([table, centered], ignore_index=True)
    table.loc[table["is_centered"], "value"] += 0.002 * table["subject"].astype(float)
    scores = Scores(table)
    levels = scores.levels()
    single = [
        scores.test(scores.values(row.method, row.is_centered) - 0.5).p
        for row in levels.itertuples()
    ]
    assert len(single) == 4
    np.testing.assert_allclose(levels["p_chance"], holm(single))


def one_score_each(values, class_of):
    """Return scores of a constant method with these values of the subjects."""
    n = len(values)
    order = np.argsort(np.arange(n) % 2, kind="stable")  # both classes in both folds
    rows = [
        dict(method=method, kind="baseline", is_centered=False, pretraining=0, draw=draw)
        | dict(fold=int(i >= n // 2), subject=str(s), value=value, chance=0.5, stratum=class_of[s])
        for i, s in enumerate(order)
        for draw in range(N_DRAWS)
        for method, value in (("m", values[s]), ("half", 0.5))
    ]
    table = pd.DataFrame(rows)
    scores = Scores(with_sets(table, N_DRAWS // 4, table["stratum"]))
    return scores.levels().set_index("method").loc["m"], scores.compare("m", "half")


def test_classes_of_unequal_size_do_not_hide_a_score_above_chance():
    """All subjects score about 0.68; the classes have 6 and 18 subjects."""
    rng = np.random.default_rng(0)
    class_of = (np.arange(24) >= 6).astype(int)
    values = 0.68 + rng.normal(0, 0.05, 24)
    level, against_half = one_score_each(values, class_of)
    expected = (values[:6].mean() + values[6:].mean()) / 2
    assert level["mean"] == pytest.approx(expected)
    assert against_half.score == pytest.approx(expected)
    assert against_half.difference == pytest.approx(expected - 0.5)
    assert level["p_chance"] < 1e-4
    # A constant prediction is right for one class and wrong for the other.
    constant, _ = one_score_each(class_of.astype(float), class_of)
    assert constant["mean"] == pytest.approx(0.5)
    assert not constant["p_chance"] < 0.05


def test_a_constant_prediction_is_at_chance_level_of_subjects_without_all_classes():
    """With four classes, a subject with two of the classes has a chance level of 0.5."""
    table = simulated({"m": 0.0}, 12, 0)
    table["chance"] = np.where(table["subject"].astype(int) % 2, 0.5, 0.25)
    table["value"] = table["chance"]
    level = Scores(table).levels().iloc[0]
    assert level["mean"] == level["chance"] == pytest.approx(0.375)
    assert not level["p_chance"] < 0.05


@pytest.mark.slow
def test_labels_of_noise_are_above_chance_in_few_studies():
    """More than 2 of 10 studies with a significant method would occur in 1 of 100 tests."""
    n_above = 0
    for seed in range(10):
        table = simulated({"small": 0.0, "a": 0.0, "b": 0.0}, 12, seed, level=0.5)
        table["value"] -= table.groupby(["method", "subject"])["value"].transform("mean") - 0.5
        noise = np.random.default_rng(seed).normal(0, 0.03, (3, 12))
        codes = pd.factorize(table["method"])[0]
        table["value"] += noise[codes, table["subject"].astype(int)]
        levels = Scores(table).levels()
        n_above += ((levels["p_chance"] < 0.05) & (levels["mean"] > 0.5)).any()
    assert n_above <= 2


def test_the_simplest_of_equivalent_methods_is_recommended(monkeypatch):
    monkeypatch.setattr(study_tests, "N_SPLITS", 4)
    gains = {PARS: 0.01, SHAM: 0.0, "small": 0.0, "log band power": 0.0}
    table = simulated(gains, 12, 6)
    scores = Scores(table)
    levels = scores.levels()
    assert levels["method"][0] == PARS  # by less than counts
    chosen = scores.recommend(levels)
    assert chosen.method == "log band power"
    assert set(chosen.equivalent) == {PARS, "small"}
    assert SHAM not in chosen.equivalent  # it is no method to use
    gains[PARS] = 0.1
    table = simulated(gains, 24, 0)
    scores = Scores(table)
    assert scores.recommend(scores.levels()).method == PARS


@pytest.mark.slow
def test_the_expected_score_is_not_biased_by_the_selection(monkeypatch):
    """With eight equal methods, the highest mean exceeds the mean score of a new subject."""
    monkeypatch.setattr(study_tests, "N_SPLITS", 20)
    best, expected, inside = [], [], []
    for seed in range(10):
        gains = {f"method {i}": 0.0 for i in range(8)}
        table = simulated(gains, 12, seed)
        scores = Scores(table)
        levels = scores.levels()
        chosen = scores.recommend(levels)
        truth = table.groupby("subject")["value"].mean().mean()
        best.append(levels["mean"].max() - truth)
        expected.append(chosen.score - truth)
        rows = table[table["method"] == chosen.method]
        inside.append(rows["value"].between(chosen.low, chosen.high).mean())
    assert abs(np.mean(expected)) < np.mean(best) / 2
    assert np.mean(inside) > 0.93
