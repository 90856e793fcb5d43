"""Which recordings are of which part."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from braindecode_pars.signal_store.parts import (
    check_part,
    checksum_of_sources,
    recordings_of_part,
)
from braindecode_pars.signal_store.sources import Source


@pytest.mark.parametrize(("n", "n_parts"), [(1, 1), (7, 3), (8, 8), (100, 7)])
def test_the_parts_are_all_recordings_in_their_order(n, n_parts):
    sources = [Source(f"r{i}", {}, {}, Path()) for i in range(n)]
    parts = [recordings_of_part(sources, i, n_parts) for i in range(1, n_parts + 1)]
    assert [source for part in parts for source in part] == sources
    assert {len(part) for part in parts} <= {n // n_parts, -(-n // n_parts)}


def test_more_parts_than_recordings_raise():
    with pytest.raises(ValueError, match="3 parts"):
        recordings_of_part([Source("r", {}, {}, Path())] * 2, 1, 3)


def test_numbers_of_a_part():
    assert check_part(None) is None
    assert check_part([np.int64(2), 3]) == (2, 3)
    for wrong in ("3/8", (1, 2, 3), 3, {1, 2}, np.array([1, 2])):
        with pytest.raises(TypeError, match="part"):
            check_part(wrong)
    for wrong in ((1.0, 2), (True, 2), ("1", 2)):
        with pytest.raises(TypeError, match="integer"):
            check_part(wrong)
    for wrong in ((1, 0), (1, -2)):
        with pytest.raises(ValueError, match="integer"):
            check_part(wrong)
    with pytest.raises(ValueError, match="9 of 8"):
        check_part((9, 8))


def test_the_checksum_of_files_is_the_same_on_all_machines():
    """Files may have other times and folders, and those of other parts may be dead links."""
    here = Source("a.edf", {"subject": "a"}, {"mtime_ns": 1}, Path("/here/a.edf"))
    there = Source("a.edf", {}, {}, Path("/there/a.edf"), problem="it is a dead link.")
    renamed = replace(here, name="b.edf")
    found = [checksum_of_sources([source]) for source in (here, there, renamed)]
    assert found[0] == found[1] != found[2]


def test_recordings_of_a_dataset_are_told_apart_by_more_than_their_number(make_raw):
    raw = make_raw(0)
    state = dict(n_times=400, n_chans=2, sfreq=100.0)
    one = Source("recording-0", {"subject": 1, "path": "/here"}, state, raw)
    elsewhere = replace(one, description={"subject": 1, "path": "/there"})
    of_other = replace(one, description={"subject": 2})
    longer = replace(one, state={**state, "n_times": 401})
    found = [checksum_of_sources([source]) for source in (one, elsewhere, of_other, longer)]
    assert found[0] == found[1]
    assert len(set(found)) == 3
