"""Amplitudes in usual units pass silently, and the others are named with a remedy."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from braindecode_pars.windows.amplitudes import (
    AmplitudeRange,
    amplitude_problem,
    amplitude_range,
    spread_out,
    warn_of_amplitudes,
    warn_of_another_unit,
    warn_of_other_units,
)
from braindecode_pars.windows.convert import as_windows
from braindecode_pars.windows.preprocessing import Preprocessing
from braindecode_pars.windows.table import Windows

NOISE = np.random.default_rng(0).standard_normal((40, 3, 200))


@pytest.mark.parametrize("offset", [0, 1, -300])
def test_usual_units_and_offsets_are_accepted(offset):
    for scale in (1e-8, 2e-6, 2e-5, 1e-3, 1.0, 20.0, 1e5):
        assert amplitude_problem(scale * (NOISE + offset)) is None, scale


@pytest.mark.parametrize(
    ("windows", "message"),
    [
        (2e-11 * NOISE, "2e-11.* 1e6"),
        (2e-17 * NOISE, "1e12"),
        (2e7 * NOISE, "2e[+]07.* 1e-12"),
        (1e20 * NOISE, "1e[+]20.* by 1e-24"),
        (20e-6 * (NOISE + 5e3), r"5\.\de\+03 times .*filter"),
        (20e-6 * (NOISE + 1e9), "1e7 times .*filter"),
    ],
)
def test_another_unit_and_a_large_offset_are_named(windows, message):
    with pytest.warns(UserWarning, match=message):
        warn_of_amplitudes(as_windows(windows.astype(np.float32)))


def test_flat_channels_and_a_few_odd_windows_are_ignored():
    windows = 2e-5 * NOISE
    windows[:, 1] = 0
    windows[0] *= 1e-9
    windows[1] = 0
    assert amplitude_problem(windows) is None
    windows[5:10] *= 1e-6
    assert "in 6 of 39 windows looked at" in amplitude_problem(windows)
    assert amplitude_problem(np.zeros((3, 2, 100))) is None
    assert amplitude_problem([np.empty((2, 0))]) is None
    assert amplitude_problem([]) is None


@pytest.fixture
def read(monkeypatch):
    """Numbers of the windows that are read one at a time."""
    numbers = []
    get = Windows.__getitem__

    def spy(self, i):
        numbers.append(self.table["item"].iloc[i])
        return get(self, i)

    monkeypatch.setattr(Windows, "__getitem__", spy)
    return numbers


def test_at_most_32_or_256_windows_are_read(read):
    warn_of_amplitudes(as_windows(np.tile(NOISE, (5, 1, 1)).astype(np.float32)))
    assert (len(read), len(set(read)), read[0], read[-1]) == (32, 32, 0, 199)
    read.clear()
    amplitude_range(as_windows(np.random.default_rng(0).standard_normal((1000, 1, 20))))
    assert (len(read), len(set(read)), read[0], read[-1]) == (256, 256, 0, 999)


def test_the_percentiles_of_all_channels_and_windows():
    rng = np.random.default_rng(0)
    windows = rng.standard_normal((40, 3, 200)) * rng.uniform(1, 9, (40, 3, 1)) + 100
    windows[:, 1] = 3.0  # flat channels are left out
    found = amplitude_range(as_windows(windows))
    plain = [np.sqrt(np.mean((each - each.mean()) ** 2)) for w in windows for each in w[[0, 2]]]
    assert found.low == pytest.approx(np.quantile(plain, 0.05), rel=1e-4)
    assert found.high == pytest.approx(np.quantile(plain, 0.95), rel=1e-4)
    assert amplitude_range(as_windows(np.zeros((4, 2, 50)))) is None


@pytest.mark.parametrize(
    ("amplitude", "times"), [(1.0, 1.0), (3.0, 1.0), (40.0, 10.0), (0.1, 10.0), (0.0, np.inf)]
)
def test_how_far_outside(amplitude, times):
    assert AmplitudeRange(1.0, 4.0).times_outside(amplitude) == pytest.approx(times)


@pytest.mark.parametrize("n", [0, 1, 5, 6, 7, 10_001])
def test_windows_that_are_looked_at_are_spread_from_the_first_to_the_last(n):
    found = spread_out(n, 5)
    if n <= 5:
        assert found.tolist() == list(range(n))
    else:
        assert (len(found), found[0], found[-1]) == (5, 0, n - 1)
        assert 1 <= np.diff(found).min() <= np.diff(found).max() <= np.diff(found).min() + 1


@pytest.mark.parametrize(
    ("factor", "is_far"),
    [(1e-6, True), (0.1, True), (10, True), (1e6, True), (0.5, False), (1, False), (2, False)],
)
def test_another_unit_than_in_training_is_told(factor, is_far, recwarn):
    """Volts after microvolts, and microvolts after volts."""
    warn_of_another_unit(as_windows(factor * NOISE), amplitude_range(as_windows(NOISE)))
    found = [str(warning.message) for warning in recwarn]
    assert ["far outside that of the training" in text for text in found] == [True] * is_far


def of_people(scales, n_windows=6):
    """Return noise and its subjects, one of each scale."""
    windows = np.random.default_rng(0).standard_normal((len(scales) * n_windows, 2, 200))
    windows *= 1e-5 * np.repeat(scales, n_windows)[:, None, None]
    people = np.repeat([f"P{i}" for i in range(len(scales))], n_windows)
    return windows.astype(np.float32), people


@pytest.mark.parametrize("scale", [1e3, 1e-3, 0.0])  # all channels are flat
def test_recordings_of_another_unit_are_named(scale):
    X, people = of_people([1, 1, scale, 3, 0.5])
    with pytest.warns(UserWarning, match=r"1 of 5 .*others: recording 3 \(subject P2\)\. Their"):
        warn_of_other_units(as_windows(X, groups=people))
    with pytest.warns(UserWarning, match="1 of 5 recordings is more than 20 times"):
        amplitude_range(as_windows(X, groups=people), compare=True)


def test_people_flat_windows_and_artifacts_are_no_other_unit(read):
    X, people = of_people([1, 3, 0.3, 1, 5], n_windows=20)
    warn_of_other_units(as_windows(X, groups=people))
    assert len(read) == 25  # five of each
    X[people == "P1"][:10] = 0
    X[[20, 30]] *= 1e3  # the first and the third of five that are looked at of P1
    warn_of_other_units(as_windows(X, groups=people))
    warn_of_other_units(as_windows(X[:20], groups=people[:20]))  # nothing to compare
    X = 1e-5 * np.random.default_rng(0).standard_normal((20, 4, 200)) * [[1], [5], [0.2], [1]]
    X[[0, 9], 0] *= 1e3
    warn_of_other_units(as_windows(X))


def test_each_of_more_than_256_recordings_is_compared():
    X, people = of_people(np.where(np.arange(400) == 201, 1e3, 1), n_windows=2)
    with pytest.warns(UserWarning, match=r"1 of 400 .*subject P201"):
        warn_of_other_units(as_windows(X, groups=people))


@pytest.mark.parametrize("value", [0.0, 1e-4])
@pytest.mark.parametrize("n_chans", [2, 5])
def test_a_channel_that_is_flat_in_one_recording_is_named(value, n_chans):
    X = 1e-5 * np.random.default_rng(0).standard_normal((18, n_chans, 200))
    X[6:12, 1] = value
    windows = as_windows(X.astype(np.float32), groups=np.repeat(["P0", "P1", "P2"], 6))
    for compare in (warn_of_other_units, partial(amplitude_range, compare=True)):
        with pytest.warns(UserWarning, match=r"flat.*: row 1 of recording 2 \(subject P1\)\. "):
            compare(windows)


@pytest.mark.parametrize(
    ("scale", "factor", "is_named"),
    [(1.0, f, f in (1e3, 1e6, 1e-3, 1e-6)) for f in (1, 20, 0.05, 1e3, 1e6, 1e-3, 1e-6)]
    + [(1e6, 1.0, False), (1e6, 2e3, True), (None, 1e3, False)],
)
def test_all_files_of_another_unit(scale, factor, is_named, recwarn):
    """Where the steps of the preprocessing are known, the unit of the windows is known, too."""
    windows = as_windows(1e-5 * factor * (scale or 1.0) * NOISE)
    known = [Preprocessing(scale=scale)] * len(windows.recordings)
    warn_of_amplitudes(replace(windows, recordings=windows.recordings.assign(preprocessing=known)))
    messages = [str(warning.message) for warning in recwarn]
    assert [f"{1e-5 * factor:.1g}" in text for text in messages] == [True] * is_named


@pytest.mark.parametrize(("n_people", "average"), [(1, False), (3, False), (1, True)])
def test_a_channel_of_another_unit_is_named(n_people, average):
    """Also where an average reference has handed it on to the others."""
    X = 1e-5 * np.random.default_rng(0).standard_normal((6 * n_people, 5, 200))
    X[-6:, 3] *= 1e3
    X -= X.mean(axis=1, keepdims=True) if average else 0
    windows = as_windows(X.astype(np.float32), groups=np.repeat(np.arange(n_people), 6))
    last = f"row 3 of recording {n_people} .subject {n_people - 1}"
    with pytest.warns(UserWarning, match=f"channels is more than 30 times.*others?.*: {last}"):
        warn_of_other_units(windows)
    with pytest.warns(UserWarning, match=last):
        amplitude_range(windows, compare=True)
