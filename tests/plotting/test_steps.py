"""Stages over time as steps."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from braindecode_pars.plotting.sleep_figures import draw_steps


def test_rows_become_steps_and_differences_a_row_below():
    _, ax = plt.subplots()
    edges = np.arange(5) * 3600.0
    draw_steps(ax, edges, ["W", "N2"], np.array([0, 1, 1, np.nan]), np.array([0.0, 0.0, 1.0, 1.0]))
    assert [text.get_text() for text in ax.get_yticklabels()] == ["W", "N2", "differ"]
    true, predicted = (patch.get_data() for patch in ax.patches)
    assert true.edges == pytest.approx([0, 1, 2, 3, 4])  # hours
    np.testing.assert_array_equal(true.values, [0, -1, -1, np.nan])
    np.testing.assert_array_equal(predicted.values, [0, 0, -1, -1])
    # Only the second window differs; the last one has no true stage.
    (block,) = ax.collections[0].get_paths()
    assert block.vertices[:, 0].min() == 1
    assert block.vertices[:, 0].max() == 2
