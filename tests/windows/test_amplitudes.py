"""Plausible amplitudes give no warning; implausible amplitudes are named with a remedy."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from braindecode_pars.windows.amplitudes import (
    amplitude_problem,
    amplitude_range,
    find_outlier_channels,
    warn_of_amplitude_outliers,
    warn_of_amplitudes,
    warn_of_unit_mismatch,
)
from braindecode_pars.windows.convert import as_windows
from braindecode_pars.windows.preprocessing import Preprocessing

NOISE = np.random.default_rng(0).standard_normal((40, 3, 200))


@pytest.mark.parametrize("offset", [0, 1, -300])
def test_usual_units_and_offsets_are_accepted(offset):
    for scale in (1e-8, 2e-6, 2e-5, 1e-3, 1.0, 20.0, 1e5):
        assert amplitude_problem(scale * (NOISE + offset)) is None, scale


@pytest.mark.parametrize(
    ("windows", "message"),
    [
        (2e-11 * NOISE, "2e-11.* 1e6"),
        (2e7 * NOISE, "2e[+]07.* 1e-12"),
        (20e-6 * (NOISE + 5e3), r"5,\d{3} times .*filter"),
    ],
)
def test_unit_mismatch_and_large_offset_are_named(windows, message):
    with pytest.warns(UserWarning, match=message):
        warn_of_amplitudes(as_windows(windows.astype(np.float32)))


def test_flat_channels_and_a_few_implausible_windows_are_ignored():
    windows = 2e-5 * NOISE
    windows[:, 1] = 0
    windows[0] *= 1e-9
    windows[1] = 0
    assert amplitude_problem(windows) is None
    windows[5:10] *= 1e-6
    finding = amplitude_problem(windows)
    assert (finding.kind, finding.values["n"]) == ("implausible_unit", 6)
    assert finding.values["n_windows"] == 39
    assert amplitude_problem(np.zeros((3, 2, 100))) is None
    assert amplitude_problem([np.empty((2, 0))]) is None
    assert amplitude_problem([]) is None


def test_the_percentiles_of_all_channels_and_windows():
    rng = np.random.default_rng(0)
    windows = rng.standard_normal((40, 3, 200)) * rng.uniform(1, 9, (40, 3, 1)) + 100
    windows[:, 1] = 3.0  # flat channels are left out
    result = amplitude_range(as_windows(windows))
    deviations = [
        np.sqrt(np.mean((signal - signal.mean()) ** 2))
        for window in windows
        for signal in window[[0, 2]]
    ]
    assert result.low == pytest.approx(np.quantile(deviations, 0.05), rel=1e-4)
    assert result.high == pytest.approx(np.quantile(deviations, 0.95), rel=1e-4)
    assert amplitude_range(as_windows(np.zeros((4, 2, 50)))) is None


@pytest.mark.parametrize(
    ("factor", "is_mismatch"),
    [(0.1, True), (1e6, True), (0.5, False), (2, False)],
)
def test_unit_mismatch_with_the_training_data(factor, is_mismatch, recwarn):
    warn_of_unit_mismatch(as_windows(factor * NOISE), amplitude_range(as_windows(NOISE)))
    messages = [str(warning.message) for warning in recwarn]
    assert ["far outside" in text for text in messages] == [True] * is_mismatch


def of_subjects(scales, n_windows=6):
    """Return noise and its subjects, one subject of each scale."""
    windows = np.random.default_rng(0).standard_normal((len(scales) * n_windows, 2, 200))
    windows *= 1e-5 * np.repeat(scales, n_windows)[:, None, None]
    subjects = np.repeat([f"P{i}" for i in range(len(scales))], n_windows)
    return windows.astype(np.float32), subjects


@pytest.mark.parametrize("scale", [1e-3, 0.0])  # all channels are flat
def test_recordings_with_a_unit_mismatch_are_named(scale):
    X, subjects = of_subjects([1, 1, scale, 3, 0.5])
    with pytest.warns(UserWarning, match=r"all 5 .*: recording 3 \(subject P2\)\."):
        warn_of_amplitude_outliers(as_windows(X, groups=subjects))
    with pytest.warns(UserWarning, match="all 5 .*20"):
        amplitude_range(as_windows(X, groups=subjects), compare=True)
    assert find_outlier_channels([np.full((2, 2), [-5.0, -4.0])], []) == (-4.5, [])
    # Windows in which all channels are flat do not count: channel 0 is flat in one of three others.
    rows = ([-5.0] * 3, [-5.0] * 3, [np.nan, -5.0, -5.0], [np.nan] * 3, [np.nan] * 3)
    assert find_outlier_channels([np.array([row, row]) for row in rows], []) == (-5.0, [])


def test_subjects_flat_windows_and_artifacts_are_no_unit_mismatch():
    X, subjects = of_subjects([1, 3, 0.3, 1, 5], n_windows=20)
    warn_of_amplitude_outliers(as_windows(X, groups=subjects))
    X[subjects == "P1"][:10] = 0
    X[[20, 30]] *= 1e3  # the first and the third of the five checked windows of P1
    warn_of_amplitude_outliers(as_windows(X, groups=subjects))
    warn_of_amplitude_outliers(as_windows(X[:20], groups=subjects[:20]))  # nothing to compare
    X = 1e-5 * np.random.default_rng(0).standard_normal((20, 4, 200)) * [[1], [5], [0.2], [1]]
    X[[0, 9], 0] *= 1e3
    warn_of_amplitude_outliers(as_windows(X))


@pytest.mark.parametrize("value", [0.0, 1e-4])
@pytest.mark.parametrize("n_chans", [2, 5])
def test_a_channel_that_is_flat_in_one_recording_is_named(value, n_chans):
    X = 1e-5 * np.random.default_rng(0).standard_normal((18, n_chans, 200))
    X[6:12, 1] = value
    windows = as_windows(X.astype(np.float32), groups=np.repeat(["P0", "P1", "P2"], 6))
    for compare in (warn_of_amplitude_outliers, partial(amplitude_range, compare=True)):
        with pytest.warns(UserWarning, match=r"flat.*: row 1 of recording 2 \(subject P1\)\. "):
            compare(windows)


@pytest.mark.parametrize(
    ("scale", "factor", "is_named"),
    [
        *((1.0, factor, factor in (1e3, 1e-3)) for factor in (20, 0.05, 1e3, 1e-3)),
        *((1e6, 1.0, False), (1e6, 2e3, True), (None, 1e3, False)),
    ],
)
def test_all_files_with_a_unit_mismatch(scale, factor, is_named, recwarn):
    """If the preprocessing steps are known, the unit of the windows is known, too."""
    windows = as_windows(1e-5 * factor * (scale or 1.0) * NOISE)
    known = [Preprocessing(scale=scale)] * len(windows.recordings)
    warn_of_amplitudes(replace(windows, recordings=windows.recordings.assign(preprocessing=known)))
    messages = [str(warning.message) for warning in recwarn]
    assert [f"{1e-5 * factor:.1g}" in text for text in messages] == [True] * is_named


@pytest.mark.parametrize(("n_subjects", "average"), [(1, False), (3, False), (1, True)])
def test_a_channel_with_a_unit_mismatch_is_named(n_subjects, average):
    """Also if an average reference has spread it to the other channels."""
    X = 1e-5 * np.random.default_rng(0).standard_normal((6 * n_subjects, 5, 200))
    X[-6:, 3] *= 1e3
    X -= X.mean(axis=1, keepdims=True) if average else 0
    windows = as_windows(X.astype(np.float32), groups=np.repeat(np.arange(n_subjects), 6))
    last = f"row 3 of recording {n_subjects} .subject {n_subjects - 1}"
    with pytest.warns(UserWarning, match=f"30.*: {last}"):
        warn_of_amplitude_outliers(windows)
    with pytest.warns(UserWarning, match=last):
        amplitude_range(windows, compare=True)
