"""Scores over two settings, as lines."""

from __future__ import annotations

import numpy as np
import pytest

from braindecode_pars import plotting

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
    with pytest.raises(ValueError, match="min_gap"):
        draw(of_decoders, lines="min_gap")
    of_decoders["sampling"] = None
    with pytest.raises(ValueError, match="sampling"):
        draw(of_decoders, lines="sampling")
