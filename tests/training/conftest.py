"""Windows that the tests of training share."""

from __future__ import annotations

import pytest
from support.short_windows import first_samples

from braindecode_pars import as_sklearn
from braindecode_pars.windows.table import Windows


@pytest.fixture(scope="package")
def short(nights) -> Windows:
    """The 96 windows of ``nights``, with their first two seconds."""
    return as_sklearn(first_samples(nights, 200))[0]
