"""Names of classes beside windows, as braindecode writes them."""

from __future__ import annotations

import warnings

import mne
import numpy as np
import pytest
from braindecode.datasets import BaseConcatDataset
from braindecode.datautil import load_concat_dataset

from braindecode_pars import datasets
from braindecode_pars.recordings.cutting import event_windows, fixed_windows, name_classes
from braindecode_pars.windows.door import as_windows


def windows():
    raw = mne.io.RawArray(np.zeros((1, 500)), mne.create_info(["C3"], 50.0, "eeg"), verbose="error")
    return fixed_windows(raw, 2.0, 1)


@pytest.mark.parametrize("classes", [("rest", "task"), {"rest": 0, "task": 1}])
def test_names_or_a_target_for_each_name(classes):
    assert as_windows(name_classes(windows(), classes)).label_names == {"rest": 0, "task": 1}


def test_later_names_count_and_none_write_nothing():
    one = name_classes(name_classes(windows(), ("a", "b")), ("c", "d"))
    assert as_windows(one).label_names == {"c": 0, "d": 1}
    assert not hasattr(name_classes(windows(), ()), "window_kwargs")


def test_names_survive_braindecodes_files(tmp_path):
    BaseConcatDataset([name_classes(windows(), ("rest", "task"))]).save(tmp_path)
    with warnings.catch_warnings():  # pandas deprecates an argument that braindecode passes
        warnings.simplefilter("ignore")
        loaded = load_concat_dataset(tmp_path, preload=False)
    assert as_windows(loaded).label_names == {"rest": 0, "task": 1}


def test_windows_beside_a_gap_keep_their_names():
    raw = mne.io.RawArray(np.zeros((1, 900)), mne.create_info(["C3"], 10.0, "eeg"), verbose="error")
    raw.set_annotations(mne.Annotations([0, 40, 45], [40, 40, 3], ["N2", "N3", "BAD_ACQ_SKIP"]))
    found = event_windows(raw, {"N2": 3, "N3": 4}, seconds=10)
    assert as_windows(found).label_names == {"N2": 3, "N3": 4}


def test_own_datasets_have_names():
    assert list(as_windows(datasets.mental_arithmetic(["Subject00"])).label_names) == [
        "rest",
        "arithmetic",
    ]
