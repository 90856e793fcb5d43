"""A windows dataset as X, y and groups."""

from __future__ import annotations

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


def test_missing_subjects_are_named(nights):
    without_subject = [
        type(part)(part.raw, part.metadata, {"night": i}) for i, part in enumerate(nights.datasets)
    ]
    with pytest.raises(ValueError, match="set_description"):
        as_sklearn(type(nights)(without_subject))
