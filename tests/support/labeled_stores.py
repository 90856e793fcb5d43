"""Compare the windows of a labeled store with the windows that ``load`` of a recipe returns."""

from __future__ import annotations

import numpy as np
from braindecode.datasets import BaseConcatDataset

from braindecode_pars._common.channel_names import is_eeg
from braindecode_pars.models import electrode_positions


def check_equal(actual: BaseConcatDataset, expected: BaseConcatDataset) -> None:
    """Check that windows, targets, positions in the recording and descriptions are equal."""
    assert len(actual) == len(expected) > 0
    for stored, loaded in zip(actual.datasets, expected.datasets, strict=True):
        description = dict(loaded.description)
        assert {name: stored.description[name] for name in description} == description
        # Channels that the estimators do not use are not stored.
        bads = loaded.raw.info["bads"]
        good = [ch for ch in loaded.raw.info["chs"] if is_eeg(ch) and ch["ch_name"] not in bads]
        rows = [loaded.raw.ch_names.index(ch["ch_name"]) for ch in good]
        assert stored.raw.ch_names == [ch["ch_name"] for ch in good]
        positions = map(electrode_positions, (stored.raw.info["chs"], good))
        np.testing.assert_array_equal(*positions)
        for (x, y, crop), (x0, y0, crop0) in zip(stored, loaded, strict=True):
            np.testing.assert_array_equal(x, x0[rows])
            assert x.dtype == x0.dtype
            assert (y, type(y), crop) == (y0, type(y0), crop0)
