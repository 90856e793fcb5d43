"""What is drawn of a table of scores, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from braindecode_pars import plotting
from braindecode_pars.plotting._scores import in_order, over_seeds, per_seed, select

OF_SCORES = {
    "label_efficiency": plotting.label_efficiency,
    "paired_bars": plotting.paired_bars,
    "transfer": plotting.transfer,
    "ablation_grid": lambda scores, metric="kappa": plotting.ablation_grid(
        scores, rows="n_train_subjects", columns="method", metric=metric
    ),
}


@pytest.fixture(params=OF_SCORES)
def figure(request):
    return OF_SCORES[request.param]


def test_an_empty_table_is_refused(figure, make_scores):
    with pytest.raises(ValueError, match=r"scores are empty; there is nothing to draw\."):
        figure(make_scores(lambda row: 0.5).iloc[:0])


def test_an_unknown_metric_is_named_with_the_known_ones(figure, make_scores):
    scores = make_scores(lambda row: 0.5, metric=["f1", "kappa"])
    with pytest.raises(ValueError, match=r"no metric 'auc'; they hold f1, kappa\."):
        figure(scores, metric="auc")


def test_a_missing_column_is_named(figure, make_scores):
    with pytest.raises(ValueError, match=r"lack the column method; they have protocol"):
        figure(make_scores(lambda row: 0.5).drop(columns="method"))


def test_something_else_than_a_table_is_refused(figure):
    with pytest.raises(TypeError, match="scores is a list"):
        figure([0.5, 0.6])


@pytest.mark.parametrize("name", ["label_efficiency", "paired_bars", "ablation_grid"])
def test_several_data_sets_are_not_averaged(name, make_scores):
    scores = make_scores(lambda row: 0.5, dataset=["night", "day"], subject=["S1", "all"])
    with pytest.raises(ValueError, match=r"several values of dataset \(night, day\)"):
        OF_SCORES[name](scores)


def test_only_one_metric_is_selected(make_scores):
    scores = make_scores(lambda row: len(row["metric"]), metric=["f1", "kappa"])
    assert set(select(scores, "f1", ())["value"]) == {2}


def test_numbers_ascend_and_names_come_as_they_appear():
    assert in_order(pd.Series([40, 20.0, np.nan, 30, 20])) == [20, 30, 40]
    assert in_order(pd.Series(["random", "grid", None, "random"])) == ["random", "grid"]


def test_pooled_rows_come_before_means_over_subjects(make_scores):
    values = {"S1": 0.2, "S2": 0.6, "all": 0.9}
    scores = make_scores(lambda row: values[row["subject"]], subject=list(values))
    assert set(per_seed(scores, ["method"])["value"]) == {0.9}
    single = scores[scores["subject"] != "all"]
    np.testing.assert_allclose(per_seed(single, ["method"])["value"], 0.4)


def test_pooled_values_are_not_compared_with_means_over_subjects(make_scores):
    scores = make_scores(lambda row: 0.5, subject=["S1", "all"])
    pooled_of_one = (scores["method"] == "PARS") & (scores["subject"] == "all")
    single_of_other = (scores["method"] == "scratch") & (scores["subject"] == "S1")
    with pytest.raises(ValueError, match="do not compare; draw them apart"):
        per_seed(scores[pooled_of_one | single_of_other], ["method"])
    # One method without pooled rows: single subjects serve for both.
    assert len(per_seed(scores[~pooled_of_one], ["method"])) == 6


def test_the_spread_is_that_of_seeds_and_undefined_values_stay_out():
    values = pd.DataFrame(dict(method="PARS", seed=[0, 1, 2], value=[0.4, 0.6, np.nan]))
    [row] = over_seeds(values, ["method"]).itertuples()
    assert row.mean == pytest.approx(0.5)
    assert row.std == pytest.approx(np.std([0.4, 0.6], ddof=1))
    assert row.count == 2
