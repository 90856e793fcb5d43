"""Fixtures that close figures after each test and make synthetic tables of scores."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import matplotlib.pyplot as plt
import pandas as pd
import pytest


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


@pytest.fixture
def make_scores() -> Callable[..., pd.DataFrame]:
    """Make a tidy table of all combinations of settings, with values from ``value(row)``."""
    defaults = dict(
        protocol="synthetic",
        dataset="one",
        method=["PARS", "from scratch"],
        subject="all",
        n_train_subjects=10,
        seed=[0, 1, 2],
        metric="kappa",
    )

    def make(value: Callable[[dict], float], **varied) -> pd.DataFrame:
        settings = {
            name: choices if isinstance(choices, list) else [choices]
            for name, choices in {**defaults, **varied}.items()
        }
        rows = [dict(zip(settings, row, strict=True)) for row in product(*settings.values())]
        return pd.DataFrame([{**row, "value": value(row)} for row in rows])

    return make
