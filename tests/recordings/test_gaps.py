"""Gaps in recordings, as MNE marks them."""

from __future__ import annotations

import mne
import numpy as np
import pytest

from braindecode_pars.recordings.cutting import continuous_stretches, is_gap, split_at_gaps


def recording(n_times: int = 1000, first_samp: int = 0) -> mne.io.RawArray:
    info = mne.create_info(["C3"], 100.0, "eeg")
    return mne.io.RawArray(np.arange(float(n_times))[None], info, first_samp, verbose="error")


def test_a_recording_without_gaps_is_not_copied():
    raw = recording()
    raw.set_annotations(mne.Annotations([2, 3], [1, 0], ["BAD blink", "N2"]))
    assert continuous_stretches(raw) == [(0, 1000)]
    (part,) = split_at_gaps(raw)
    assert part is raw


@pytest.mark.parametrize("first_samp", [0, 250])
def test_pauses_within_a_recording_are_cut_out(first_samp):
    """As MNE reads a FIF file with skipped buffers: zeros and an annotation with a duration."""
    raw = recording(first_samp=first_samp)
    skips = mne.Annotations([0, 3, 4, 9.5], [0.5, 1.5, 0.5, 0.5], "BAD_ACQ_SKIP")
    raw.set_annotations(skips)
    assert continuous_stretches(raw) == [(50, 300), (450, 950)]
    first, second = split_at_gaps(raw)
    assert first.get_data()[0, [0, -1]].tolist() == [50, 299]
    assert second.get_data()[0, [0, -1]].tolist() == [450, 949]
    raw.set_annotations(mne.Annotations([0], [10], "BAD_ACQ_SKIP"))
    assert continuous_stretches(raw) == split_at_gaps(raw) == []


def test_a_boundary_of_eeglab_spans_no_samples():
    """Its duration is that of removed samples, which are not in the file."""
    raw = recording()
    raw.set_annotations(mne.Annotations([3], [4], "boundary"))
    assert continuous_stretches(raw) == [(0, 300), (300, 1000)]


def test_concatenated_recordings_are_split():
    parts = [recording(n) for n in (400, 100, 300)]
    joined = mne.concatenate_raws([part.copy() for part in parts], verbose="error")
    for part, found in zip(parts, split_at_gaps(joined), strict=True):
        np.testing.assert_array_equal(found.get_data(), part.get_data())


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        *[(name, True) for name in ("boundary", "BAD boundary", "EDGE boundary", "BAD_ACQ_SKIP")],
        *[(name, False) for name in ("BAD", "gap", "edge", "boundary of the seizure")],
        ("Edge electrode loose", False),
    ],
)
def test_descriptions_of_gaps(description, expected):
    assert is_gap(description) is expected
