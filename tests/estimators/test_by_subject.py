"""The number of each window's subject; its errors are in the tests of the classes that use it."""

from __future__ import annotations

import numpy as np
import pytest

from braindecode_pars.estimators.recentring import subject_numbers
from braindecode_pars.windows.door import as_windows

WINDOWS = np.zeros((6, 1, 10))


def test_subjects_are_counted_in_their_order():
    subjects = np.array(["b", 1, "1", "b", 1, "1"], dtype=object)  # 1 and "1" are two subjects
    numbers = subject_numbers(as_windows(WINDOWS, groups=subjects), 2, "A test")
    assert numbers.tolist() == [0, 1, 2, 0, 1, 2]


def test_the_first_subject_with_too_few_windows_is_named():
    windows = as_windows(WINDOWS, groups=[7, 7, 7, 8, 9, 7])
    with pytest.raises(ValueError, match="Subject 8 has 1 windows; A test needs at least 2"):
        subject_numbers(windows, 2, "A test")
    with pytest.raises(ValueError, match="A test needs the subject of every window, but that of 6"):
        subject_numbers(as_windows(WINDOWS), 2, "A test")
