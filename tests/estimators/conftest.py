"""Data and fitted estimators that the tests of the estimators share. Tests do not change them."""

from __future__ import annotations

import pytest
from support.short_windows import first_samples
from support.small_estimators import classifier, embedder

from braindecode_pars import datasets


@pytest.fixture(scope="session")
def whole_nights():
    return datasets.simulated.sleep(4, 0.2, n_chans=3, sfreq=100, random_state=3)


@pytest.fixture(scope="session")
def few_windows(whole_nights):
    """Six windows of ten seconds of each of four subjects, with all sleep stages."""
    return first_samples(whole_nights, 1000, slice(1, None, 4))


@pytest.fixture(scope="session")
def nights(few_windows):
    return few_windows


@pytest.fixture(scope="session")
def fitted_classifier(few_windows):
    return classifier().fit(few_windows)


@pytest.fixture(scope="session")
def fitted_embedder(few_windows):
    return embedder().fit(few_windows)
