"""Scores over two settings, as a grid and as lines."""

from __future__ import annotations

import numpy as np
import pytest

from braindecode_pars import plotting


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
    with pytest.raises(ValueError, match="n_patches"):
        grid(scores, columns="decoder")


def test_an_unknown_setting_raises(scores):
    with pytest.raises(ValueError, match="min_gap"):
        grid(scores, rows="min_gap")
    with pytest.raises(ValueError, match="n_patches"):
        grid(scores, columns="n_patches")


RATIOS = [0.4, 0.2, 0.8]


@pytest.fixture
def of_decoders(make_scores):
    return make_scores(
        lambda row: (
            row["position_mask_ratio"] + 0.01 * row["seed"] + 0.1 * (row["decoder"] == "mlp")
        ),
        method="PARS",
        decoder=["cross_attention", "mlp"],
        position_mask_ratio=RATIOS,
    )


def draw(scores, x="position_mask_ratio", lines="decoder", **arguments):
    return plotting.ablation_lines(scores, x=x, lines=lines, **arguments)


def test_lines_are_means_and_bands_are_standard_deviations(of_decoders):
    ax = draw(of_decoders, label="Cohen's kappa")
    first, second, _ = ax.get_lines()  # and the chance level
    assert [line.get_label() for line in (first, second)] == ["cross_attention", "mlp"]
    np.testing.assert_allclose(first.get_xdata(), [0.2, 0.4, 0.8])
    np.testing.assert_allclose(first.get_ydata(), [0.21, 0.41, 0.81])
    np.testing.assert_allclose(second.get_ydata(), [0.31, 0.51, 0.91])
    assert first.get_marker() != second.get_marker()
    # Behind each line, mean minus and plus 0.01, the standard deviation of 0, .01 and .02.
    assert len(ax.collections) == 2
    edges = ax.collections[0].get_paths()[0].vertices
    for x, y in zip([0.2, 0.4, 0.8], [0.21, 0.41, 0.81], strict=True):
        at_x = edges[np.isclose(edges[:, 0], x), 1]
        assert (at_x.min(), at_x.max()) == pytest.approx((y - 0.01, y + 0.01))
    assert ax.get_ylabel() == "Cohen's kappa\n(mean ± SD over 3 seeds)"
    assert ax.get_xlabel() == "position mask ratio"
    assert ax.get_legend().get_title().get_text() == "decoder"
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0.2", "0.4", "0.8"]


def test_numbers_in_the_legend_ascend(make_scores):
    scores = make_scores(lambda row: 0.5, n_patches=[40, 20, 30], position_mask_ratio=RATIOS)
    ax = draw(scores, lines="n_patches")
    assert [line.get_label() for line in ax.get_lines()][:3] == ["20", "30", "40"]


def test_a_line_without_scores_keeps_its_entry(of_decoders):
    of_decoders.loc[of_decoders["decoder"] == "mlp", "value"] = np.nan
    ax = draw(of_decoders)
    assert [len(line.get_xdata()) for line in ax.get_lines()][:2] == [3, 0]


def test_mistakes_in_settings_of_lines(of_decoders):
    with pytest.raises(ValueError, match="decoder"):
        draw(of_decoders, x="decoder")
    with pytest.raises(TypeError, match="cross_attention"):
        draw(of_decoders, x="decoder", lines="position_mask_ratio")
    with pytest.raises(ValueError, match="min_gap"):
        draw(of_decoders, lines="min_gap")
    of_decoders["sampling"] = None
    with pytest.raises(ValueError, match="sampling"):
        draw(of_decoders, lines="sampling")
