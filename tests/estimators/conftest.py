"""Data and fitted estimators that the tests of the estimators share. Tests do not change them."""

from __future__ import annotations

import pytest
from braindecode.datasets import BaseConcatDataset, EEGWindowsDataset
from support.small_estimators import classifier, embedder

from braindecode_pars import datasets


@pytest.fixture(scope="session")
def half_nights():
    """The recordings of ``nights`` with every second window: 12 windows of each subject."""
    whole = datasets.simulated.sleep(4, 0.2, n_chans=3, sfreq=100, random_state=3)
    parts = []
    for night in whole.datasets:
        part = EEGWindowsDataset(night.raw, night.metadata[1::2], dict(night.description))
        part.window_kwargs = night.window_kwargs  # with the names of the classes
        parts.append(part)
    return BaseConcatDataset(parts)


@pytest.fixture(scope="session")
def fitted_classifier(half_nights):
    return classifier().fit(half_nights)


@pytest.fixture(scope="session")
def fitted_embedder(half_nights):
    return embedder().fit(half_nights)
