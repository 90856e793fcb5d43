"""Numbers at equal distances."""

from __future__ import annotations

import numpy as np
import pytest

from braindecode_pars.windows.amplitudes import spread_out


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_few_are_all(n):
    assert spread_out(n, 5).tolist() == list(range(n))


@pytest.mark.parametrize("n", [6, 7, 9, 10, 1000, 10_001])
def test_many_are_from_the_first_to_the_last_without_repetition(n):
    found = spread_out(n, 5)
    assert (len(found), found[0], found[-1]) == (5, 0, n - 1)
    assert np.diff(found).min() >= 1
    assert np.ptp(np.diff(found)) <= 1
