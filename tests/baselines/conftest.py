"""Windows of five seconds in place of thirty, because the features of windows take the time."""

from __future__ import annotations

import pytest
from support.brief_nights import brief_nights


@pytest.fixture(scope="session")
def nights():
    """Four simulated subjects of 24 windows, three channels, 500 samples."""
    return brief_nights(24, 3, random_state=597)
