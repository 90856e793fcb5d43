"""Windows that the tests of training share."""

from __future__ import annotations

import numpy as np
import pytest
from support.short_windows import first_samples

from braindecode_pars import as_sklearn
from braindecode_pars.windows.convert import as_windows
from braindecode_pars.windows.table import Windows


@pytest.fixture(scope="package")
def short(nights) -> Windows:
    """The 96 windows of ``nights``, with their first two seconds, in memory to be fast."""
    windows, y, subjects = as_sklearn(first_samples(nights, 200))
    return as_windows(np.asarray(windows), y, subjects, 100.0)
