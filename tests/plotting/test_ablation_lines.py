"""Lines of scores over one setting."""

from __future__ import annotations

import numpy as np
import pytest

from braindecode_pars import plotting

RATIOS = [0.4, 0.2, 0.8]


@pytest.fixture
def scores(make_scores):
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


def test_lines_are_means_and_bands_are_standard_deviations(scores):
    ax = draw(scores, label="Cohen's kappa")
    first, second = ax.get_lines()
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
    assert [line.get_label() for line in ax.get_lines()] == ["20", "30", "40"]


def test_a_line_without_scores_keeps_its_entry(scores):
    scores.loc[scores["decoder"] == "mlp", "value"] = np.nan
    ax = draw(scores)
    assert [len(line.get_xdata()) for line in ax.get_lines()] == [3, 0]


def test_mistakes(scores):
    with pytest.raises(ValueError, match="x and lines are both 'decoder'"):
        draw(scores, x="decoder")
    with pytest.raises(TypeError, match=r"decoder has values that are not numbers \(cross_att"):
        draw(scores, x="decoder", lines="position_mask_ratio")
    with pytest.raises(ValueError, match="lack the column min_gap"):
        draw(scores, lines="min_gap")
    scores["sampling"] = None
    with pytest.raises(ValueError, match="No row of the scores has values of both position_mask"):
        draw(scores, lines="sampling")
