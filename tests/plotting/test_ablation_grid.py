"""Grids of scores over two settings."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

from braindecode_pars import plotting
from braindecode_pars.plotting.style import text_color


@pytest.fixture
def scores(make_scores):
    return make_scores(
        lambda row: row["n_patches"] / 100 + row["position_mask_ratio"] + 0.01 * row["seed"],
        method="PARS",
        n_patches=[40, 20],
        position_mask_ratio=[0.2, 0.8, 0.4],
    )


def grid(scores, rows="n_patches", columns="position_mask_ratio"):
    return plotting.ablation_grid(scores, rows=rows, columns=columns)


def test_a_cell_is_the_mean_with_its_number_and_spread(scores):
    ax = grid(scores)
    expected = np.array([[0.41, 0.61, 1.01], [0.61, 0.81, 1.21]])
    np.testing.assert_allclose(ax.images[0].get_array(), expected)
    written = {tuple(map(int, t.get_position())): t.get_text() for t in ax.texts}
    assert written[0, 0] == "0.410\n±0.010"
    assert written[2, 1] == "1.210\n±0.010"
    assert len(written) == 6
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0.2", "0.4", "0.8"]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["20", "40"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("position mask ratio", "n patches")
    assert ax.get_title() == "mean ± SD over 3 seeds"


def test_one_seed_has_no_spread(scores):
    ax = grid(scores[scores["seed"] == 0])
    assert ax.texts[0].get_text() == "0.400"
    assert ax.get_title() == "one seed"


def test_a_pair_without_a_score_is_blank(scores):
    lacking = (scores["n_patches"] == 20) & (scores["position_mask_ratio"] == 0.8)
    ax = grid(scores[~lacking])
    assert ax.images[0].get_array().mask.tolist() == [[False, False, True], [False] * 3]
    assert len(ax.texts) == 5


def test_settings_with_names_are_in_order_of_appearance(make_scores):
    scores = make_scores(lambda row: 0.5, sampling=["random", "grid"], overlap=[True, False])
    ax = grid(scores, "sampling", "overlap")
    assert [t.get_text() for t in ax.get_yticklabels()] == ["random", "grid"]
    assert {t.get_text() for t in ax.get_xticklabels()} == {"True", "False"}


def test_scores_without_the_settings_raise(scores):
    scores["decoder"] = None
    with pytest.raises(ValueError, match="No row of the scores has values of both n_patches and"):
        grid(scores, columns="decoder")


def test_an_unknown_setting_raises(scores):
    with pytest.raises(ValueError, match="lack the column min_gap; they have protocol"):
        grid(scores, rows="min_gap")
    with pytest.raises(ValueError, match="rows and columns are both 'n_patches'"):
        grid(scores, columns="n_patches")


def test_text_can_be_read_on_every_colour():
    def luminance(rgb):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb[:3]]
        return np.dot([0.2126, 0.7152, 0.0722], linear)

    text_colors = set()
    for rgba in mpl.colormaps["cividis"](np.linspace(0, 1, 50)):
        color = text_color(rgba)
        low, high = sorted([luminance(rgba), float(color == "white")])
        assert (high + 0.05) / (low + 0.05) > 4.5
        text_colors.add(color)
    assert text_colors == {"black", "white"}
