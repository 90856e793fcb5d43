"""Windows of five seconds in place of thirty, for tests whose time depends on the samples."""

import pytest
from support.brief_nights import brief_nights


@pytest.fixture(scope="session")
def brief():
    """Four simulated subjects of 24 windows, three channels, 500 samples."""
    return brief_nights(24, 3, random_state=597)
