"""A hypnogram with one example window of each stage."""

from __future__ import annotations

import numpy as np
import pytest

from braindecode_pars import plotting
from braindecode_pars.datasets.simulated import STAGES


@pytest.fixture
def one_night(nights):
    windows = np.stack([nights[i][0] for i in range(24)])
    return windows, np.array([nights[i][1] for i in range(24)])


def test_each_stage_that_occurs_has_a_window_in_microvolts(one_night):
    windows, stages = one_night
    axes = plotting.night(windows, stages, STAGES, 100.0, channel=1)
    assert len(axes) == 6
    assert [ax.get_ylabel()[:2].strip() for ax in axes[1:]] == ["W", "R", "N1", "N2", "N3"]
    for ax in axes[1:]:
        of_stage = windows[stages == STAGES.index(ax.get_ylabel().split()[0]), 1]
        assert len(ax.lines) == min(1, len(of_stage))
        for line in ax.lines:
            assert any(np.allclose(line.get_ydata(), 1e6 * window) for window in of_stage)


def test_the_hypnogram_is_above(one_night):
    windows, stages = one_night
    top = plotting.night(windows, stages, STAGES, 100.0)[0]
    assert top.get_xlim() == (0, 12)  # minutes
    alone = plotting.hypnogram(stages, stage_names=STAGES)
    np.testing.assert_array_equal(
        top.patches[0].get_data().values, alone.patches[0].get_data().values
    )


def test_different_numbers_of_stages_and_windows_raise(one_night):
    windows, stages = one_night
    with pytest.raises(ValueError, match="24 windows and 23 stages"):
        plotting.night(windows, stages[:-1], STAGES, 100.0)


def test_another_order(one_night):
    windows, stages = one_night
    names = ["awake", "dozing", "N2", "N3", "REM"]
    with pytest.raises(ValueError, match="dozing"):
        plotting.night(windows, stages, names, 100.0)
    axes = plotting.night(windows, stages, names, 100.0, order=names[::-1])
    assert [ax.get_ylabel().split("\n")[0] for ax in axes[1:]] == names[::-1]
