"""Names of labels, read from the records of braindecode and MNE."""

from __future__ import annotations

import mne
import numpy as np
import pytest
from braindecode.datasets import BaseConcatDataset, RawDataset
from braindecode.preprocessing import create_windows_from_events
from torch.utils.data import Subset

from braindecode_pars import as_sklearn
from braindecode_pars.datasets.simulated import STAGES
from braindecode_pars.windows.door import as_windows, joined_labels_by_name
from braindecode_pars.windows.labels import class_names

BY_NAME = {name: label for label, name in enumerate(STAGES)}


def events(descriptions, mapping):
    n = len(descriptions)
    info = mne.create_info(["C3"], 50.0, "eeg")
    raw = mne.io.RawArray(np.zeros((1, 100 * n)), info, verbose="error")
    raw.set_annotations(mne.Annotations(2 * np.arange(n), [2] * n, descriptions))
    return create_windows_from_events(
        BaseConcatDataset([RawDataset(raw, {})]),
        window_size_samples=100,
        window_stride_samples=100,
        mapping=mapping,
        verbose="error",
    )


@pytest.mark.parametrize("mapping", [{"T0": 0, "T1": 1}, None])
def test_mapping_of_braindecode(mapping):
    assert as_windows(events(["T0", "T1"], mapping)).label_names == {"T0": 0, "T1": 1}


def test_event_id_of_epochs_also_one_by_one():
    info = mne.create_info(["C3"], 50.0, "eeg")
    table = np.column_stack([np.arange(4), np.zeros(4, int), [7, 9, 7, 9]])
    given = mne.EpochsArray(
        np.zeros((4, 1, 50)), info, table, event_id=dict(left=7, right=9), verbose="error"
    )
    for source in (given, [given[i] for i in range(4)]):
        windows = as_windows(source)
        assert class_names(np.unique(windows.y), windows.label_names) == {7: "left", 9: "right"}


def test_parts_keep_names(nights):
    X, y, groups = as_sklearn(nights)
    for source in (nights, Subset(nights, [3, 5]), X[np.array([5, 2])]):
        assert as_windows(source).label_names == BY_NAME
    assert as_windows(X, y, groups).label_names == BY_NAME


@pytest.mark.parametrize(
    ("change", "hold"),
    [
        (lambda y: np.where(np.arange(len(y)) % 2, y, -1), True),  # unlabelled windows
        (lambda y: (y == 3).astype(int), False),
        (lambda y: np.array(STAGES)[y], True),  # the names themselves
    ],
)
def test_names_hold_only_for_the_same_labels(nights, change, hold):
    X, y, _ = as_sklearn(nights)
    windows = as_windows(X, change(y))
    assert (windows.label_names is not None) == hold


def test_names_of_a_target_transform_are_unknown(nights):
    changed = BaseConcatDataset(nights.datasets, target_transform=lambda label: label + 1)
    assert as_windows(changed).label_names is None


def test_one_name_with_two_labels_is_a_warning():
    with pytest.warns(UserWarning, match=r"'W'.* 0 .* 1 "):
        assert joined_labels_by_name([{"W": 0}, None, {"W": 1}]) is None


@pytest.mark.parametrize(
    ("labels", "by_name", "expected"),
    [
        ([0, 1], {"rest": 0, "task": 1, "other": 2}, {0: "rest", 1: "task"}),
        ([2, 3], {"S2": 2, "S3": 3, "S4": 3}, {2: "S2", 3: "S3 / S4"}),
        ([0, 1], {"rest": 0}, {0: "rest", 1: "1"}),
        ([1, 2], {"1": 1, "2": 2}, None),
        (["W", "R"], BY_NAME, None),
        ([0, 1], None, None),
    ],
)
def test_names_of_classes(labels, by_name, expected):
    assert class_names(np.array(labels), by_name) == expected


def test_a_name_that_is_the_label_of_another_class_names_none():
    assert class_names(np.array([0, 1]), {"1": 0}) is None
    assert class_names(np.array([0, 1]), {"1": 0, "2": 1}) == {0: "1", 1: "2"}
