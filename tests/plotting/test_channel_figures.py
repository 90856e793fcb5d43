"""Channel attention as maps of the scalp."""

from __future__ import annotations

import matplotlib.pyplot as plt
import mne
import numpy as np
import pytest

from braindecode_pars import plotting
from braindecode_pars.models import template_montage

NAMES = ["Fp1", "Fp2", "C3", "Cz", "C4", "O1", "O2"]


def info_of(names, types="eeg"):
    info = mne.create_info(names, 100.0, types)
    return info.set_montage(template_montage(), on_missing="ignore")


def peak(ax):
    """Position of the highest attention on the map; x points right, y to the nose."""
    image = ax.images[0]
    left, right, bottom, top = image.get_extent()
    values = np.asarray(image.get_array())
    row, column = np.unravel_index(np.nanargmax(values), values.shape)
    x = left + (right - left) * column / values.shape[1]
    return x, bottom + (top - bottom) * row / values.shape[0]


def test_the_map_is_brightest_over_the_channel_with_most_attention():
    weights = np.full(7, 0.1)
    weights[2] = 0.4
    [ax] = plotting.spatial_attention(weights, info_of(NAMES))
    x, y = peak(ax)
    assert x < -0.02
    assert abs(y) < 0.03
    assert ax.get_title() == ""


def test_each_head_has_a_map_on_one_scale():
    weights = np.diag(np.arange(1, 8) / 6)[:6]
    axes = plotting.spatial_attention(weights, info_of(NAMES))
    assert [ax.get_title() for ax in axes] == [f"head {i}" for i in range(1, 7)]
    assert {ax.images[0].get_clim() for ax in axes} == {(0.0, 1.0)}
    assert peak(axes[2])[0] < -0.02
    assert peak(axes[4])[0] > 0.02
    assert set(axes) < set(axes[0].figure.axes)
    assert len(axes[0].figure.axes) == 7  # with the colour bar, without empty ones


def test_channels_without_a_position_are_listed_and_change_nothing():
    info = info_of(["ECG", "Fpz-Cz", *NAMES], ["ecg"] + ["eeg"] * 8)
    info["chs"][0]["loc"][:3] = 0.01, 0.02, 0.09  # it has a position but is not EEG
    weights = np.linspace(0.1, 0.2, 9)
    weights[:2] = 0.15
    [ax] = plotting.spatial_attention(weights, info)
    assert ax.figure.get_supxlabel() == "not drawn: ECG, Fpz-Cz"
    [alone] = plotting.spatial_attention(weights[2:], info_of(NAMES))
    assert alone.figure.get_supxlabel() == ""
    np.testing.assert_array_equal(ax.images[0].get_array(), alone.images[0].get_array())


def test_uniform_attention_is_marked_when_weights_sum_to_one():
    for weights, marked in ((np.full(7, 1 / 7), True), (np.full(7, 0.3), False)):
        [ax] = plotting.spatial_attention(weights, info_of(NAMES))
        bar = next(other for other in ax.figure.axes if other is not ax)
        assert [list(line.get_ydata()) for line in bar.lines] == [[1 / 7, 1 / 7]] * marked


def test_axes_may_be_given():
    _, axes = plt.subplots(1, 2)
    assert list(plotting.spatial_attention(np.eye(7)[:2], info_of(NAMES), axes)) == list(axes)


@pytest.mark.parametrize(
    ("weights", "info", "error", "message"),
    [
        (np.ones(6), info_of(NAMES), ValueError, r"\(6,\) .* 7 channels"),
        (np.full(7, np.nan), info_of(NAMES), ValueError, "NaN"),
        (np.ones(7), NAMES, TypeError, "info must be of type mne.Info"),
        (np.ones(4), info_of(["Cz", "Fpz-Cz", "A", "B"]), ValueError, "1 of 4 .* Fpz-Cz, A, B"),
    ],
)
def test_invalid_input_raises(weights, info, error, message):
    with pytest.raises(error, match=message):
        plotting.spatial_attention(weights, info)
