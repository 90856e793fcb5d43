"""Labels of one class that overlap are joined, and counted."""

from __future__ import annotations

import mne
import numpy as np
import pytest

from braindecode_pars.recordings.cutting import collected_omissions
from braindecode_pars.recordings.label_files import labels_within


@pytest.mark.parametrize(
    ("labels", "expected", "n_joined"),
    [
        ([(i * 0.5, 20, "word") for i in range(20)], [(0, 29.5, "word")], 19),
        ([(0, 20, "a"), (0, 20, "a")], [(0, 20, "a")], 1),  # listed twice
        ([(0, 20, "a"), (5, 10, "a"), (15, 10, "a")], [(0, 25, "a")], 2),
        ([(0, 10, "a"), (10, 10, "a"), (20, 5, "b")], None, 0),  # they touch
        ([(0, 0, "a"), (0.5, 0, "a")], [(0, 1, "a"), (0.5, 1, "a")], 0),  # marks may overlap
    ],
)
def test_overlapping_labels_of_one_class(labels, expected, n_joined):
    raw = mne.io.RawArray(
        np.zeros((1, 3000)), mne.create_info(["C3"], 100.0, "eeg"), verbose="error"
    )
    found = mne.Annotations(*zip(*labels, strict=True))
    with collected_omissions() as omissions:
        kept = labels_within(found, {"word": "word", "a": "a", "b": "b"}, raw, 1.0)
    rows = list(zip(kept.onset, kept.duration, kept.description, strict=True))
    assert rows == (expected or labels)
    assert [each.number for each in omissions] == [n_joined] * bool(n_joined)
