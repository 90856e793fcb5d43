"""Close figures after each test."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")
