"""A store that the tests of this folder share."""

from __future__ import annotations

import pytest

from braindecode_pars.signal_store import SignalStore


@pytest.fixture(scope="package")
def store(nights, tmp_path_factory):
    return SignalStore.create(tmp_path_factory.mktemp("store"), nights, dtype="float32", verbose=0)
