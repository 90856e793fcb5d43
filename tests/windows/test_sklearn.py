"""A windows dataset as X, y and groups."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold

from braindecode_pars import as_sklearn


def test_views_are_lazy_and_keep_labels_and_subjects(nights):
    X, y, groups = as_sklearn(nights)
    assert X.shape == y.shape == groups.shape == (96,)
    assert X[5].shape == nights[5][0].shape
    part = X[np.array([30, 2])]
    again, y_part, groups_part = as_sklearn(part)
    assert len(again) == 2
    assert y_part.tolist() == y[[30, 2]].tolist()
    assert groups_part.tolist() == [2, 1]


def test_cross_validators_accept_the_views(nights):
    X, y, groups = as_sklearn(nights)
    for train, test in GroupKFold(2).split(X, y, groups):
        assert set(groups[train]).isdisjoint(groups[test])


def without_subject(nights, numbers):
    """The same windows, without a subject in the description of some recordings."""
    parts = [
        type(part)(part.raw, part.metadata, {"night": 1} if i in numbers else part.description)
        for i, part in enumerate(nights.datasets)
    ]
    return type(nights)(parts)


@pytest.mark.parametrize(("numbers", "found"), [(range(4), "96 of 96"), ([1], "24 of 96")])
def test_missing_subjects_are_counted(nights, numbers, found):
    with pytest.raises(ValueError, match=f"{found} .*'subject'"):
        as_sklearn(without_subject(nights, numbers))


def test_both_unicode_forms_of_a_name_are_one_group(nights):
    """As macOS writes a folder's name, and as other systems do."""
    names = ["Jörg", unicodedata.normalize("NFD", "Jörg"), "Anna", "Bert"]
    parts = [
        type(part)(part.raw, part.metadata, {"subject": name})
        for part, name in zip(nights.datasets, names, strict=True)
    ]
    groups = as_sklearn(type(nights)(parts))[2]
    assert sorted(set(groups)) == ["Anna", "Bert", "Jörg"]
