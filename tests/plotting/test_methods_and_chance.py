"""What figures of scores have in common: a part of the methods, and the chance level."""

from __future__ import annotations

import pytest

from braindecode_pars import plotting

FIGURES = pytest.mark.parametrize("draw", [plotting.label_efficiency, plotting.subject_dots])


@pytest.fixture
def scores(make_scores):
    return make_scores(lambda row: 0.5, n_train_subjects=[2, 8], subject=["a", "b", "c"])


@FIGURES
def test_a_part_of_the_methods_keeps_its_styles(draw, scores):
    everything, part = (draw(scores, methods=methods) for methods in (None, ["scratch"]))
    styles = [
        {line.get_label(): (line.get_color(), line.get_marker()) for line in ax.lines}
        for ax in (everything, part)
    ]
    assert styles[1]["scratch"] == styles[0]["scratch"]
    assert "PARS" in styles[0]
    assert "PARS" not in styles[1]


@FIGURES
@pytest.mark.parametrize("methods", [["MAE"], [], ["PARS", "PARS"], "PARS"])
def test_methods_that_are_not_those_of_the_scores_are_refused(draw, scores, methods):
    with pytest.raises(ValueError, match=r"which have PARS, scratch; got "):
        draw(scores, methods=methods)


@FIGURES
def test_the_chance_level_is_a_named_line(draw, scores):
    ax = draw(scores, chance=0.25)
    assert [0.25, 0.25] in [list(line.get_ydata()) for line in ax.lines]
    assert [(text.get_text(), text.get_position()[1]) for text in ax.texts] == [("chance", 0.25)]
