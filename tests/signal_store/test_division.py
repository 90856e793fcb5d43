"""Which recordings are of which part."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from braindecode_pars.signal_store.parts import divided
from braindecode_pars.signal_store.sources import Source


def checksum(source: Source) -> str:
    return divided([source], (1, 1))[1]["recordings"]


@pytest.mark.parametrize(("n", "n_parts"), [(1, 1), (7, 3), (8, 8), (100, 7)])
def test_the_parts_are_all_recordings_in_their_order(n, n_parts):
    sources = [Source(f"r{i}", {}, {}, Path()) for i in range(n)]
    parts = [divided(sources, (np.int64(i), n_parts))[0] for i in range(1, n_parts + 1)]
    assert [source for part in parts for source in part] == sources
    assert {len(part) for part in parts} <= {n // n_parts, -(-n // n_parts)}
    assert divided(sources, None) == (sources, None)


@pytest.mark.parametrize(
    "wrong",
    ["3/8", (1, 2, 3), 3, {1, 2}, np.array([1, 2]), (1.0, 2), (True, 2), ("1", 2)],
)
def test_a_part_is_two_integers(wrong):
    with pytest.raises(TypeError, match="part"):
        divided([Source("r", {}, {}, Path())] * 9, wrong)


@pytest.mark.parametrize("wrong", [(1, 0), (1, -2), (9, 8), (1, 10)])
def test_numbers_of_parts_are_in_range(wrong):
    with pytest.raises(ValueError, match="part"):
        divided([Source("r", {}, {}, Path())] * 9, wrong)


def test_the_checksum_of_files_is_the_same_on_all_machines():
    """Files may have other times and folders, and those of other parts may be dead links."""
    here = Source("a.edf", {"subject": "a"}, {"mtime_ns": 1}, Path("/here/a.edf"))
    there = Source("a.edf", {}, {}, Path("/there/a.edf"), problem="it is a dead link.")
    assert checksum(here) == checksum(there) != checksum(replace(here, name="b.edf"))


def test_recordings_of_a_dataset_are_told_apart_by_more_than_their_number(make_raw):
    state = dict(n_times=400, n_chans=2, sfreq=100.0)
    one = Source("recording-0", {"subject": 1, "path": "/here"}, state, make_raw(0))
    elsewhere = replace(one, description={"subject": 1, "path": "/there"})
    of_other = replace(one, description={"subject": 2})
    longer = replace(one, state={**state, "n_times": 401})
    assert checksum(one) == checksum(elsewhere)
    assert len({checksum(source) for source in (one, of_other, longer)}) == 3
