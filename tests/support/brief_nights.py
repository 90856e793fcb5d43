"""Simulated sleep in windows of five seconds, for tests whose time depends on the samples."""

from __future__ import annotations

import pytest
from braindecode.datasets import BaseConcatDataset

from braindecode_pars import datasets
from braindecode_pars.datasets import simulated

SECONDS = 5.0


def brief_nights(n_windows: int, n_chans: int, random_state: int = 3) -> BaseConcatDataset:
    """Simulate four subjects with ``n_windows`` windows each, of five seconds at 100 Hz."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulated, "WINDOW_SECONDS", SECONDS)
        hours, settings = n_windows * SECONDS / 3600, dict(n_chans=n_chans, sfreq=100)
        return datasets.simulated.sleep(4, hours, random_state=random_state, **settings)
