"""The range of amplitudes of training windows."""

from __future__ import annotations

import numpy as np
import pytest

from braindecode_pars.windows.amplitudes import AmplitudeRange, amplitude_range, range_of
from braindecode_pars.windows.table import WindowSet, as_window_set


def test_the_percentiles_of_all_channels_and_windows():
    rng = np.random.default_rng(0)
    windows = rng.standard_normal((40, 3, 200)) * rng.uniform(1, 9, (40, 3, 1)) + 100
    found = amplitude_range(as_window_set(windows))
    plain = [np.sqrt(np.mean((channel - channel.mean()) ** 2)) for w in windows for channel in w]
    assert found.low == pytest.approx(np.quantile(plain, 0.05), rel=1e-4)
    assert found.high == pytest.approx(np.quantile(plain, 0.95), rel=1e-4)


def test_flat_channels_are_left_out():
    windows = np.random.default_rng(0).standard_normal((9, 2, 200))
    alone = range_of(windows[:, :1])
    windows[:, 1] = 3.0
    assert range_of(windows) == alone
    assert range_of(np.zeros((4, 2, 50))) is None


def test_at_most_256_windows_are_read(monkeypatch):
    read = []
    get = WindowSet.__getitem__
    monkeypatch.setattr(WindowSet, "__getitem__", lambda self, i: read.append(i) or get(self, i))
    amplitude_range(as_window_set(np.random.default_rng(0).standard_normal((1000, 1, 20))))
    assert len(set(read)) == len(read) == 256
    assert (read[0], read[-1]) == (0, 999)


@pytest.mark.parametrize(
    ("amplitude", "times"), [(1.0, 1.0), (3.0, 1.0), (40.0, 10.0), (0.1, 10.0), (0.0, np.inf)]
)
def test_how_far_outside(amplitude, times):
    assert AmplitudeRange(1.0, 4.0).times_outside(amplitude) == pytest.approx(times)
