"""A store and a run that the tests of this folder share; none of them changes these."""

from __future__ import annotations

import pytest
from support.small_runs import make_store, run


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """Recordings of 20, 7, 2 and 12 s with one, two, three and four channels."""
    return make_store(tmp_path_factory.mktemp("runs") / "store")


@pytest.fixture(scope="session")
def whole(store, tmp_path_factory):
    """A run that was not interrupted."""
    return run(store, tmp_path_factory.mktemp("runs") / "whole")
