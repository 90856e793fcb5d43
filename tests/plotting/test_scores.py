"""What figures of scores have in common: selection, checks, averages, styles, the chance level."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection

from braindecode_pars import plotting
from braindecode_pars.plotting.score_figures import over_seeds, select, sorted_values

FIGURES = {
    "label_efficiency": plotting.label_efficiency,
    "subject_dots": plotting.subject_dots,
    "ablation_lines": lambda scores, metric="kappa": plotting.ablation_lines(
        scores, x="n_train_subjects", lines="method", metric=metric
    ),
}


@pytest.fixture(params=FIGURES)
def figure(request):
    return FIGURES[request.param]


def test_tables_that_cannot_be_drawn_are_refused(figure, make_scores):
    scores = make_scores(lambda row: 0.5, metric=["f1", "kappa"])
    with pytest.raises(ValueError, match="empty"):
        figure(scores.iloc[:0])
    with pytest.raises(ValueError, match=r"auc.*f1, kappa"):
        figure(scores, metric="auc")
    with pytest.raises(ValueError, match=r"method.*protocol"):
        figure(scores.drop(columns="method"))
    scores = make_scores(lambda row: 0.5, dataset=["night", "day"], subject=["S1", "all"])
    with pytest.raises(ValueError, match="night, day"):
        figure(scores)


def test_only_one_metric_is_selected(make_scores):
    scores = make_scores(lambda row: len(row["metric"]), metric=["f1", "kappa"])
    assert set(select(scores, "f1", ())["value"]) == {2}


def test_numbers_are_sorted_and_names_are_in_order_of_appearance():
    assert sorted_values(pd.Series([40, 20.0, np.nan, 30, 20])) == [20, 30, 40]
    assert sorted_values(pd.Series(["random", "grid", None, "random"])) == ["random", "grid"]


def test_pooled_rows_come_before_means_over_subjects(make_scores):
    values = {"S1": 0.2, "S2": 0.6, "all": 0.9}
    scores = make_scores(lambda row: values[row["subject"]], subject=list(values))
    assert set(over_seeds(scores, ["method"])["mean"]) == {0.9}
    single = scores[scores["subject"] != "all"]
    np.testing.assert_allclose(over_seeds(single, ["method"])["mean"], 0.4)


def test_pooled_values_are_not_compared_with_means_over_subjects(make_scores):
    scores = make_scores(lambda row: 0.5, subject=["S1", "all"])
    pooled_of_one = (scores["method"] == "PARS") & (scores["subject"] == "all")
    single_of_other = (scores["method"] == "scratch") & (scores["subject"] == "S1")
    with pytest.raises(ValueError, match="cannot be compared"):
        over_seeds(scores[pooled_of_one | single_of_other], ["method"])
    # If one method has no pooled rows, both use the rows of single subjects.
    assert over_seeds(scores[~pooled_of_one], ["method"])["count"].sum() == 6


def test_the_spread_is_over_seeds_with_a_defined_value():
    values = pd.DataFrame(dict(method="PARS", subject=1, seed=[0, 1, 2], value=[0.4, 0.6, np.nan]))
    [row] = over_seeds(values, ["method"]).itertuples()
    assert row.mean == pytest.approx(0.5)
    assert row.std == pytest.approx(np.std([0.4, 0.6], ddof=1))
    assert row.count == 2


PARTLY = pytest.mark.parametrize("draw", [plotting.label_efficiency, plotting.subject_dots])


@pytest.fixture
def scores(make_scores):
    return make_scores(lambda row: 0.5, n_train_subjects=[2, 8], subject=["a", "b", "c"])


@PARTLY
def test_a_part_of_the_methods_keeps_its_styles(draw, scores):
    everything, part = (draw(scores, methods=methods) for methods in (None, ["scratch"]))
    styles = [
        {line.get_label(): (line.get_color(), line.get_marker()) for line in ax.lines}
        for ax in (everything, part)
    ]
    assert styles[1]["scratch"] == styles[0]["scratch"]
    assert "PARS" in styles[0]
    assert "PARS" not in styles[1]


@PARTLY
@pytest.mark.parametrize("methods", [["MAE"], [], ["PARS", "PARS"], "PARS"])
def test_methods_that_are_not_those_of_the_scores_are_refused(draw, scores, methods):
    with pytest.raises(ValueError, match="PARS, scratch"):
        draw(scores, methods=methods)


@PARTLY
def test_the_chance_level_is_a_named_line(draw, scores):
    ax = draw(scores, chance=0.25)
    assert [0.25, 0.25] in [list(line.get_ydata()) for line in ax.lines]
    assert [(text.get_text(), text.get_position()[1]) for text in ax.texts] == [("chance", 0.25)]


def levels(ax):
    """Positions of dotted lines: of whole ones, and of those of a row."""
    lines = [line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == ":"]
    dotted = [part for part in ax.collections if isinstance(part, LineCollection)]
    dotted = [part for part in dotted if part.get_linestyle()[0][1] is not None]
    return lines + [segment[0, 0] for part in dotted for segment in part.get_segments()]


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize(
    ("metric", "level"), [("kappa", 0), ("auroc", 0.5), ("balanced_accuracy", 0.2), ("f1", None)]
)
def test_figures_draw_the_known_chance_level(name, metric, level, make_scores):
    scores = make_scores(lambda row: 0.6, metric=metric, subject=["1", "2"])
    scores.attrs["n_classes"] = {scores["dataset"].iloc[0]: 5}
    assert levels(FIGURES[name](scores, metric)) == ([] if level is None else [level])


@pytest.mark.parametrize("name", FIGURES)
def test_without_the_number_of_classes_chance_is_unknown(name, make_scores):
    scores = make_scores(lambda row: 0.6, metric="balanced_accuracy", subject=["1", "2"])
    assert levels(FIGURES[name](scores, "balanced_accuracy")) == []
