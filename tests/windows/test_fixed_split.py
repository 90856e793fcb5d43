"""The split of windows decides which are for validation; anything unclear is an error."""

from __future__ import annotations

import numpy as np
import pytest

from braindecode_pars.windows.held_out import are_validation

SUBJECTS = np.array(["01", "01", "02", "03"])


def splits(*names) -> np.ndarray:
    return np.array(names, dtype=object)


def test_windows_of_split_valid():
    found = are_validation(splits("train", "train", "valid", "train"), SUBJECTS, 4)
    assert found.tolist() == [False, False, True, False]
    assert are_validation(splits("train", "valid"), None, 2).tolist() == [False, True]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (None, "but 4 of 4 have none; add 'split'"),
        (splits("train", None, float("nan"), "valid"), "but 2 of 4 have none"),
        (
            splits("train", "train", "valid", "test"),
            r"there are also windows of 'test' \(1 windows",
        ),
        (splits("train", "train", "train", "train"), "of split 'valid', but there are none"),
        (splits("valid", "valid", "valid", "valid"), "of split 'train', but there are none"),
        (splits("train", "valid", "valid", "train"), "Subject 01 has windows of split 'train'"),
    ],
)
def test_unclear_splits_raise(names, message):
    with pytest.raises(ValueError, match=message):
        are_validation(names, SUBJECTS, 4)


def test_one_person_under_two_names_is_not_on_both_sides():
    with pytest.raises(ValueError, match="Subject 1 has windows of split 'train' and of split"):
        are_validation(splits("train", "valid"), np.array(["sub-01", 1], object), 2)
