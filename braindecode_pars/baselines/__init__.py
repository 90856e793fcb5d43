"""Baselines to compare with pretraining: linear probes, networks and hand-crafted features."""

import braindecode_pars._common.hosts  # noqa: F401
from braindecode_pars.baselines.methods import (
    ALL_WEIGHTS,
    CENTERED,
    FROZEN,
    METHODS,
    SMOOTHED,
    cost_table,
    make_methods,
)

__all__ = [
    "ALL_WEIGHTS",
    "CENTERED",
    "FROZEN",
    "METHODS",
    "SMOOTHED",
    "cost_table",
    "make_methods",
]
