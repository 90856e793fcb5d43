"""Several files read as one."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from braindecode_pars.signal_store.parts import JoinedSamples
from braindecode_pars.signal_store.samples import DTYPES, SampleFile

LENGTHS = (50, 7, 300)


@pytest.fixture(params=["int16", "float32"])
def files(request, tmp_path) -> list[SampleFile]:
    """Three files; a number is its position in all of them."""
    numbers = np.split(np.arange(sum(LENGTHS)), np.cumsum(LENGTHS)[:-1])
    made = []
    for i, values in enumerate(numbers):
        values.astype(DTYPES[request.param]).tofile(tmp_path / f"{i}.bin")
        made.append(SampleFile(tmp_path / f"{i}.bin", request.param, len(values)))
    return made


def test_crops_in_any_order_are_those_of_one_file(files):
    joined = JoinedSamples(files)
    firsts = np.array([350, 0, 50, 45, 57, 0, 51, 120])
    scale = np.ones(len(firsts), np.float32)
    crops = joined.crops(firsts, 5, scale, 0 * scale)
    assert crops.dtype == np.float32
    np.testing.assert_array_equal(crops, firsts[:, None] + np.arange(5))
    assert joined.crops(firsts[:0], 5, scale[:0], scale[:0]).shape == (0, 5)


def test_each_crop_has_its_own_scale(tmp_path):
    for name in "ab":
        np.arange(9, dtype="<i2").tofile(tmp_path / name)
    joined = JoinedSamples([SampleFile(tmp_path / name, "int16", 9) for name in "ab"])
    scale, offset = np.array([[2, 3, 4], [10, 20, 30]], np.float32)
    crops = joined.crops(np.array([10, 0, 12]), 2, scale, offset)
    np.testing.assert_array_equal(crops, [[12, 14], [20, 23], [42, 46]])


def test_stores_of_stores(files):
    joined = JoinedSamples([files[0], JoinedSamples(files[1:])])
    assert joined.n_samples == sum(LENGTHS)
    assert joined.stored(60, 3).tolist() == [60, 61, 62]
    assert [joined.file_at(first) for first in (49, 50, 57)] == [file.file for file in files]
    joined.stored(0, 1)
    assert len(pickle.dumps(joined)) < 2000  # nothing that is mapped
